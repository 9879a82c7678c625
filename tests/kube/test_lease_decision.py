"""Who may take a Lease, as a table and as laws."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.coordination import LeaseSpec
from applecart.api.meta import instant
from applecart.errors import BadInput
from applecart.kube.lease_decision import (
    NEVER_SEEN,
    Seen,
    Step,
    Timing,
    decide,
    expires_s,
    observe,
    observe_missing,
    released,
    renewed,
    taken,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
TIMING = Timing()


def held_by(holder: str, *, since_s: float = 100.0, lease_s: int | None = 15, revision: str = "7") -> Seen:
    spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=lease_s, renew_time="2026-03-01T12:00:00.000000Z")
    return Seen(spec, revision, since_s)


@pytest.mark.parametrize(
    ("seen", "now_s", "step"),
    [
        (NEVER_SEEN, 0.0, Step.CREATE),
        (Seen(LeaseSpec(), "7", 100.0), 100.0, Step.TAKE),
        (held_by(""), 100.0, Step.TAKE),
        (held_by("me"), 100.0, Step.RENEW),
        (held_by("me"), 9999.0, Step.RENEW),
        (held_by("me", revision=""), 100.0, Step.CREATE),
        (held_by("other"), 100.0, Step.WAIT),
        (held_by("other"), 114.9, Step.WAIT),
        (held_by("other"), 115.0, Step.TAKE),
        (held_by("other", lease_s=60), 159.0, Step.WAIT),
        (held_by("other", lease_s=60), 160.0, Step.TAKE),
        (held_by("other", lease_s=None), 114.9, Step.WAIT),
        (held_by("other", revision=""), 114.9, Step.WAIT),
        (held_by("other", revision=""), 115.0, Step.CREATE),
    ],
)
def test_a_candidate_does_what_the_record_allows(seen: Seen, now_s: float, step: Step) -> None:
    assert decide(seen, "me", now_s, TIMING) is step


SPECS = st.builds(
    LeaseSpec,
    holder_identity=st.sampled_from([None, "", "me", "other"]),
    lease_duration_seconds=st.sampled_from([None, 1, 15, 60]),
    renew_time=st.sampled_from([None, "1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"]),
    lease_transitions=st.none() | st.integers(0, 5),
)
SEEN = st.builds(Seen, SPECS, st.sampled_from(["", "7"]), st.floats(0, 1000))


@given(SEEN, st.floats(0, 3000), st.sampled_from(["1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"]))
def test_the_other_holders_clock_decides_nothing(seen: Seen, now_s: float, stamp: str) -> None:
    spec = seen.spec
    other = LeaseSpec(
        holder_identity=spec.holder_identity, lease_duration_seconds=spec.lease_duration_seconds, renew_time=stamp
    )
    assert decide(seen, "me", now_s, TIMING) is decide(Seen(other, seen.revision, seen.since_s), "me", now_s, TIMING)


@given(SEEN, st.floats(0, 3000))
def test_nobody_takes_a_lease_before_its_holders_time_is_over(seen: Seen, now_s: float) -> None:
    if seen.holder not in ("", "me") and now_s < expires_s(seen, TIMING):
        assert decide(seen, "me", now_s, TIMING) is Step.WAIT
    else:
        assert decide(seen, "me", now_s, TIMING) is not Step.WAIT


def is_blank(spec: LeaseSpec) -> bool:
    return not spec.holder_identity and not spec.renew_time


@given(SEEN, SPECS, st.floats(0, 1000))
def test_only_a_change_of_the_record_prolongs_the_holders_time(seen: Seen, spec: LeaseSpec, later_s: float) -> None:
    now_s = seen.since_s + later_s
    after = observe(seen, spec, "8", now_s)
    assert after.since_s == (seen.since_s if is_blank(spec) or spec == seen.spec else now_s)
    assert after.revision == "8"


@given(SEEN, st.floats(0, 3000))
def test_a_lease_that_was_deleted_or_made_anew_does_not_cut_the_holders_time_short(seen: Seen, now_s: float) -> None:
    """A holder that makes its deleted Lease again must not give every standby a moment to take it."""
    gone = observe_missing(seen)
    assert (gone.spec, gone.revision, gone.since_s) == (seen.spec, "", seen.since_s)
    anew = observe(gone, LeaseSpec(), "8", now_s)
    must_wait = decide(seen, "me", now_s, TIMING) is Step.WAIT
    assert (decide(gone, "me", now_s, TIMING) is Step.WAIT) == must_wait
    assert (decide(anew, "me", now_s, TIMING) is Step.WAIT) == must_wait


@given(SPECS, st.sampled_from([timedelta(), timedelta(hours=-1), timedelta(microseconds=1)]))
def test_every_write_of_a_holder_looks_different_to_the_others(spec: LeaseSpec, step: timedelta) -> None:
    first = taken(spec, "me", NOON, TIMING)
    held = LeaseSpec(holder_identity="me", lease_duration_seconds=15, renew_time=first["renewTime"])
    second = renewed(held, "me", NOON + step, TIMING)
    assert second["renewTime"] != first["renewTime"]
    assert abs((instant(second["renewTime"]) or NOON) - NOON - step) <= timedelta(microseconds=1)
    assert released(held, NOON)["renewTime"] != first["renewTime"]


def test_transitions_are_counted_from_the_first_holder_on() -> None:
    first = taken(LeaseSpec(), "me", NOON, TIMING)
    assert (first["leaseTransitions"], first["acquireTime"]) == (0, "2026-03-01T12:00:00.000000Z")
    assert taken(LeaseSpec(holder_identity="x", lease_transitions=4), "me", NOON, TIMING)["leaseTransitions"] == 5
    foreign = LeaseSpec(holder_identity="x", renew_time="2026-03-01T11:00:00.000000Z")
    assert taken(foreign, "me", NOON, TIMING)["leaseTransitions"] == 1
    assert "leaseTransitions" not in renewed(LeaseSpec(lease_transitions=4), "me", NOON, TIMING)
    assert released(LeaseSpec(), NOON)["holderIdentity"] == ""


@pytest.mark.parametrize(
    ("lease_s", "renew_deadline_s", "retry_s", "complaint"),
    [
        (15, 10, 0, "retry period must be above 0 s"),
        (15, 2.4, 2, "renew deadline .2.4 s. must be longer than the retry period"),
        (15, 15, 2, "lease duration .15 s, less 5% for clock drift. must be longer than the renew deadline"),
        (10, 9.5, 2, "must be longer than the renew deadline .9.5 s."),
    ],
)
def test_times_that_cannot_be_safe_are_refused_with_a_sentence(
    lease_s: int, renew_deadline_s: float, retry_s: float, complaint: str
) -> None:
    with pytest.raises(BadInput, match=complaint):
        Timing(lease_s, renew_deadline_s, retry_s)


@given(st.integers(1, 600), st.floats(0.1, 600), st.floats(0.01, 60))
def test_times_that_are_accepted_leave_room_for_stopping_before_anybody_else_starts(
    lease_s: int, renew_deadline_s: float, retry_s: float
) -> None:
    try:
        timing = Timing(lease_s, renew_deadline_s, retry_s)
    except BadInput:
        return
    assert 0 < timing.retry_s < timing.renew_deadline_s < timing.safe_s < timing.lease_s
    assert timing.stop_margin_s > 0
