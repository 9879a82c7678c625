"""Which Events and Leases may go, and expiry at work on the embedded API in memory, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.events import Event, EventSeries
from applecart.api.meta import Key, ObjectMeta, OwnerReference, micro_time
from applecart.api.nodes import Node
from applecart.api.pods import ObjectReference
from applecart.clock import EPOCH, Clock, VirtualClock
from applecart.embedded.controllers import expiry
from applecart.embedded.controllers.expiry import Dated, Expire, Expiry, LeaseWatch, dated, plan_events
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge
from tests.embedded.controllers.stages import run_alone
from tests.kube.faults import FaultyTransport, Refused, always
from tests.virtual_time import elapse

HOUR = timedelta(hours=1)
OWNER = OwnerReference(api_version="v1", kind="Node", name="mac-1", uid="uid-mac-1")


def event(*, created: datetime | None = None, **times: object) -> Event:
    metadata = ObjectMeta(name="e", namespace="default", uid="u", resource_version="7", creation_timestamp=created)
    return Event(metadata=metadata, involved_object=ObjectReference(), **times)  # type: ignore[arg-type]


def aged(age: timedelta, name: str = "e", namespace: str = "default") -> Dated:
    return Dated(EPOCH - age, Key(namespace, name), f"uid-{name}", "1")


def lease(name: str = "mac-1", revision: str = "1", *, is_owned: bool = False, deleted_at: datetime | None = None) -> Lease:
    metadata = ObjectMeta(
        name=name,
        namespace="kube-node-lease",
        uid=f"uid-{name}",
        resource_version=revision,
        owner_references=(OWNER,) if is_owned else (),
        deletion_timestamp=deleted_at,
    )
    return Lease(metadata=metadata)


@pytest.mark.parametrize(
    "told",
    [
        event(created=EPOCH),
        event(created=EPOCH - HOUR, last_timestamp=EPOCH),
        event(created=EPOCH - HOUR, first_timestamp=EPOCH - HOUR, last_timestamp=EPOCH),
        event(created=EPOCH - HOUR, event_time=micro_time(EPOCH)),
        event(created=EPOCH - HOUR, series=EventSeries(count=2, last_observed_time=micro_time(EPOCH))),
        event(created=EPOCH, event_time="yesterday", series=EventSeries(last_observed_time="")),
        event(created=EPOCH, last_timestamp=(EPOCH - HOUR).replace(tzinfo=None)),
    ],
)
def test_an_event_is_as_old_as_its_newest_date(told: Event) -> None:
    assert dated(told) == Dated(EPOCH, Key("default", "e"), "u", "7")


def test_an_event_without_any_date_is_as_old_as_can_be() -> None:
    assert [step.key.name for step in plan_events([dated(event())], EPOCH)] == ["e"]


@pytest.mark.parametrize(
    ("age", "goes"),
    [(timedelta(), False), (HOUR, False), (HOUR + timedelta(seconds=1), True), (-timedelta(days=1), False)],
)
def test_an_event_lives_for_an_hour(age: timedelta, goes: bool) -> None:
    assert bool(plan_events([aged(age)], EPOCH)) is goes


def test_a_namespace_keeps_only_its_newest_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "EVENTS_PER_NAMESPACE", 2)
    events = [aged(timedelta(minutes=age), f"e{age}") for age in (1, 4, 2, 3)]
    quiet = [aged(timedelta(minutes=9), "other", "quiet")]
    assert [step.key.name for step in plan_events([*events, *quiet], EPOCH)] == ["e4", "e3"]


@given(st.lists(st.integers(-7200, 7200), max_size=40, unique=True), st.integers(0, 7200))
def test_a_later_look_never_spares_what_an_earlier_one_expired(ages: list[int], later_s: int) -> None:
    events = [aged(timedelta(seconds=age), f"e{number}") for number, age in enumerate(ages)]
    now = {step.key for step in plan_events(events, EPOCH)}
    later = {step.key for step in plan_events(events, EPOCH + timedelta(seconds=later_s))}
    assert now <= later


def test_a_lease_of_a_lost_host_goes_when_nobody_renewed_it_for_an_hour() -> None:
    watch = LeaseWatch()
    assert watch.plan([lease()], set(), 0) == []
    assert watch.plan([lease()], set(), 3600) == []
    (step,) = watch.plan([lease()], set(), 3601)
    assert (step.key, step.revision) == (Key("kube-node-lease", "mac-1"), "1")
    assert step.because == "Node mac-1 is gone and nobody renewed its Lease for 3601 s"


@pytest.mark.parametrize(
    ("stored", "nodes"),
    [(lease(), {"mac-1"}), (lease(is_owned=True), set()), (lease(deleted_at=EPOCH), set())],
    ids=["its node exists", "it has an owner", "it is going"],
)
def test_a_lease_stays(stored: Lease, nodes: set[str]) -> None:
    watch = LeaseWatch()
    watch.plan([stored], nodes, 0)
    assert watch.plan([stored], nodes, 100_000) == []


def test_a_renewal_begins_the_hour_anew() -> None:
    watch = LeaseWatch()
    watch.plan([lease()], set(), 0)
    watch.plan([lease(revision="2")], set(), 3000)
    assert watch.plan([lease(revision="2")], set(), 6600) == []
    assert len(watch.plan([lease(revision="2")], set(), 6601)) == 1


def test_a_lease_that_went_and_came_back_is_a_new_one() -> None:
    watch = LeaseWatch()
    watch.plan([lease()], set(), 0)
    watch.plan([], set(), 1800)
    assert watch.plan([lease()], set(), 3601) == []


@given(st.lists(st.tuples(st.floats(0, 2000), st.booleans()), max_size=20))
def test_a_lease_renewed_within_the_hour_never_goes(steps: list[tuple[float, bool]]) -> None:
    watch, now_s, revision, since_s = LeaseWatch(), 0.0, 1, 0.0
    watch.plan([lease(revision="1")], set(), now_s)
    for step_s, is_renewed in steps:
        now_s += step_s
        if is_renewed:
            revision, since_s = revision + 1, now_s
        assert bool(watch.plan([lease(revision=str(revision))], set(), now_s)) == (now_s - since_s > 3600)


@pytest.fixture
def client(network: FaultyTransport, clock: Clock) -> Client:
    return Client(network, clock)


@asynccontextmanager
async def expiring(client: Client, *, with_events: bool = True) -> AsyncIterator[None]:
    task = asyncio.create_task(run_alone(Expiry, client, with_events=with_events))
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
    await Expiry(Manager(client)).carry_out(plan)
    assert await names(client, Event) == {"raced"}


async def test_a_lease_that_is_renewed_between_judgement_and_deletion_stays(client: Client) -> None:
    held = await hold(client, "mac-7")
    step = Expire(Lease, held.key, held.uid, held.revision, "nobody renewed it")
    await client.patch(Lease, held.key, Merge({"spec": {"renewTime": micro_time(client.clock.now() + timedelta(seconds=1))}}))
    await Expiry(Manager(client)).carry_out([step])
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
    await Expiry(Manager(client)).sweep()
    lists = [call for call in network.calls if call.path == "/api/v1/events"]
    assert len(lists) == 3
