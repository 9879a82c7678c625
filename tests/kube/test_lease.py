"""How a Lease is held, and by whom."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import Key, ObjectMeta, instant
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput
from applecart.kube.client import Client
from applecart.kube.lease import (
    LAST_WORDS_S,
    NEVER_SEEN,
    RELEASE_S,
    STAMPS_ON_THEIR_WAY,
    LeaseHold,
    Seen,
    Standing,
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
from applecart.kube.patch import Merge
from applecart.kube.transport import Request, Transport
from tests.kube.faults import FaultyTransport, Hung, Lost, Refused, Says, always, in_turn
from tests.kube.stuck import Between
from tests.virtual_time import elapse

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
TIMING = Timing()

KEY = Key("test", "provider")


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


@pytest.mark.parametrize(("now_s", "step"), [(114.9, Step.WAIT), (115.0, Step.TAKE)])
def test_a_namesake_is_another_process(now_s: float, step: Step) -> None:
    assert decide(held_by("me"), "me", now_s, TIMING, is_namesakes=True) is step


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
        (9, 5, 2, "lease duration .9 s. must be at least 10 s"),
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
    assert timing.safe_s + LAST_WORDS_S <= timing.lease_s


class Table:
    """One Lease, and the wire of one candidate to it."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.api = running.transport()
        self.clock = clock
        self.wire = FaultyTransport(self.api)
        self.hold = self.candidate("me", self.wire)

    def candidate(self, name: str, transport: Transport) -> LeaseHold:
        return LeaseHold(Client(transport, self.clock), KEY, name, self.clock, Timing())

    async def lease(self) -> Lease:
        return await Client(self.api, self.clock).get(Lease, KEY)

    def methods(self) -> list[str]:
        return [call.method for call in self.wire.calls]


@pytest.fixture
async def table(running: RunningApi, clock: Clock) -> Table:
    return Table(running, clock)


async def test_the_first_candidate_makes_the_lease_and_takes_it(table: Table) -> None:
    assert await table.hold.attempt() is Standing.LEADER
    assert table.methods() == ["GET", "POST", "PATCH"]
    assert (await table.lease()).holder == "me"
    assert table.hold.is_safe()


async def test_a_holder_renews_with_one_call_and_never_with_a_put(table: Table) -> None:
    await table.hold.attempt()
    table.wire.calls.clear()
    for _ in range(3):
        assert await table.hold.attempt() is Standing.LEADER
    assert table.methods() == ["PATCH"] * 3
    assert all(b"resourceVersion" in (call.body or b"") for call in table.wire.calls)


async def test_a_label_on_the_lease_costs_the_holder_one_more_look(table: Table) -> None:
    await table.hold.attempt()
    await Client(table.api, table.clock).patch(Lease, KEY, Merge({"metadata": {"labels": {"x": "1"}}}))
    table.wire.calls.clear()
    assert await table.hold.attempt() is Standing.LEADER
    assert table.methods() == ["PATCH", "GET", "PATCH"]
    assert (await table.lease()).labels == {"x": "1"}


async def test_a_renewal_counts_from_before_it_was_sent(table: Table) -> None:
    await table.hold.attempt()
    await elapse(2)
    table.wire.plan = in_turn([Says(503, retry_after_s=2)])
    assert await table.hold.attempt() is Standing.LEADER
    took_s = table.clock.monotonic() - 2
    assert took_s >= 2
    assert table.hold.left_s(10) == pytest.approx(10 - took_s)


async def test_a_renewal_whose_answer_was_lost_does_not_count_until_the_next(table: Table) -> None:
    await table.hold.attempt()
    await elapse(2)
    table.wire.plan = always(Lost())
    assert await table.hold.attempt() is Standing.UNSURE
    assert table.hold.left_s(10) < 8
    table.wire.heal()
    assert await table.hold.attempt() is Standing.LEADER
    assert table.hold.left_s(10) == pytest.approx(10, abs=0.1)
    assert (await table.lease()).spec.lease_transitions == 0


async def test_an_api_that_hangs_is_given_up_in_time_for_a_second_try(table: Table) -> None:
    await table.hold.attempt()
    table.wire.plan = always(Hung())
    assert await table.hold.attempt() is Standing.UNSURE
    assert table.clock.monotonic() == pytest.approx(5)


async def test_a_standby_knows_how_long_the_holder_is_safe_from_it(table: Table) -> None:
    await table.candidate("other", table.api).attempt()
    assert await table.hold.attempt() is Standing.STANDBY
    assert table.hold.holder == "other"
    assert table.hold.others_left_s() == pytest.approx(15)
    await elapse(15)
    assert await table.hold.attempt() is Standing.LEADER
    assert (await table.lease()).spec.lease_transitions == 1


async def test_of_two_that_take_at_the_same_time_one_does(table: Table) -> None:
    others = [table.candidate(f"other-{number}", table.api) for number in range(5)]
    standings = await asyncio.gather(table.hold.attempt(), *(other.attempt() for other in others))
    assert standings.count(Standing.LEADER) == 1


async def test_an_outage_is_said_once_and_again_when_it_comes_back(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        table.wire.plan = always(Refused())
        for _ in range(5):
            assert await table.hold.attempt() is Standing.UNSURE
        table.wire.heal()
        await table.hold.attempt()
    complaints = [record for record in caplog.records if "cannot use its Lease" in record.message]
    assert len(complaints) == 2


async def test_releasing_empties_the_record_and_keeps_the_count(table: Table) -> None:
    await table.hold.attempt()
    await table.hold.release()
    lease = await table.lease()
    assert (lease.holder, lease.spec.lease_transitions) == ("", 0)
    assert not table.hold.is_safe()


async def test_releasing_tries_again_when_somebody_changed_the_record_in_between(table: Table) -> None:
    label = Merge({"metadata": {"labels": {"seen-by": "a-person"}}})
    has_meddled = False

    async def meddle(request: Request) -> None:
        nonlocal has_meddled
        if request.method == "PATCH" and not has_meddled and hold.takes:
            has_meddled = True
            await Client(table.api, table.clock).patch(Lease, KEY, label)

    hold = table.candidate("me", Between(table.wire, meddle))
    assert await hold.attempt() is Standing.LEADER
    await hold.release()
    assert has_meddled
    assert (await table.lease()).holder == ""


async def test_a_lease_that_is_gone_needs_no_release(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    await table.hold.attempt()
    await Client(table.api, table.clock).delete(Lease, KEY)
    table.wire.calls.clear()
    await table.hold.release()
    assert table.methods() == ["GET"]
    assert "could not release" not in caplog.text


async def test_releasing_leaves_another_holder_alone(table: Table) -> None:
    await table.hold.attempt()
    other = table.candidate("other", table.api)
    await other.attempt()
    await elapse(15)
    await other.attempt()
    await table.hold.release()
    assert (await table.lease()).holder == "other"


async def test_releasing_gives_up_on_an_api_that_hangs(table: Table) -> None:
    await table.hold.attempt()
    table.wire.plan = always(Hung())
    await table.hold.release()
    assert table.clock.monotonic() == pytest.approx(RELEASE_S)


async def test_a_lease_that_another_makes_at_the_same_time_is_looked_at_again(table: Table) -> None:
    async def made_before(request: Request) -> None:
        if request.method == "POST":
            await Client(table.api, table.clock).create(Lease(metadata=ObjectMeta(name=KEY.name, namespace=KEY.namespace)))

    hold = table.candidate("me", Between(table.wire, made_before))
    assert await hold.attempt() is Standing.LEADER
    assert hold.complaint == ""


async def test_a_record_with_our_name_and_a_stamp_of_somebody_else_is_not_ours(table: Table) -> None:
    """Two processes of one name each found it in the record, and both worked."""
    assert await table.hold.attempt() is Standing.LEADER
    namesake = Client(table.api, table.clock)
    await namesake.patch(Lease, KEY, Merge({"spec": {"renewTime": "2031-01-01T00:00:00.000000Z"}}))
    assert await table.hold.attempt() is Standing.STANDBY
    assert not table.hold.is_safe()
    await table.hold.release()
    assert (await table.lease()).holder == "me"


@pytest.mark.parametrize("is_answered", [True, False])
async def test_a_holder_knows_its_own_record_after_any_number_of_refused_renewals(
    table: Table, caplog: pytest.LogCaptureFixture, is_answered: bool
) -> None:
    """After a hundred it took its own Lease for a namesake's, and anew when the right to write came back."""
    await table.hold.attempt()
    if not is_answered:
        table.wire.plan = lambda request: Lost() if request.method == "PATCH" else None
        await table.hold.attempt()
    table.wire.plan = lambda request: Says(403) if request.method == "PATCH" else None
    for _ in range(2 * STAMPS_ON_THEIR_WAY):
        await elapse(2)
        assert await table.hold.attempt() is Standing.UNSURE
    table.wire.heal()
    assert await table.hold.attempt() is Standing.LEADER
    assert table.hold.takes == 1
    assert "in our name" not in caplog.text
