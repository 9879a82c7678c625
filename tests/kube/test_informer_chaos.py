"""Whatever the network does and however long, the informer ends up equal to a fresh list and never told a lie.

On virtual time: outages of hours, compaction under a running list, frozen streams, half lines and repeated bytes take
milliseconds, and a failing schedule shrinks to its smallest form.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.meta import Key
from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.informer import Informer, Tuning
from applecart.kube.patch import Merge
from tests.kube.chaos_history import History, state_of
from tests.kube.embedded_api import forget, serving
from tests.kube.faults import (
    Cut,
    Ends,
    Fault,
    FaultyTransport,
    Hung,
    Lost,
    Refused,
    Repeats,
    RepeatsLines,
    Says,
    Slow,
    Stalls,
    always,
    in_turn,
)
from tests.kube.objects import config_map
from tests.virtual_time import elapse

NAMESPACE = "ci"
MINE = {"pool": "mine"}
TUNING = Tuning(page_size=2)  # small pages, so that a list is more than one call
CRAWL_S = 3.0  # long enough for several writes between two pages of a list
# A frozen stream is noticed after 150 s, a hung call after 30 s, and the longest rest between attempts is 30 s.
CONVERGES_WITHIN_S = 300.0


class Step(msgspec.Struct, frozen=True, tag=True):
    pass


class Write(Step, frozen=True):
    """Bring an object about or change it, move it in or out of the selector, remove it, or replace it by another."""

    verb: str
    name: str


class Pass(Step, frozen=True):
    seconds: float


class Outage(Step, frozen=True):
    """Nobody reaches the server for so long; half-way, these things happen to it."""

    seconds: float
    meanwhile: tuple[Step, ...] = ()


class Crawl(Step, frozen=True):
    """Every call is slow, the stream is gone, and these things happen to the server while the informer catches up."""

    meanwhile: tuple[Step, ...] = ()


class Through(Step, frozen=True):
    """A fresh stream that a fault strikes while these writes go through it."""

    fault: Fault
    writes: tuple[Step, ...] = ()


class Meet(Step, frozen=True):
    """The next requests meet these faults."""

    faults: tuple[Fault | None, ...]


class Strike(Step, frozen=True):
    """`sever` or `freeze` what is open, or `compact` the server."""

    what: str


offsets = st.integers(0, 1500)  # an event is about 300 bytes
stream_faults = st.one_of(
    st.builds(Cut, offsets),
    st.builds(Ends, offsets),
    st.builds(Stalls, offsets),
    # Whole lines only: a transport hands on the bytes that were sent, because chunk lengths and TLS show every other change
    # (the chaos proxy repeats bytes anywhere, below them).
    st.builds(RepeatsLines, offsets, st.integers(1, 3)),
)
faults = st.one_of(
    stream_faults,
    st.sampled_from([Refused(), Lost(), Hung()]),
    st.builds(Slow, st.floats(0.1, 40)),
    st.builds(Says, st.sampled_from([409, 410, 429, 500, 503]), st.sampled_from([None, 1, 90])),
)
names = st.sampled_from(["a", "b", "c", "d", "e"])
writes = st.builds(Write, st.sampled_from(["put", "put", "move", "remove", "replace"]), names)
happenings = st.lists(st.one_of(writes, writes, st.just(Strike("compact"))), max_size=6).map(tuple)
steps = st.one_of(
    writes,
    writes,
    st.builds(Pass, st.one_of(st.floats(0, 2), st.floats(0, 7200))),
    st.builds(
        Outage,
        st.one_of(st.floats(0, 60), st.floats(60, 2 * 3600)),
        happenings,
    ),
    st.builds(Crawl, happenings),
    st.builds(Through, stream_faults, st.lists(writes, max_size=8).map(tuple)),
    st.builds(Meet, st.lists(st.one_of(st.none(), faults), max_size=5).map(tuple)),
    st.builds(Strike, st.sampled_from(["sever", "freeze", "compact"])),
)


class World:
    """A server that is written to directly, and an informer that follows it through a bad network."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.running = running
        self.writer = Client(running.transport(), clock)
        self.network = FaultyTransport(running.transport())
        self.history = History()
        self.informer = Informer(Client(self.network, clock), ConfigMap, NAMESPACE, labels="pool=mine", tuning=TUNING)
        self.informer.on_change(self.history.take)
        self.existed: set[tuple[Key, str, str]] = set()
        self._version = 0

    async def take(self, step: Step) -> None:
        match step:
            case Write(verb, name):
                await self._write(verb, Key(NAMESPACE, name))
            case Pass(seconds):
                await elapse(seconds)
            case Outage(seconds, meanwhile):
                self.network.plan = always(Refused())
                self.network.sever()
                await elapse(seconds / 2)
                for inner in meanwhile:
                    await self.take(inner)
                await elapse(seconds / 2)
                self.network.heal()
            case Crawl(meanwhile):
                self.network.plan = always(Slow(CRAWL_S))
                self.network.sever()
                for inner in meanwhile:
                    await self.take(inner)
                    await elapse(CRAWL_S * 0.7)
                self.network.heal()
            case Through(fault, written):
                self.network.plan = in_turn([fault])
                self.network.sever()
                await elapse(TUNING.pace.first_s)
                for inner in written:
                    await self.take(inner)
                await elapse(TUNING.pace.first_s)
            case Meet(coming):
                self.network.plan = in_turn(coming)
            case Strike("sever"):
                self.network.sever()
            case Strike("freeze"):
                self.network.freeze()
            case Strike("compact"):
                await forget(self.running)

    async def _write(self, verb: str, key: Key) -> None:
        if verb == "replace":
            await self._write("remove", key)
        self._version += 1
        exists = self.running.store.table(ConfigMap.resource.label).get(key) is not None
        if verb == "remove":
            if exists:
                await self.writer.delete(ConfigMap, key)
            return
        if not exists:
            written = await self.writer.create(config_map(*key, labels=MINE, version=str(self._version)))
        elif verb == "put":
            written = await self.writer.patch(ConfigMap, key, Merge({"data": {"version": str(self._version)}}))
        else:
            pool = (await self.writer.get(ConfigMap, key)).labels["pool"]
            other = {"pool": "mine" if pool == "theirs" else "theirs"}
            written = await self.writer.patch(ConfigMap, key, Merge({"metadata": {"labels": other}}))
        self.existed.add((key, written.uid, written.revision))

    async def converge(self) -> None:
        """Heal, and wait until the informer knows what a fresh list says."""
        self.network.heal()
        fresh = state_of(await self.writer.list(ConfigMap, NAMESPACE, labels="pool=mine"))
        async with asyncio.timeout(CONVERGES_WITHIN_S):
            await self.informer.synced()
            await self.informer.wait_until(lambda: state_of(self.informer) == fresh)
        assert self.history.live == fresh


@asynccontextmanager
async def following() -> AsyncIterator[World]:
    """A world whose informer runs."""
    clock = VirtualClock(asyncio.get_running_loop())
    async with serving(clock, [NAMESPACE]) as running:
        world = World(running, clock)
        task = asyncio.ensure_future(world.informer.run())
        try:
            yield world
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def play(schedule: list[Step]) -> None:
    async with following() as world:
        for step in schedule:
            await world.take(step)
        await world.converge()
        # And it keeps following: what happens after the trouble arrives without a relist.
        await world.take(Write("put", "z"))
        await world.informer.wait_until(lambda: world.informer.get(Key(NAMESPACE, "z")) is not None)
    assert world.history.problems == []
    assert world.history.told <= world.existed


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(steps, max_size=25))
def test_after_any_schedule_the_informer_equals_a_fresh_list_and_told_a_consistent_history(schedule: list[Step]) -> None:
    run_virtual(play(schedule))
    for kind, count in Counter(type(step).__name__ for step in schedule).items():
        event(kind, count)


SEEN = [Write("put", "a"), Write("put", "b"), Write("put", "c"), Pass(1)]


@pytest.mark.parametrize(
    "schedule",
    [
        [*SEEN, Outage(6 * 3600), Write("remove", "a")],
        [*SEEN, Strike("freeze"), Write("remove", "a"), Write("put", "b"), Strike("compact"), Pass(7200)],
        # Gone and back under the same name, while nobody looked and the server forgot.
        [*SEEN, Strike("freeze"), Write("remove", "a"), Write("put", "a"), Strike("compact")],
        # An object goes and the snapshot is compacted while a list is between its pages: the first pages must not count.
        [
            *SEEN,
            *(Write("put", "d"), Write("put", "e"), Pass(5)),
            Crawl(
                (
                    *(Write("put", "a"), Strike("compact"), Write("put", "b"), Write("put", "b")),
                    *(Write("remove", "a"), Strike("compact"), Pass(9)),
                )
            ),
        ],
        # Events come twice, as whole lines that decode.
        [*SEEN, Through(RepeatsLines(300, 2), (Write("put", "a"),) * 5)],
        # An object leaves the selector during an outage, which looks like a deletion.
        [*SEEN, Meet((Refused(),) * 9), Strike("sever"), Write("move", "a"), Pass(60), Write("move", "a")],
    ],
)
def test_the_schedules_that_people_meet(schedule: list[Step]) -> None:
    run_virtual(play(schedule))


@pytest.mark.parametrize("fault", [Cut(70), Ends(70), Stalls(70), Repeats(70, 30), Cut(), Ends(), Stalls()], ids=repr)
def test_a_stream_that_breaks_inside_an_event_loses_nothing(fault: Fault) -> None:
    schedule = [*SEEN, Meet((fault,)), Strike("sever"), Pass(1), Write("put", "a"), Write("remove", "b"), Pass(1)]
    run_virtual(play(schedule))


def test_an_outage_empties_nothing() -> None:
    async def scenario() -> None:
        async with following() as world:
            for step in SEEN:
                await world.take(step)
            world.network.plan = always(Refused())
            world.network.sever()
            await elapse(24 * 3600)
            assert {obj.name for obj in world.informer} == {"a", "b", "c"}
            assert world.informer.trouble is not None
            await world.take(Write("remove", "a"))
            await world.converge()
            assert {obj.name for obj in world.informer} == {"b", "c"}
            assert world.informer.trouble is None

    run_virtual(scenario())
