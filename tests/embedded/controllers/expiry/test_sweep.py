"""Expiry at work on the embedded API in memory, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.events import Event
from applecart.api.meta import Key, ObjectMeta, micro_time
from applecart.api.nodes import Node
from applecart.api.pods import ObjectReference
from applecart.clock import Clock, VirtualClock
from applecart.embedded.controllers.expiry.plan import Expire, dated, plan_events
from applecart.embedded.controllers.expiry.sweep import Expiry, run_expiry
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Merge
from tests.kube.faults import FaultyTransport, Refused, always
from tests.virtual_time import elapse


@pytest.fixture
def client(network: FaultyTransport, clock: Clock) -> Client:
    return Client(network, clock)


@asynccontextmanager
async def expiring(client: Client, *, with_events: bool = True) -> AsyncIterator[None]:
    task = asyncio.create_task(run_expiry(client, client.clock, with_events=with_events))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def tell(client: Client, name: str, namespace: str = "default") -> Event:
    now = client.clock.now().replace(microsecond=0)
    about = ObjectReference(kind="Pod", namespace=namespace, name="runner", api_version="v1")
    return await client.create(
        Event(
            metadata=ObjectMeta(name=name, namespace=namespace),
            involved_object=about,
            type="Normal",
            reason="Told",
            first_timestamp=now,
            last_timestamp=now,
            count=1,
        )
    )


async def hold(client: Client, name: str) -> Lease:
    spec = LeaseSpec(holder_identity=name, lease_duration_seconds=40, renew_time=micro_time(client.clock.now()))
    return await client.create(Lease(metadata=ObjectMeta(name=name, namespace="kube-node-lease"), spec=spec))


async def names(client: Client, kind: type[Event] | type[Lease]) -> set[str]:
    return {found.name for found in await client.list(kind)}


async def test_events_go_after_an_hour_and_newer_ones_stay(client: Client) -> None:
    async with expiring(client):
        await tell(client, "old")
        await elapse(3000)
        await tell(client, "new")
        assert await names(client, Event) == {"old", "new"}
        await elapse(1000)
        assert await names(client, Event) == {"new"}


async def test_an_event_that_is_counted_up_lives_on(client: Client) -> None:
    async with expiring(client):
        told = await tell(client, "again")
        await elapse(3000)
        now = client.clock.now().replace(microsecond=0)
        await client.patch(Event, told.key, Merge({"count": 2, "lastTimestamp": now}))
        await elapse(3000)
        assert await names(client, Event) == {"again"}
        await elapse(1000)
        assert await names(client, Event) == set()


async def test_where_etcd_expires_events_they_are_left_to_it(client: Client) -> None:
    async with expiring(client, with_events=False):
        await tell(client, "old")
        await elapse(10_000)
        assert await names(client, Event) == {"old"}


async def test_an_event_that_is_written_between_judgement_and_deletion_stays(client: Client) -> None:
    told = await tell(client, "raced")
    await elapse(4000)
    plan = plan_events([dated(told)], client.clock.now())
    await client.patch(Event, told.key, Merge({"count": 2}))
    await Expiry(client, client.clock).carry_out(plan)
    assert await names(client, Event) == {"raced"}


async def test_a_lease_that_is_renewed_between_judgement_and_deletion_stays(client: Client) -> None:
    held = await hold(client, "mac-7")
    step = Expire(Lease, held.key, held.uid, held.revision, "nobody renewed it")
    await client.patch(Lease, held.key, Merge({"spec": {"renewTime": micro_time(client.clock.now() + timedelta(seconds=1))}}))
    await Expiry(client, client.clock).carry_out([step])
    assert await client.get(Lease, held.key)


async def test_a_lease_of_a_host_that_left_goes_and_that_of_a_node_stays(client: Client) -> None:
    async with expiring(client):
        await client.create(Node(metadata=ObjectMeta(name="stays")))
        await hold(client, "stays")
        await hold(client, "left")
        await elapse(3500)
        assert await names(client, Lease) == {"stays", "left"}
        await elapse(800)
        assert await names(client, Lease) == {"stays"}


async def test_leases_elsewhere_are_nobodys_business(client: Client) -> None:
    async with expiring(client):
        spec = LeaseSpec(holder_identity="a", lease_duration_seconds=15)
        await client.create(Lease(metadata=ObjectMeta(name="leader", namespace="kube-system"), spec=spec))
        await elapse(100_000)
        assert await client.get(Lease, Key("kube-system", "leader"))


async def test_a_jump_of_the_wall_clock_expires_no_lease(client: Client, clock: VirtualClock) -> None:
    async with expiring(client):
        await hold(client, "left")
        await elapse(600)
        clock.jump(timedelta(days=1))
        await elapse(600)
        assert await names(client, Lease) == {"left"}


async def test_an_outage_is_survived(client: Client, network: FaultyTransport) -> None:
    async with expiring(client):
        told = await tell(client, "old")
        network.plan = always(Refused())
        await elapse(7200)
        network.heal()
        assert await client.get(Event, told.key)
        await elapse(400)
        with pytest.raises(NotFound):
            await client.get(Event, told.key)


async def test_thousands_of_events_are_read_in_pages(client: Client, network: FaultyTransport) -> None:
    for number in range(1200):
        await tell(client, f"e-{number}")
    network.calls.clear()
    await Expiry(client, client.clock).sweep()
    lists = [call for call in network.calls if call.path == "/api/v1/events"]
    assert len(lists) == 3
