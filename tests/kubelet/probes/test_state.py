"""What answers mean: thresholds as a kubelet counts them, and which of them may end a guest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.probes.checks import Kind, Plan, TcpCheck
from applecart.kubelet.probes.state import Answer, Health, ProbeResult, ProbeState, health, unhealthy_event

PASSED, FAILED, UNKNOWN = ProbeResult.PASSED, ProbeResult.FAILED, ProbeResult.UNKNOWN
WORDS = {"+": PASSED, "-": FAILED, "?": UNKNOWN}


def plan(kind: Kind, successes: int = 1, failures: int = 3, grace_s: int | None = None) -> Plan:
    return Plan(kind, TcpCheck(22), 0, 10, 1, successes, failures, grace_s)


def after(of: Plan, answers: str, was_good: bool = False) -> ProbeState:
    state = ProbeState.first(of.kind, was_good)
    for word in answers:
        state = state.after(Answer(WORDS[word], "no route"), of)
    return state


@pytest.mark.parametrize(
    ("kind", "answers", "is_good"),
    [
        (Kind.READINESS, "", False),
        (Kind.READINESS, "+", False),  # two successes are wanted
        (Kind.READINESS, "++", True),
        (Kind.READINESS, "+-+", False),
        (Kind.READINESS, "++--", True),
        (Kind.READINESS, "++---", False),
        (Kind.READINESS, "++--+--", True),
        (Kind.READINESS, "++???", False),
        (Kind.READINESS, "++-?-", False),
        (Kind.LIVENESS, "", True),
        (Kind.LIVENESS, "--", True),
        (Kind.LIVENESS, "---", False),
        (Kind.LIVENESS, "--+--", True),
        (Kind.LIVENESS, "?????", True),
        (Kind.STARTUP, "", False),
        (Kind.STARTUP, "--++", True),
        (Kind.STARTUP, "????", False),
    ],
)
def test_it_takes_a_threshold_of_equal_answers_to_change_a_verdict(kind: Kind, answers: str, is_good: bool) -> None:
    assert after(plan(kind, successes=2 if kind is Kind.READINESS else 1), answers).is_good is is_good


@pytest.mark.parametrize(
    ("kind", "answers", "ends"),
    [
        (Kind.LIVENESS, "---", True),
        (Kind.LIVENESS, "--?-", True),  # not being able to ask neither helps nor harms
        (Kind.LIVENESS, "--", False),
        (Kind.STARTUP, "---", True),
        (Kind.STARTUP, "--+", False),
        (Kind.READINESS, "-------", False),
    ],
)
def test_only_startup_and_liveness_end_a_guest(kind: Kind, answers: str, ends: bool) -> None:
    assert after(plan(kind), answers).ends_guest(plan(kind)) is ends


@given(st.lists(st.just("?"), max_size=50), st.sampled_from([Kind.LIVENESS, Kind.STARTUP]), st.integers(1, 5))
def test_a_host_that_cannot_ask_never_ends_a_guest(answers: list[str], kind: Kind, failures: int) -> None:
    """I12: a fault of the host must not end the job on it."""
    of = plan(kind, failures=failures)
    assert not after(of, "".join(answers)).ends_guest(of)


@given(st.text("+-?", max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_readiness_says_what_the_last_whole_run_of_answers_said(answers: str, successes: int, failures: int) -> None:
    of = plan(Kind.READINESS, successes, failures)
    bad = answers.replace("?", "-")
    last_good = bad.rfind("+" * successes) + successes if "+" * successes in bad else 0
    last_bad = bad.rfind("-" * failures) + failures if "-" * failures in bad else 0
    assert after(of, answers).is_good is (last_good > last_bad)


def test_a_guest_without_probes_is_healthy() -> None:
    assert health([]) == Health(ready=True, alive=True, started=True)


def test_a_guest_that_has_not_started_is_not_ready_whatever_its_readiness_says() -> None:
    startup, readiness = plan(Kind.STARTUP), plan(Kind.READINESS)
    found = health([(startup, after(startup, "-")), (readiness, after(readiness, "+"))])
    assert (found.started, found.ready, found.alive) == (False, False, True)
    assert found.sentence == "the startup probe failed; the last answer was: no route"


def test_a_guest_that_is_as_good_as_ended_says_which_probe_how_often_and_what_it_said() -> None:
    liveness = plan(Kind.LIVENESS, grace_s=5)
    found = health([(plan(Kind.READINESS), after(plan(Kind.READINESS), "+")), (liveness, after(liveness, "---"))])
    assert (found.ready, found.alive, found.grace_s) == (False, False, 5)
    assert found.sentence == "the liveness probe failed 3 times in a row; the last answer was: no route"


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ("", "the readiness probe has not been answered yet"),
        ("+", "the readiness probe passed 1 of 2 times"),
        ("-", "the readiness probe failed; the last answer was: no route"),
        ("?", "the readiness probe could not be asked; the last answer was: no route"),
        ("++", ""),
    ],
)
def test_a_guest_that_is_not_ready_says_why(answers: str, sentence: str) -> None:
    of = plan(Kind.READINESS, successes=2)
    assert health([(of, after(of, answers))]).sentence == sentence


def test_a_guest_that_was_ready_before_a_restart_of_the_agent_still_is() -> None:
    of = plan(Kind.READINESS)
    assert health([(of, after(of, "", was_good=True))]).ready
    assert not health([(of, after(of, "---", was_good=True))]).ready


def test_events_are_worded_as_a_kubelet_words_them() -> None:
    assert unhealthy_event(plan(Kind.READINESS), Answer(FAILED, "HTTP probe failed with statuscode: 503")) == (
        "Readiness probe failed: HTTP probe failed with statuscode: 503"
    )
    assert unhealthy_event(plan(Kind.LIVENESS), Answer(UNKNOWN, "no socket")) == (
        "Liveness probe errored and resulted in unknown state: no socket"
    )
