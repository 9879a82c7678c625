"""Conditions follow the rule of their contract, and only ours is touched."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart import observe
from applecart.api.capi.shared import CapiCondition
from applecart.api.meta import Condition
from applecart.api.nodes import NodeCondition
from applecart.api.reasons import Severity
from applecart.kube.conditions import (
    FALSE,
    LONGEST_MESSAGE_CHARS,
    TRUE,
    UNKNOWN,
    Summary,
    drop_condition,
    find,
    is_false,
    is_true,
    reason_of,
    set_capi_condition,
    set_condition,
    summarise,
)
from applecart.secrets import Secret

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def capi(
    status: str = TRUE, type: str = "Bootstrapped", *, reason: str = "", message: str = "", severity: str | None = None
) -> CapiCondition:
    if severity is None:
        severity = Severity.WARNING if status == FALSE else Severity.NONE
    return CapiCondition(type=type, status=status, severity=severity, reason=reason, message=message)


def metav1(
    status: str = TRUE, type: str = "Available", reason: str = "Fine", message: str = "", observed_generation: int | None = None
) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message, observed_generation=observed_generation)


# Cluster API v1beta1


def test_a_new_capi_condition_gets_the_time_in_whole_seconds() -> None:
    (condition,) = set_capi_condition((), capi(), NOON + timedelta(microseconds=987_654))
    assert condition.last_transition_time == NOON


def test_a_capi_condition_that_says_the_same_gives_back_the_same_tuple() -> None:
    conditions = set_capi_condition((), capi(FALSE, reason="NodeMissing", message="no Node"), NOON)
    assert set_capi_condition(conditions, capi(FALSE, reason="NodeMissing", message="no Node"), LATER) is conditions


@pytest.mark.parametrize(
    "changed",
    [
        capi(TRUE, reason="A", message="m"),
        capi(FALSE, reason="B", message="m"),
        capi(FALSE, reason="A", message="n"),
        capi(FALSE, reason="A", message="m", severity=Severity.ERROR),
    ],
)
def test_the_time_of_a_capi_condition_moves_when_anything_it_says_changes(changed: CapiCondition) -> None:
    conditions = set_capi_condition((), capi(FALSE, reason="A", message="m"), NOON)
    (condition,) = set_capi_condition(conditions, changed, LATER)
    assert condition.last_transition_time == LATER


def test_a_capi_condition_without_a_time_gets_one() -> None:
    (condition,) = set_capi_condition((capi(),), capi(), NOON)
    assert condition.last_transition_time == NOON


@pytest.mark.parametrize("condition", [capi(TRUE, severity="Error"), capi(UNKNOWN, severity="Info"), capi(FALSE, severity="")])
def test_a_severity_belongs_to_false_alone(condition: CapiCondition) -> None:
    with pytest.raises(ValueError, match="severity belongs to status False"):
        set_capi_condition((), condition, NOON)


# metav1


def test_the_time_of_a_metav1_condition_moves_with_its_status_only() -> None:
    conditions = set_condition((), metav1(FALSE, reason="A", message="m"), NOON)
    (told_more,) = conditions = set_condition(conditions, metav1(FALSE, reason="B", message="n", observed_generation=4), LATER)
    assert (told_more.reason, told_more.message, told_more.observed_generation) == ("B", "n", 4)
    assert told_more.last_transition_time == NOON
    (turned,) = set_condition(conditions, metav1(TRUE), LATER)
    assert turned.last_transition_time == LATER


def test_a_metav1_condition_that_says_the_same_gives_back_the_same_tuple() -> None:
    conditions = set_condition((), metav1(observed_generation=2), NOON)
    assert set_condition(conditions, metav1(observed_generation=2), LATER) is conditions


@pytest.mark.parametrize("reason", ["", "two words", "1st", "Trailing-"])
def test_a_metav1_condition_needs_a_reason_the_api_accepts(reason: str) -> None:
    with pytest.raises(ValueError, match="Available needs a reason"):
        set_condition((), metav1(reason=reason), NOON)


def test_node_conditions_follow_the_same_rule_without_a_reason() -> None:
    conditions = set_condition((), NodeCondition(type="Ready", status=TRUE), NOON)
    beat = NodeCondition(type="Ready", status=TRUE, last_heartbeat_time=LATER)
    (condition,) = set_condition(conditions, beat, LATER)
    assert (condition.last_transition_time, condition.last_heartbeat_time) == (NOON, LATER)


@pytest.mark.parametrize("status", ["true", "", "Yes"])
def test_a_status_is_one_of_three_words(status: str) -> None:
    with pytest.raises(ValueError, match="must be True, False or Unknown"):
        set_condition((), metav1(status), NOON)
    with pytest.raises(ValueError, match="must be True, False or Unknown"):
        set_capi_condition((), capi(status), NOON)


# Both

TYPES = st.sampled_from(["Ready", "Provisioned", "Bootstrapped", "Available"])
STATUSES = st.sampled_from([TRUE, FALSE, UNKNOWN])


@given(st.lists(st.tuples(TYPES, STATUSES, st.sampled_from(["", "m"])), max_size=12))
def test_after_any_history_each_type_stands_once_in_one_order_with_what_was_last_said(
    history: list[tuple[str, str, str]],
) -> None:
    old_style: tuple[CapiCondition, ...] = ()
    new_style: tuple[Condition, ...] = ()
    for minutes, (type_, status, message) in enumerate(history):
        now = NOON + timedelta(minutes=minutes)
        old_style = set_capi_condition(old_style, capi(status, type_, message=message), now)
        new_style = set_condition(new_style, metav1(status, type_, message=message), now)
    last = {type_: (status, message) for type_, status, message in history}
    expected = sorted(last, key=lambda type_: (type_ != "Ready", type_))
    assert [condition.type for condition in old_style] == [condition.type for condition in new_style] == expected
    assert {condition.type: (condition.status, condition.message) for condition in old_style} == last
    assert {condition.type: (condition.status, condition.message) for condition in new_style} == last


def test_conditions_of_others_are_never_touched() -> None:
    foreign = Condition(type="Theirs", status="odd", reason="", message="as they like it")
    conditions = set_condition((foreign,), metav1(), NOON)
    assert find(conditions, "Theirs") is foreign
    assert drop_condition(conditions, "Available") == (foreign,)
    assert drop_condition(conditions, "NotThere") is conditions


def test_a_secret_in_a_message_is_masked_before_anybody_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(observe, "sinks", [*observe.sinks, lambda kind, text: heard.append((kind, text))])
    token = Secret("correct-horse-battery")
    (condition,) = set_capi_condition((), capi(FALSE, reason="R", message=f"401 for {token.reveal()}"), NOON)
    assert condition.message == "401 for ***"
    assert heard == [("condition", "Bootstrapped: R: 401 for ***")]


def test_a_message_the_api_would_refuse_for_its_length_is_cut() -> None:
    (condition,) = set_condition((), metav1(message="x" * 50_000), NOON)
    assert len(condition.message) == LONGEST_MESSAGE_CHARS


def test_questions_about_a_condition_that_is_missing_or_unknown_are_answered_with_no() -> None:
    conditions = (capi(TRUE, "A"), capi(FALSE, "B", reason="Why"), capi(UNKNOWN, "C"))
    assert [is_true(conditions, type_) for type_ in "ABCD"] == [True, False, False, False]
    assert [is_false(conditions, type_) for type_ in "ABCD"] == [False, True, False, False]
    assert (reason_of(conditions, "B"), reason_of(conditions, "D")) == ("Why", "")


# Summary

ERROR = capi(FALSE, "A", reason="Broken", message="a person must act", severity=Severity.ERROR)
WARNING = capi(FALSE, "B", reason="Retrying", message="soon", severity=Severity.WARNING)
INFO = capi(FALSE, "C", reason="Working", message="on its way", severity=Severity.INFO)
GOOD = capi(TRUE, "D")
DONT_KNOW = capi(UNKNOWN, "E", reason="NotAsked", message="?")


@pytest.mark.parametrize(
    ("conditions", "types", "expected"),
    [
        ((GOOD,), "D", Summary(TRUE)),
        ((), "", Summary(TRUE)),
        ((INFO, WARNING, ERROR, GOOD), "ABCD", Summary(FALSE, "Error", "Broken", "a person must act")),
        ((INFO, WARNING, GOOD), "BCD", Summary(FALSE, "Warning", "Retrying", "soon")),
        ((INFO, GOOD, DONT_KNOW), "CDE", Summary(FALSE, "Info", "Working", "on its way")),
        ((GOOD, DONT_KNOW), "DE", Summary(UNKNOWN, "", "NotAsked", "?")),
        ((GOOD,), "DZ", Summary(UNKNOWN, "", "ZMissing", "Z is not reported yet")),
        ((GOOD, ERROR), "D", Summary(TRUE)),
    ],
)
def test_the_worst_condition_speaks_for_all(conditions: tuple[CapiCondition, ...], types: str, expected: Summary) -> None:
    assert summarise(conditions, types) == expected


def test_a_false_without_severity_counts_as_an_error() -> None:
    conditions = (metav1(FALSE, "A", "Why"), metav1(TRUE, "B"))
    assert summarise(conditions, "AB") == Summary(FALSE, "", "Why")
