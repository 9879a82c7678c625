"""What one candidate learns and writes, call by call."""

import asyncio

import pytest

from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.lease_decision import Timing
from applecart.kube.lease_hold import RELEASE_S, LeaseHold, Standing
from applecart.kube.patch import Merge
from applecart.kube.transport import Transport
from tests.kube.faults import FaultyTransport, Hung, Lost, Refused, Says, always, in_turn
from tests.virtual_time import elapse

KEY = Key("test", "provider")


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
