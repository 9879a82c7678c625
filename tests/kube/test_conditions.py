"""Conditions follow the rule of their contract, and only ours is touched."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart import observe
from applecart.api.meta import Condition
from applecart.api.nodes import NodeCondition
from applecart.kube.conditions import (
    FALSE,
    LONGEST_MESSAGE_CHARS,
    TRUE,
    UNKNOWN,
    find,
    is_true,
    set_condition,
)
from applecart.secrets import Secret

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
LATER = NOON + timedelta(minutes=5)


def metav1(
    status: str = TRUE, type: str = "Available", reason: str = "Fine", message: str = "", observed_generation: int | None = None
) -> Condition:
    return Condition(type=type, status=status, reason=reason, message=message, observed_generation=observed_generation)


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


TYPES = st.sampled_from(["Ready", "Provisioned", "Bootstrapped", "Available"])
STATUSES = st.sampled_from([TRUE, FALSE, UNKNOWN])


@given(st.lists(st.tuples(TYPES, STATUSES, st.sampled_from(["", "m"])), max_size=12))
def test_after_any_history_each_type_stands_once_in_one_order_with_what_was_last_said(
    history: list[tuple[str, str, str]],
) -> None:
    conditions: tuple[Condition, ...] = ()
    for minutes, (type_, status, message) in enumerate(history):
        now = NOON + timedelta(minutes=minutes)
        conditions = set_condition(conditions, metav1(status, type_, message=message), now)
    last = {type_: (status, message) for type_, status, message in history}
    expected = sorted(last, key=lambda type_: (type_ != "Ready", type_))
    assert [condition.type for condition in conditions] == expected
    assert {condition.type: (condition.status, condition.message) for condition in conditions} == last


def test_conditions_of_others_are_never_touched() -> None:
    foreign = Condition(type="Theirs", status="odd", reason="", message="as they like it")
    conditions = set_condition((foreign,), metav1(), NOON)
    assert find(conditions, "Theirs") is foreign


def test_a_secret_in_a_message_is_masked_before_anybody_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, str]] = []
    monkeypatch.setattr(observe, "sinks", [*observe.sinks, lambda kind, text: heard.append((kind, text))])
    token = Secret("correct-horse-battery")
    (condition,) = set_condition((), metav1(FALSE, reason="R", message=f"401 for {token.reveal()}"), NOON)
    assert condition.message == "401 for ***"
    assert heard == [("condition", "Available: R: 401 for ***")]


def test_a_message_the_api_would_refuse_for_its_length_is_cut() -> None:
    (condition,) = set_condition((), metav1(message="x" * 50_000), NOON)
    assert len(condition.message) == LONGEST_MESSAGE_CHARS


def test_questions_about_a_condition_that_is_missing_or_unknown_are_answered_with_no() -> None:
    conditions = (metav1(TRUE, "A"), metav1(FALSE, "B"), metav1(UNKNOWN, "C"))
    assert [is_true(conditions, type_) for type_ in "ABCD"] == [True, False, False, False]
