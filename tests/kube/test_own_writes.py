"""Nothing is decided on a cache that lacks what was written before, whatever the watch does and whenever the process dies.

A small controller keeps N Pods. Its watch lags, drops, repeats and begins again at random, answers get lost, and it is killed
between any two calls; the store is looked at after every single commit.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.crd import DEFINITIONS
from applecart.api.meta import Key, document
from applecart.api.pods import Pod
from applecart.api.runners import RunnerPool
from applecart.clock import Clock, VirtualClock, VirtualLoop, run_virtual
from applecart.embedded.server.server import RunningApi
from applecart.embedded.store.record import Change
from applecart.errors import ApplecartError, Unreachable
from applecart.kube.client import Client
from applecart.kube.controller import DONE, Controller, Result
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer, Tuning
from applecart.kube.manager import Manager
from applecart.kube.own_writes import LOOK_UPS, PATIENCE_S, SENT_AGAIN_S, WITHIN_S, Behind, OwnWrites, TooLate, target_of
from applecart.kube.patch import Merge
from applecart.kube.transport import READS, Request, Response, Stream, Transport
from tests.kube.embedded_api import define, serving
from tests.kube.faults import (
    Cut,
    Ends,
    Fault,
    FaultyTransport,
    Hung,
    LaggingStream,
    Late,
    LosesLine,
    Lost,
    Plan,
    Refused,
    RepeatsLines,
    Says,
    always,
    in_turn,
)
from tests.kube.objects import config_map, pod, runner_pool
from tests.virtual_time import elapse

REPLICAS = 3
POOL = Key("test", "pool")
LEASE = Key("test", "leader")
MINE = {"pool": "mine"}


class Pool:
    """Keeps REPLICAS Pods, names them at random and removes those that are done."""

    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._chance = manager.clock.random
        self._pods = manager.informer(Pod, "test", labels="pool=mine")
        self.controller: Controller[Key] = manager.controller("pool", self.reconcile)
        self.controller.watch(self._pods, key_of=lambda _: POOL)
        self.controller.queue.add(POOL)

    async def reconcile(self, key: Key) -> Result:
        for done in [one for one in self._pods if one.is_terminal]:
            with suppress(NotFound):
                await self._client.delete(Pod, done.key, if_uid=done.uid, grace_s=0)
        for _ in range(REPLICAS - len(self._pods)):
            await self._client.create(pod("test", f"pool-{self._chance.getrandbits(32):08x}", labels=MINE))
        return DONE


class Laggard:
    """A wire on which every watch is behind by a random while, and on which the process may be killed at a call."""

    def __init__(self, inner: Transport, lags_s: list[float], chance: random.Random) -> None:
        self.killed = asyncio.Event()
        self.kill_in = -1  # calls; negative: never
        self._inner, self._lags_s, self._chance = inner, lags_s, chance

    async def send(self, request: Request) -> Response:
        self.kill_in -= request.method not in READS
        if self.kill_in != 0:
            return await self._inner.send(request)
        if self._chance.random() < 0.5:
            await self._inner.send(request)
        self.killed.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody comes back from the dead")

    async def open(self, request: Request) -> Stream:
        return LaggingStream(await self._inner.open(request), self._lags_s, self._chance)

    async def aclose(self) -> None:
        await self._inner.aclose()


class MostPods:
    """The most Pods that ever were at one instant."""

    def __init__(self, running: RunningApi) -> None:
        self.count = 0
        self._table = running.store.table("pods")
        running.store.on_commit("pods", self._look)

    def _look(self, _: Change) -> None:
        self.count = max(self.count, len(self._table))


class Storm:
    def __init__(self, running: RunningApi, clock: Clock, chance: random.Random) -> None:
        self._chance = chance
        self._clock = clock
        self._running = running
        self._people = Client(running.transport(), clock)
        faults: tuple[Fault | None, ...] = (
            *[None] * 8, Lost(), Lost(), Refused(), Late(3.0), Says(500), Says(409), Says(429, 1), Cut(300), Ends(500),
            RepeatsLines(300, 2), LosesLine(0), LosesLine(1500),
        )  # fmt: skip
        self._network = FaultyTransport(running.transport(), lambda _: chance.choice(faults))

    async def blow(self, lives: int = 3, steps: int = 10) -> None:
        for life in range(lives):
            wire = Laggard(self._network, [0.0, 0.1, 0.5, 4.0], self._chance)
            manager = Manager(Client(wire, self._clock), tuning=Tuning(watch_s=20, relist_s=120))
            Pool(manager)
            wire.kill_in = self._chance.randrange(1, 9) if life < lives - 1 else -1
            running = asyncio.create_task(manager.run())
            for _ in range(steps):
                with suppress(TimeoutError, NotFound):
                    async with asyncio.timeout(self._chance.choice((0.0, 0.3, 2.0, 20.0))):
                        await wire.killed.wait()
                    break
                await self._meddle()
            if life == lives - 1:
                self._network.heal()
                await elapse(300)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    async def _meddle(self) -> None:
        found = await self._people.list(Pod, "test")
        if not found:
            return
        one = self._chance.choice(found)
        with suppress(NotFound):
            if self._chance.random() < 0.5:
                await self._people.delete(Pod, one.key, grace_s=0)
            else:
                await self._people.patch_status(Pod, one.key, Merge({"status": {"phase": "Succeeded"}}))


async def storm(seed: int) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop, seed)
    async with serving(clock, ["test"]) as running:
        most = MostPods(running)
        await Storm(running, clock, random.Random(seed)).blow()
        assert most.count == REPLICAS
        assert len(running.store.table("pods")) == REPLICAS


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_a_pool_never_has_one_pod_too_many_and_has_all_of_them_in_the_end(seed: int) -> None:
    """Seen: ten Pods for three replicas, because the watch was half a second behind."""
    run_virtual(storm(seed))


class Slowly:
    """A wire whose watches are behind by `lag_s`, and on which a lost creation arrives after its sender gave it up."""

    def __init__(self, inner: Transport) -> None:
        self.lag_s = 0.0
        self.call_s = 0.0  # of every call
        self.loses_next = False
        self.sent: list[str] = []
        self._inner = inner
        self._late: list[asyncio.Task[None]] = []

    async def send(self, request: Request) -> Response:
        self.sent.append(f"{request.method} {request.path.rpartition('/')[2]}")
        if self.loses_next and request.method not in READS:
            self.loses_next = False
            self._late.append(asyncio.create_task(self._arrive(request)))
            raise Unreachable("connection reset")
        await asyncio.sleep(self.call_s)
        return await self._inner.send(request)

    async def _arrive(self, request: Request) -> None:
        await asyncio.sleep(3.0)
        await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return DelayedStream(await self._inner.open(request), self)

    async def aclose(self) -> None:
        await self._inner.aclose()


class Hangs:
    """A wire on which creations are never answered. Each arrives after its own while, or never."""

    def __init__(self, inner: Transport, arrive_after_s: list[float | None]) -> None:
        self._inner, self._arrive_after_s = inner, arrive_after_s
        self._late: list[asyncio.Task[None]] = []

    async def send(self, request: Request) -> Response:
        if request.method != "POST" or not self._arrive_after_s:
            return await self._inner.send(request)
        after_s = self._arrive_after_s.pop(0)
        if after_s is not None:
            self._late.append(asyncio.create_task(self._arrive(request, after_s)))
        await elapse(request.deadline_s)
        raise Unreachable("no answer")

    async def _arrive(self, request: Request, after_s: float) -> None:
        await elapse(after_s)
        await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class DelayedStream:
    def __init__(self, inner: Stream, wire: Slowly) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner, self._wire = inner, wire

    async def read(self) -> bytes:
        chunk = await self._inner.read()
        await asyncio.sleep(self._wire.lag_s)
        return chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class Stage:
    """A writer and the informer it decides on."""

    def __init__(self, running: RunningApi, clock: Clock, labels: str, fields: str, namespace: str) -> None:
        self.wire = Slowly(running.transport())
        self.network = FaultyTransport(self.wire)
        self.client = Client(self.network, clock)
        self.maps = Informer(self.client, ConfigMap, namespace, labels=labels, fields=fields)
        self.writes = OwnWrites()
        self.writes.read_from(self.maps)

    @property
    def names(self) -> list[str]:
        return sorted(obj.name for obj in self.maps)


@asynccontextmanager
async def staged(
    running: RunningApi, clock: Clock, labels: str = "", fields: str = "", namespace: str = "ci"
) -> AsyncIterator[Stage]:
    stage = Stage(running, clock, labels, fields, namespace)
    task = asyncio.create_task(stage.maps.run())
    await stage.maps.following()
    yield stage
    task.cancel()
    await asyncio.wait([task])


@asynccontextmanager
async def at_work(manager: Manager) -> AsyncIterator[None]:
    task = asyncio.create_task(manager.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def slow_lists(by_s: float) -> Plan:
    """Of config maps: read at once, answered late."""

    def plan(request: Request) -> Fault | None:
        is_list = request.method == "GET" and request.path.endswith("/configmaps") and ("watch", "true") not in request.query
        return Late(by_s) if is_list else None

    return plan


async def test_what_was_written_is_seen_before_the_next_decision(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"))
            await stage.client.patch(ConfigMap, Key("ci", "a"), Merge({"data": {"x": "1"}}))
        assert stage.names == []
        await stage.writes.seen()
        assert [obj.data for obj in stage.maps] == [{"x": "1"}]


async def test_a_deletion_is_seen_before_the_next_decision_although_its_answer_has_no_revision(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        made = await stage.client.create(config_map("ci", "a"))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.delete(ConfigMap, made.key)
        await stage.writes.seen()
        assert stage.names == []


async def test_a_deletion_that_is_answered_with_the_object_as_it_was_is_seen_too(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        request = Request("POST", "/api/v1/namespaces/ci/configmaps", body=msgspec.json.encode(document(config_map("ci", "a"))))
        answer = await stage.client.call(request)
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.wire.lag_s = 0.5
        await stage.client.delete(ConfigMap, Key("ci", "a"))
        stage.writes.wrote(Request("DELETE", "/api/v1/namespaces/ci/configmaps/a"), answer, None)
        await stage.writes.seen()
        assert stage.names == []


async def test_what_went_with_its_last_finalizer_is_seen_to_be_gone(running: RunningApi, clock: Clock) -> None:
    """The answer, a real server's as well, has the revision before: the next decision was made on an object that was gone."""
    async with staged(running, clock) as stage:
        made = await stage.client.create(config_map("ci", "a", finalizers=("example.com/guard",)))
        await stage.client.delete(ConfigMap, made.key)
        await stage.maps.wait_until(lambda: any(one.is_being_deleted for one in stage.maps))
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.patch(ConfigMap, made.key, Merge({"metadata": {"finalizers": None}}))
        await stage.writes.seen()
        assert stage.names == []


async def test_a_deletion_of_many_is_seen_too(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        for name in "abc":
            await stage.client.create(config_map("ci", name))
        await stage.maps.wait_until(lambda: len(stage.names) == 3)
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.call(Request("DELETE", "/api/v1/namespaces/ci/configmaps"))
        await stage.writes.seen()
        assert stage.names == []


async def test_a_write_that_no_event_tells_is_waited_for_by_nobody(running: RunningApi, clock: Clock) -> None:
    """Outside the selector nothing comes but a bookmark, once a minute."""
    async with staged(running, clock, labels="pool=mine") as stage:
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "mine", labels=MINE))
            await stage.client.create(config_map("ci", "other"))
            await stage.client.create(config_map("test", "elsewhere"))
        stage.wire.sent.clear()
        began_s = clock.monotonic()
        await stage.writes.seen()
        assert clock.monotonic() - began_s < PATIENCE_S
        assert stage.names == ["mine"]
        assert stage.wire.sent == []


async def test_a_write_of_which_nobody_knows_whether_an_event_tells_it_is_looked_up(running: RunningApi, clock: Clock) -> None:
    """A field selector is the server's to judge; outside of it nothing comes but a bookmark, once a minute."""
    async with staged(running, clock, fields="metadata.name=mine") as stage:
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "mine"))
            await stage.client.create(config_map("ci", "other"))
        stage.wire.sent.clear()
        began_s = clock.monotonic()
        await stage.writes.seen()
        assert clock.monotonic() - began_s < 2 * PATIENCE_S
        assert stage.names == ["mine"]
        assert stage.wire.sent == ["GET configmaps"]  # of the one alone


async def test_a_write_that_an_event_tells_after_all_is_not_looked_up(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock, fields="metadata.namespace=ci") as stage:
        stage.wire.lag_s = PATIENCE_S / 2
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"))
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.names == ["a"]
        assert stage.wire.sent == []


@pytest.mark.parametrize("takes_back", ["deletion", "label"])
async def test_what_was_made_and_taken_back_is_not_taken_for_alive_later(
    running: RunningApi, clock: Clock, takes_back: str
) -> None:
    """The API said that it is not there, the cache did not know it yet, and then the event of its creation came: a pool
    deleted a good Pod because of this ghost."""
    async with staged(running, clock, labels="pool=mine") as stage:
        stage.wire.lag_s = 2.5
        with stage.writes.noted():
            made = await stage.client.create(config_map("ci", "a", labels=MINE))
            if takes_back == "deletion":
                await stage.client.delete(ConfigMap, made.key)
            else:
                await stage.client.patch(ConfigMap, made.key, Merge({"metadata": {"labels": {"pool": "other"}}}))
        await stage.writes.seen()
        assert stage.names == []
        await elapse(10)
        assert stage.names == []


@pytest.mark.parametrize("fields", ["", "metadata.namespace=ci"])
async def test_no_decision_is_made_while_what_was_taken_back_looks_alive(
    running: RunningApi, clock: Clock, fields: str
) -> None:
    """Behind a field selector nobody waited for its creation, which came after the look at the API."""
    async with staged(running, clock, labels="pool=mine", fields=fields) as stage:
        stage.wire.lag_s = 2.5
        with stage.writes.noted():
            made = await stage.client.create(config_map("ci", "a", labels=MINE))
            await elapse(0.5)
            await stage.client.delete(ConfigMap, made.key)
        for _ in range(100):
            await stage.writes.seen()
            assert stage.names == []
            await elapse(0.1)


@pytest.mark.parametrize("is_new_term", [False, True], ids=["by its name", "by a process before"])
async def test_no_decision_is_made_on_what_was_deleted_before_the_cache_knew_it(
    running: RunningApi, clock: Clock, is_new_term: bool
) -> None:
    """A creation said that the name exists, so it was deleted; its own creation came after the look at the API."""
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 2.5
        people = Client(running.transport(), clock)
        await people.create(config_map("ci", "a"))
        await elapse(1)
        if is_new_term:
            await people.delete(ConfigMap, Key("ci", "a"))
            stage.writes.begin_term()
        else:
            with stage.writes.noted():
                await stage.client.delete(ConfigMap, Key("ci", "a"))
        for _ in range(100):
            await stage.writes.seen()
            assert stage.names == []
            await elapse(0.1)


async def test_what_the_api_said_is_looked_up_once_until_the_informer_is_past_it(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"))
            await stage.client.delete(ConfigMap, Key("ci", "a"))
        stage.wire.sent.clear()
        for _ in range(3):
            await stage.writes.seen()
        assert stage.wire.sent == ["GET configmaps"]


async def test_a_new_leader_on_a_busy_cluster_gets_to_work(running: RunningApi, clock: Clock) -> None:
    """What others made while the whole scope was listed was in the cache and not in the list, and waited for to go."""
    manager = Manager(Client(FaultyTransport(running.transport(), slow_lists(2.0)), clock), lease=LEASE, identity="one")
    done: list[Key] = []

    async def reconcile(key: Key) -> Result:
        done.append(key)
        return DONE

    manager.controller("busy", reconcile).watch(manager.informer(ConfigMap, "ci"))
    people = Client(running.transport(), clock)
    async with at_work(manager):
        for number in range(60):
            await people.create(config_map("ci", f"n-{number}"))
            await elapse(1)
    assert done


async def test_deletions_in_a_busy_namespace_do_not_stop_their_controller(running: RunningApi, clock: Clock) -> None:
    """Half a second a list, ten new objects a second: no reconcile for half an hour."""
    manager = Manager(Client(FaultyTransport(running.transport(), slow_lists(0.5)), clock))
    maps = manager.informer(ConfigMap, "ci")
    people = Client(running.transport(), clock)
    looks: list[float] = []

    async def reconcile(_: str) -> Result:
        looks.append(clock.monotonic())
        for one in [one for one in maps if one.name.startswith("old-")]:
            await manager.client.delete(ConfigMap, one.key)
        return DONE

    for number in range(LOOK_UPS + 1):
        await people.create(config_map("ci", f"old-{number}"))
    controller = manager.controller("c", reconcile)
    controller.read_from(maps)
    async with at_work(manager):
        await maps.following()
        controller.queue.add("x")
        await elapse(1)
        controller.queue.add("x")
        for number in range(200):
            await people.create(config_map("ci", f"new-{number}"))
            await elapse(0.1)
    assert len(looks) > 1


async def test_an_object_made_again_while_its_deletion_is_looked_up_holds_nothing_up(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        people = Client(running.transport(), clock)
        await people.create(config_map("ci", "a"))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        with stage.writes.noted():
            await stage.client.delete(ConfigMap, Key("ci", "a"))
        stage.network.plan = slow_lists(2.0)
        seen = asyncio.create_task(stage.writes.seen())
        await elapse(1)
        made = await people.create(config_map("ci", "a"))
        await seen
        assert list(stage.maps) == [made]
        assert clock.monotonic() < WITHIN_S


class Switch:
    """A wire that may lead to another server."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner

    async def send(self, request: Request) -> Response:
        return await self.inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self.inner.open(request)

    async def aclose(self) -> None:
        await self.inner.aclose()


async def test_a_store_that_was_restored_stops_no_controller(running: RunningApi, clock: Clock) -> None:
    """Revisions went back: until they had come as far again, which takes days, every key was behind."""
    async with serving(clock) as old:
        switch, people = Switch(old.transport()), Client(old.transport(), clock)
        network = FaultyTransport(switch)
        for number in range(200):
            await people.create(config_map("ci", f"n-{number}"))
        manager = Manager(Client(network, clock))
        done: list[str] = []

        async def reconcile(key: Key) -> Result:
            done.append(key.name)
            if key.name == "mark":
                network.sever()
                await manager.client.patch(ConfigMap, key, Merge({"data": {"x": "1"}}))
                await manager.client.delete(ConfigMap, Key("ci", "n-0"))
                switch.inner = running.transport()
            return DONE

        manager.controller("c", reconcile).watch(manager.informer(ConfigMap, "ci"))
        async with at_work(manager):
            await elapse(10)
            await people.create(config_map("ci", "mark"))
            await elapse(7200)
            await Client(running.transport(), clock).create(config_map("ci", "fresh"))
            await elapse(60)
        assert "fresh" in done


async def test_what_was_looked_up_in_a_store_before_it_was_restored_is_looked_up_again(
    running: RunningApi, clock: Clock
) -> None:
    async with serving(clock) as old:
        switch, people = Switch(old.transport()), Client(old.transport(), clock)
        network = FaultyTransport(switch)
        for number in range(20):
            await people.create(config_map("ci", f"n-{number}"))
        maps, writes = Informer(Client(network, clock), ConfigMap, "ci"), OwnWrites()
        writes.read_from(maps)
        task = asyncio.create_task(maps.run())
        await maps.following()
        with writes.noted():
            await Client(network, clock).delete(ConfigMap, Key("ci", "n-0"))
            await people.create(config_map("test", "elsewhere"))
        await writes.seen()
        switch.inner = running.transport()
        restored = Client(running.transport(), clock)
        network.plan = in_turn([Says(410)])
        network.sever()
        await maps.wait_until(lambda: not len(maps))
        await restored.create(config_map("ci", "n-0"))
        await maps.wait_until(lambda: len(maps) == 1)
        await writes.seen()
        assert [obj.name for obj in maps] == ["n-0"]
        task.cancel()


async def test_what_was_deleted_stays_gone_while_another_cache_is_waited_for(running: RunningApi, clock: Clock) -> None:
    """The first cache had caught up; while the second did, the event of a creation that was taken back reached the first."""
    people = Client(running.transport(), clock)
    wires = [Slowly(running.transport()), Slowly(running.transport())]
    maps = Informer(Client(wires[0], clock), ConfigMap, "ci")
    pods = Informer(Client(wires[1], clock), Pod, "ci")
    writes = OwnWrites()
    tasks = []
    for informer in (maps, pods):
        writes.read_from(informer)
        tasks.append(asyncio.create_task(informer.run()))
        await informer.following()
    wires[0].lag_s, wires[1].lag_s = 2.5, 3.0
    await people.create(config_map("ci", "a"))
    await elapse(1)
    with writes.noted():
        await people.delete(ConfigMap, Key("ci", "a"))
        await people.create(pod("ci", "p"))
    await writes.seen()
    assert [obj.name for obj in maps] == []
    for task in tasks:
        task.cancel()


async def test_an_answer_that_a_list_puts_in_doubt_is_asked_for_again_at_once(running: RunningApi, clock: Clock) -> None:
    """It became a doubt among others of that moment: the reconcile began, with what was deleted in the cache."""
    async with staged(running, clock) as stage:
        people = Client(running.transport(), clock)
        expires = True

        def plan(request: Request) -> Fault | None:
            nonlocal expires
            query = dict(request.query)
            if request.method != "GET":
                return None
            if "watch" in query:
                return Says(410) if expires else Late(5.0)
            if "fieldSelector" in query:
                return Late(3.0) if "metadata.name=b" in query["fieldSelector"] else None
            expires = False
            return Late(2.0)  # the list is read now and told later

        stage.network.plan = plan
        stage.network.sever()
        for name in ("a", "b"):
            await people.create(config_map("ci", name))
        with stage.writes.noted():
            await people.delete(ConfigMap, Key("ci", "b"))
        while expires:
            await elapse(0.05)
        await elapse(0.05)
        with stage.writes.noted():
            await people.delete(ConfigMap, Key("ci", "a"))
        await stage.writes.seen()
        assert stage.names == []


async def test_an_answer_that_was_on_its_way_while_the_store_was_restored_is_asked_for_again(
    running: RunningApi, clock: Clock
) -> None:
    """It was kept with the place of the old store, which the new one reached after an hour: every key was behind until then."""
    async with serving(clock) as old:
        switch, people = Switch(old.transport()), Client(old.transport(), clock)
        network = FaultyTransport(switch)
        for number in range(50):
            await people.create(config_map("ci", f"n-{number}"))
        maps, writes = Informer(Client(network, clock), ConfigMap, "ci"), OwnWrites()
        writes.read_from(maps)
        task = asyncio.create_task(maps.run())
        await maps.following()
        network.plan = lambda request: Late(4.0) if "fieldSelector" in dict(request.query) else None
        with writes.noted():
            await people.delete(ConfigMap, Key("ci", "n-0"))
            await people.create(config_map("test", "elsewhere"))
        seen = asyncio.create_task(writes.seen())
        await elapse(0.5)
        switch.inner = running.transport()
        slow_look_ups, network.plan = network.plan, in_turn([Says(410)])
        network.sever()
        await maps.wait_until(lambda: not len(maps))
        network.plan = slow_look_ups
        await seen
        await Client(running.transport(), clock).create(config_map("ci", "n-0"))
        await maps.wait_until(lambda: len(maps) == 1)
        began_s = clock.monotonic()
        await writes.seen()
        assert clock.monotonic() - began_s < 1
        task.cancel()


async def test_what_the_api_said_of_many_is_compared_once_while_nothing_moves(running: RunningApi, clock: Clock) -> None:
    """Five thousand objects were walked through before every reconcile of a new term."""

    class Counting(Informer[ConfigMap]):
        count = 0

        def get(self, key: Key) -> ConfigMap | None:
            self.count += 1
            return super().get(key)

    people = Client(running.transport(), clock)
    for number in range(20):
        await people.create(config_map("ci", f"n-{number}"))
    maps, writes = Counting(people, ConfigMap, "ci"), OwnWrites()
    writes.read_from(maps)
    task = asyncio.create_task(maps.run())
    await maps.following()
    await people.create(config_map("test", "elsewhere"))  # the informer is not past what the look-up will say
    writes.begin_term()
    await writes.seen()
    assert maps.count > 0
    maps.count = 0
    await writes.seen()
    assert maps.count == 0
    task.cancel()


async def test_a_sending_that_never_left_is_not_waited_for(running: RunningApi, clock: Clock) -> None:
    """After an hour without a connection, the key waited another minute for what had never been sent."""
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        client = Client(network, clock, deadline_s=1.0)
        with stage.writes.noted(), pytest.raises(Unreachable):
            await client.create(config_map("ci", "a"))
        network.plan = always(Refused())
        began_s = clock.monotonic()
        while clock.monotonic() - began_s < SENT_AGAIN_S:
            with pytest.raises(Behind):
                await stage.writes.seen()
            await elapse(1)
        await stage.writes.seen()
        assert stage.names == ["a"]


@pytest.mark.parametrize("takes_away", [False, True], ids=["a creation", "a deletion"])
async def test_what_a_watch_never_tells_is_seen_before_the_next_decision(
    running: RunningApi, clock: Clock, takes_away: bool
) -> None:
    """An event is lost without a trace: the informer went past it and knew nothing of it until the next hourly list."""
    async with staged(running, clock) as stage:
        people = Client(running.transport(), clock)
        if takes_away:
            await people.create(config_map("ci", "a"))
            await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.network.plan = lambda request: LosesLine(0) if ("watch", "true") in request.query else None
        stage.network.sever()
        await elapse(2)
        await people.create(config_map("ci", "before"))  # a line for the fault to begin after
        with stage.writes.noted():
            if takes_away:
                await people.delete(ConfigMap, Key("ci", "a"))
            else:
                await people.create(config_map("ci", "a"))
        await people.create(config_map("ci", "c"))
        stage.network.plan = None
        await stage.maps.wait_until(lambda: "c" in stage.names)
        assert ("a" in stage.names) is takes_away
        with suppress(Behind):
            await stage.writes.seen()
        await elapse(1)
        await stage.writes.seen()
        assert stage.names == (["before", "c"] if takes_away else ["a", "before", "c"])
        assert clock.monotonic() < 60


async def test_what_a_watch_keeps_back_while_everything_is_looked_up_is_seen(running: RunningApi, clock: Clock) -> None:
    """The new leader's list had the Pod, and its cache, which went past it, had not: one Pod too many."""
    async with staged(running, clock) as stage:
        people = Client(running.transport(), clock)
        stage.network.plan = lambda request: LosesLine(0) if ("watch", "true") in request.query else None
        stage.wire.lag_s = 0.5
        stage.network.sever()
        await elapse(2)
        for name in ("before", "a", "c"):
            await people.create(config_map("ci", name))
        stage.network.plan = slow_lists(1.0)
        stage.writes.begin_term()
        with pytest.raises(Behind):
            await stage.writes.seen()
        await elapse(3)
        await stage.writes.seen()
        assert stage.names == ["a", "before", "c"]


async def test_a_new_leader_gets_to_work_where_much_is_deleted(running: RunningApi, clock: Clock) -> None:
    """What went while the whole scope was listed is looked up by name: another list would be out of date as well."""
    people = Client(running.transport(), clock)
    for number in range(300):
        await people.create(config_map("ci", f"n-{number}"))
    async with staged(running, clock) as stage:
        slow = slow_lists(2.0)
        stage.network.plan = lambda request: None if "fieldSelector" in dict(request.query) else slow(request)
        stage.writes.begin_term()
        seen = asyncio.create_task(stage.writes.seen())
        for number in range(300):
            if seen.done():
                break
            await people.delete(ConfigMap, Key("ci", f"n-{number}"))
            await elapse(0.1)
        await seen
        assert 0 < len(stage.names) < 290


class Opaque:
    """A wire to a server whose revisions are no numbers."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        answer = await self._inner.send(numbered(request))
        return msgspec.structs.replace(answer, body=without_numbers(answer.body))

    async def open(self, request: Request) -> Stream:
        return OpaqueStream(await self._inner.open(numbered(request)))

    async def aclose(self) -> None:
        await self._inner.aclose()


class OpaqueStream:
    def __init__(self, inner: Stream) -> None:
        self.status, self.headers = inner.status, inner.headers
        self._inner = inner

    async def read(self) -> bytes:
        return without_numbers(await self._inner.read())

    async def aclose(self) -> None:
        await self._inner.aclose()


def numbered(request: Request) -> Request:
    query = tuple(
        (name, value.removeprefix("r")) if name == "resourceVersion" else (name, value) for name, value in request.query
    )
    return msgspec.structs.replace(request, query=query)


def without_numbers(body: bytes) -> bytes:
    return re.sub(rb'"resourceVersion":"(\d)', rb'"resourceVersion":"r\1', body)


async def test_a_server_whose_revisions_are_no_numbers_is_asked_again(running: RunningApi, clock: Clock) -> None:
    """What was made after the answer has no place before or after it: that answer was waited for for ever."""
    people = Client(running.transport(), clock)
    network = FaultyTransport(Opaque(running.transport()))
    maps, writes = Informer(Client(network, clock), ConfigMap, "ci"), OwnWrites()
    writes.read_from(maps)
    task = asyncio.create_task(maps.run())
    await maps.following()
    network.plan = slow_lists(2.0)
    writes.begin_term()
    seen = asyncio.create_task(writes.seen())
    await elapse(1)
    await people.create(config_map("ci", "a"))
    with pytest.raises(Behind):
        await seen
    await writes.seen()
    assert [obj.name for obj in maps] == ["a"]
    task.cancel()


async def test_an_answer_of_a_store_before_it_was_restored_holds_nothing_up_once_the_new_one_has_come_as_far(
    running: RunningApi, clock: Clock
) -> None:
    async with serving(clock) as old:
        switch, people = Switch(old.transport()), Client(old.transport(), clock)
        network = FaultyTransport(switch)
        await people.create(config_map("ci", "a"))
        maps, writes = Informer(Client(network, clock), ConfigMap, "ci"), OwnWrites()
        writes.read_from(maps)
        task = asyncio.create_task(maps.run())
        await maps.following()
        with writes.noted():
            await Client(network, clock).delete(ConfigMap, Key("ci", "a"))
            await people.create(config_map("test", "elsewhere"))
        await writes.seen()
        restored = Client(running.transport(), clock)
        for name in ("a", *(f"n-{number}" for number in range(20))):
            await restored.create(config_map("ci", name))
        switch.inner = running.transport()
        network.plan = in_turn([Says(410)])
        network.sever()
        await maps.wait_until(lambda: len(maps) == 21)
        began_s = clock.monotonic()
        await writes.seen()
        assert clock.monotonic() - began_s < 1
        task.cancel()


async def test_what_came_and_went_while_the_watch_was_away_wakes_whoever_made_it(running: RunningApi, clock: Clock) -> None:
    """The list equals the cache, so no change is told: the pool had no Pod for a day."""
    network = FaultyTransport(running.transport())
    people = Client(running.transport(), clock)
    manager = Manager(Client(network, clock), tuning=Tuning(watch_s=20))
    Pool(manager)
    task = asyncio.create_task(manager.run())
    await elapse(1)
    network.plan = lambda request: Says(410) if ("watch", "true") in request.query else None
    network.sever()  # before anybody takes one away: what a watch still told would leave some for a list to tell
    await forget_pods(people)
    while len(await people.list(Pod, "test")) < REPLICAS:
        await elapse(0.1)
    await forget_pods(people)
    network.heal()
    await elapse(120)
    assert len(await people.list(Pod, "test")) == REPLICAS
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def forget_pods(people: Client) -> None:
    for one in await people.list(Pod, "test"):
        await people.delete(Pod, one.key, grace_s=0)


async def test_a_write_that_is_still_on_its_way_is_waited_for(running: RunningApi, clock: Clock) -> None:
    """One of three that were gathered was refused; the next reconcile began while the others were on the wire."""
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Says(403), Late(3.0)]))
        client = Client(network, clock)
        with stage.writes.noted("pool"), pytest.raises(ApplecartError):
            await asyncio.gather(*(client.create(config_map("ci", name)) for name in ("a", "b")))
        await stage.writes.seen("another key is not held up")
        assert clock.monotonic() < 1
        await stage.writes.seen("pool")
        assert stage.names == ["b"]
        assert clock.monotonic() >= 3


async def test_a_write_on_its_way_for_long_holds_its_key_up_and_says_so(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        client = Client(FaultyTransport(running.transport(), always(Late(25.0))), clock)
        with stage.writes.noted():
            task = asyncio.create_task(client.create(config_map("ci", "a")))
            await asyncio.sleep(0)
        with pytest.raises(Behind):
            await stage.writes.seen()
        await task
        await stage.writes.seen()


async def test_a_write_that_begins_after_its_reconcile_has_ended_is_refused(running: RunningApi, clock: Clock) -> None:
    """A task that nobody awaited wrote while the next reconcile decided: twelve Pods for three replicas."""
    async with staged(running, clock) as stage:

        async def later() -> None:
            await elapse(1)
            await stage.client.create(config_map("ci", "a"))

        with stage.writes.noted(POOL):
            task = asyncio.create_task(later())
        with pytest.raises(TooLate, match=r"configmaps: not sent, the reconcile of test/pool that began it has ended"):
            await task
        assert await stage.client.list(ConfigMap, "ci", labels="") == []


async def test_look_ups_that_take_long_come_to_an_end(running: RunningApi, clock: Clock) -> None:
    """With 1.4 s a call, eight deletions kept a controller from every other reconcile for ever: each try began anew."""
    async with staged(running, clock) as stage:
        for number in range(LOOK_UPS):
            await stage.client.create(config_map("ci", str(number)))
        await stage.maps.wait_until(lambda: len(stage.names) == LOOK_UPS)
        with stage.writes.noted():
            for number in range(LOOK_UPS):
                await stage.client.delete(ConfigMap, Key("ci", str(number)))
        stage.wire.call_s = 25.0
        await stage.writes.seen()
        assert stage.names == []


async def test_look_ups_that_fail_halfway_are_not_done_again(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(stage.wire, in_turn([None, Says(403)]))
        maps = Informer(Client(network, clock), ConfigMap, "ci")
        writes = OwnWrites()
        writes.read_from(maps)
        task = asyncio.create_task(maps.run())
        network.plan = None
        await maps.following()
        with writes.noted():
            for name in ("a", "b"):
                await stage.client.create(config_map("ci", name))
                await stage.client.delete(ConfigMap, Key("ci", name))
        network.plan = in_turn([None, Says(403)])
        stage.wire.sent.clear()
        with pytest.raises(ApplecartError):
            await writes.seen()
        await writes.seen()
        assert stage.wire.sent == ["GET configmaps"] * 2  # the refused one was not sent on
        task.cancel()


@pytest.mark.parametrize("ago_s", [SENT_AGAIN_S + 1, 3600.0])
async def test_a_creation_that_was_lost_long_ago_is_not_sent_again(running: RunningApi, clock: Clock, ago_s: float) -> None:
    """It had arrived, its Pod had run and was removed; an hour later, with the network, the job ran a second time."""
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        await stage.client.delete(ConfigMap, Key("ci", "a"))
        await elapse(ago_s)
        await stage.writes.seen()
        assert len(network.calls) == 1
        assert stage.names == []


async def test_a_write_that_is_sent_again_is_lost_once_however_often_that_fails(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), always(Lost()))
        with stage.writes.noted("pool"), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        for _ in range(3):
            with stage.writes.noted("pool"), pytest.raises(Behind):
                await stage.writes.seen("pool")
        assert len(network.calls) == 4


async def test_a_lost_answer_of_one_key_holds_no_other_up_while_it_is_sent_again(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost(), *[Hung()] * 9]))
        with stage.writes.noted("pool"), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        pool = asyncio.create_task(stage.writes.seen("pool"))
        await elapse(1)
        began_s = clock.monotonic()
        await stage.writes.seen("innocent")
        assert clock.monotonic() == began_s
        with pytest.raises(Behind):
            await pool
        assert clock.monotonic() < 2 * WITHIN_S


async def test_a_binding_by_the_older_path_is_seen_too(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        made = await stage.client.create(pod("ci", "p"))
        pods = Informer(stage.client, Pod, "ci")
        stage.writes.read_from(pods)
        task = asyncio.create_task(pods.run())
        await pods.following()
        stage.wire.lag_s = 0.5
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "mac-1"}}
        with stage.writes.noted():
            await stage.client.call(Request("POST", "/api/v1/namespaces/ci/bindings", body=msgspec.json.encode(binding)))
        await stage.writes.seen()
        bound = pods.get(made.key)
        assert bound is not None
        assert bound.spec.node_name == "mac-1"
        task.cancel()


@pytest.mark.parametrize(("count", "look_ups"), [(LOOK_UPS, LOOK_UPS), (LOOK_UPS + 1, 1)])
async def test_many_objects_are_looked_up_by_one_list(running: RunningApi, clock: Clock, count: int, look_ups: int) -> None:
    async with staged(running, clock) as stage:
        names = [str(number) for number in range(count)]
        for name in names:
            await stage.client.create(config_map("ci", name))
        await stage.maps.wait_until(lambda: len(stage.names) == count)
        with stage.writes.noted():
            for name in names:
                await stage.client.delete(ConfigMap, Key("ci", name))
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == ["GET configmaps"] * look_ups


async def test_a_write_that_moves_an_object_out_of_sight_is_waited_for(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock, labels="pool=mine") as stage:
        made = await stage.client.create(config_map("ci", "a", labels=MINE))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.patch(ConfigMap, made.key, Merge({"metadata": {"labels": {"pool": "other"}}}))
        await stage.writes.seen()
        assert stage.names == []


async def test_while_the_watch_is_silent_nothing_is_decided(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 100.0
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"))
        for _ in range(3):
            with pytest.raises(Behind, match="not seen"):
                await stage.writes.seen()
        await elapse(200)
        await stage.writes.seen()
        assert stage.names == ["a"]


async def test_a_lost_creation_is_sent_again_so_that_its_late_arrival_changes_nothing(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        stage.wire.loses_next = True
        with stage.writes.noted("pool"), pytest.raises(Unreachable):
            await stage.client.create(config_map("ci", "a"))
        await stage.writes.seen("another key is not held up")
        assert stage.names == []
        await stage.writes.seen("pool")
        assert stage.names == ["a"]
        made = stage.maps.get(Key("ci", "a"))
        await elapse(10)
        assert [stage.maps.get(Key("ci", "a"))] == [made]


async def test_a_lost_binding_is_sent_again_so_that_its_late_arrival_changes_nothing(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        made = await stage.client.create(pod("ci", "p"))
        binding = {"metadata": {"name": "p", "uid": made.uid}, "target": {"kind": "Node", "name": "mac-1"}}
        request = Request("POST", "/api/v1/namespaces/ci/pods/p/binding", body=msgspec.json.encode(binding))
        stage.wire.loses_next = True
        with stage.writes.noted(), pytest.raises(Unreachable):
            await stage.client.call(request, repeatable=False)
        await stage.writes.seen()
        assert (await stage.client.get(Pod, made.key)).spec.node_name == "mac-1"


async def test_a_lost_patch_is_not_sent_again_but_looked_at(running: RunningApi, clock: Clock) -> None:
    """Somebody may have changed their mind meanwhile: a patch without a precondition would change it back."""
    async with staged(running, clock) as stage:
        made = await stage.client.create(config_map("ci", "a"))
        stage.wire.loses_next = True
        with stage.writes.noted(), pytest.raises(Unreachable):
            await stage.client.call(Request("PATCH", "/api/v1/namespaces/ci/configmaps/a", body=b"{}"), repeatable=False)
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == ["GET configmaps"]
        assert stage.maps.get(made.key) == made


async def test_a_lost_creation_that_was_carried_out_is_known_once_its_second_one_is_refused(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        assert stage.writes.is_in_doubt(None)
        await stage.writes.seen()
        assert not stage.writes.is_in_doubt(None)
        assert stage.names == ["a"]


@pytest.mark.parametrize(
    "refusal",
    [Says(429, 32), Says(503, 32), Says(401), Says(403), Says(408), Says(409)],
    ids=["too many", "trouble", "unknown", "forbidden", "late", "a quota changed"],
)
async def test_a_second_sending_that_the_server_did_not_look_at_is_no_answer_to_the_first(
    running: RunningApi, clock: Clock, refusal: Fault
) -> None:
    """A Retry-After of 32 s is beyond the call's deadline: the lost creation arrived after the next decision."""
    most = MostPods(running)
    wire = Slowly(running.transport())  # the first creation arrives three seconds after it was given up
    wire.loses_next = True
    posts = in_turn([None, refusal])
    manager = Manager(
        Client(FaultyTransport(wire, lambda request: posts(request) if request.method == "POST" else None), clock)
    )
    Pool(manager)
    async with at_work(manager):
        await elapse(300)
    assert most.count == REPLICAS


async def test_what_was_sent_again_has_a_minute_from_then_on_to_arrive(running: RunningApi, clock: Clock) -> None:
    """The last sending was 11 s old when the first was a minute old and nobody waited any more; it took 25 s."""
    most = MostPods(running)
    manager = Manager(Client(Hangs(running.transport(), [None, None, None, None, None, 25.0]), clock))
    Pool(manager)
    async with at_work(manager):
        await elapse(300)
    assert most.count == REPLICAS


async def test_nothing_is_decided_while_what_was_sent_again_may_still_arrive(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), always(Lost()))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        await elapse(SENT_AGAIN_S - 1)
        for calls in (2, 2):
            with pytest.raises(Behind, match="not known yet"):
                await stage.writes.seen()
            assert len(network.calls) == calls
            await elapse(SENT_AGAIN_S - 1)
        await elapse(1)
        await stage.writes.seen()
        assert len(network.calls) == 2


async def test_a_machine_that_slept_sends_nothing_again(running: RunningApi, clock: VirtualClock) -> None:
    """The monotonic clock stood still meanwhile: the job ran a second time, the next morning."""
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        await stage.client.delete(ConfigMap, Key("ci", "a"))
        clock.jump(timedelta(hours=8))
        await stage.writes.seen()
        assert len(network.calls) == 1


async def test_a_wall_clock_that_was_set_back_makes_nothing_young_again(running: RunningApi, clock: VirtualClock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        clock.jump(timedelta(hours=-8))
        await elapse(SENT_AGAIN_S)
        await stage.writes.seen()
        assert len(network.calls) == 1


async def test_two_that_wait_for_one_key_send_what_was_lost_again_once(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        network = FaultyTransport(running.transport(), in_turn([Lost()]))
        with stage.writes.noted(), pytest.raises(Unreachable):
            await Client(network, clock).create(config_map("ci", "a"))
        network.plan = always(Late(0.5))
        await asyncio.gather(stage.writes.seen(), stage.writes.seen())
        assert len(network.calls) == 2


async def test_a_record_within_a_record_is_refused(running: RunningApi, clock: Clock) -> None:
    """What was written within would be hidden from the outer one."""
    async with staged(running, clock) as stage:
        with (
            stage.writes.noted("outer"),
            pytest.raises(RuntimeError, match="the writes of inner are not noted within those of outer"),
            OwnWrites().noted("inner"),
        ):
            await stage.client.create(config_map("ci", "a"))


async def test_a_task_that_outlives_the_reconcile_it_was_started_in_keeps_a_record_of_its_own(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 0.5

        async def later() -> None:
            await elapse(1)
            with stage.writes.noted("later"):
                await stage.client.create(config_map("ci", "a"))

        with stage.writes.noted():
            task = asyncio.create_task(later())
        await task
        await stage.writes.seen("later")
        assert stage.names == ["a"]


async def test_a_lost_deletion_is_sent_again_only_if_it_names_the_uid(running: RunningApi, clock: Clock) -> None:
    """Else the second one might delete a successor, which somebody made meanwhile."""
    async with staged(running, clock) as stage:
        for if_uid, sent in ((False, []), (True, ["DELETE a"])):
            made = await stage.client.create(config_map("ci", "a"))
            await stage.maps.wait_until(lambda: stage.names == ["a"])
            network = FaultyTransport(stage.wire, in_turn([Refused(), Lost()]))
            path, uid = "/api/v1/namespaces/ci/configmaps/a", made.uid if if_uid else ""
            body = msgspec.json.encode({"preconditions": {"uid": uid}} if uid else {})
            with stage.writes.noted(), pytest.raises(Unreachable):
                await Client(network, clock).call(Request("DELETE", path, body=body), repeatable=False)
            stage.wire.sent.clear()
            await stage.writes.seen()
            assert [one for one in stage.wire.sent if one.startswith("DELETE")] == sent
            assert stage.names == []


@pytest.mark.parametrize(
    ("plan", "is_in_doubt"),
    [
        (in_turn([Says(409)]), False),
        (in_turn([Lost(), Says(409)]), True),  # the first one may have been carried out
        (always(Refused()), False),
        (always(Says(503, 1)), False),
        (always(Says(500)), True),
        (always(Hung()), True),
    ],
    ids=["refused", "refused after a lost answer", "no connection", "told to come again", "in trouble", "silent"],
)
async def test_a_write_is_in_doubt_unless_it_surely_did_nothing(
    running: RunningApi, clock: Clock, plan: Plan, is_in_doubt: bool
) -> None:
    async with staged(running, clock) as stage:
        client = Client(FaultyTransport(running.transport(), plan), clock)
        with stage.writes.noted("pool"), pytest.raises(ApplecartError):
            await client.delete(ConfigMap, Key("ci", "a"))
        assert stage.writes.is_in_doubt("pool") is is_in_doubt


async def test_a_write_that_was_cancelled_on_its_way_is_in_doubt(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        client = Client(FaultyTransport(running.transport(), always(Late(20.0))), clock)
        with stage.writes.noted("pool"), pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await client.create(config_map("ci", "a"))
        assert stage.writes.is_in_doubt("pool")
        await stage.writes.seen("another key is not held up")


async def test_a_dry_run_is_no_write(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"), dry_run=True)
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == []


@pytest.mark.parametrize("fields", ["", "metadata.namespace=ci"])
async def test_an_older_answer_that_comes_later_does_not_hide_the_newer_write(
    running: RunningApi, clock: Clock, fields: str
) -> None:
    async with staged(running, clock, fields=fields) as stage:
        stage.wire.lag_s = 0.5
        path = "/api/v1/namespaces/ci/configmaps/a"
        request = Request("PATCH", path, content_type=Merge.content_type)
        await stage.client.create(config_map("ci", "a"))
        older = await stage.client.call(msgspec.structs.replace(request, body=b'{"data":{"x":"1"}}'))
        await elapse(0.6)  # so that each has an event of its own
        newer = await stage.client.call(msgspec.structs.replace(request, body=b'{"data":{"x":"2"}}'))
        for answer in (newer, older):
            stage.writes.wrote(request, answer, None)
        await stage.writes.seen()
        assert [obj.data for obj in stage.maps] == [{"x": "2"}]


async def test_an_older_answer_that_comes_later_does_not_make_the_newer_write_a_doubtful_one(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        await stage.client.create(config_map("ci", "a"))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        request = Request("PATCH", "/api/v1/namespaces/ci/configmaps/a", content_type=Merge.content_type)
        stage.wire.lag_s = 3 * PATIENCE_S
        older = await stage.client.call(msgspec.structs.replace(request, body=b'{"data":{"x":"1"}}'))
        await elapse(1)
        newer = await stage.client.call(msgspec.structs.replace(request, body=b'{"data":{"x":"2"}}'))
        for answer in (newer, older):
            stage.writes.wrote(request, answer, None)
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == []
        assert [obj.data for obj in stage.maps] == [{"x": "2"}]


async def test_what_is_written_to_one_object_while_it_is_waited_for_is_waited_for_next(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.create(config_map("ci", "a"))
        waiting = asyncio.create_task(stage.writes.seen())
        await elapse(0.3)
        with stage.writes.noted():
            await stage.client.patch(ConfigMap, Key("ci", "a"), Merge({"data": {"x": "1"}}))
        await waiting
        await stage.writes.seen()
        assert [obj.data for obj in stage.maps] == [{"x": "1"}]


async def test_an_informer_of_all_namespaces_shows_what_was_written_to_any_of_them(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock, labels="pool=mine", namespace="") as stage:
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            for namespace in ("ci", "test"):
                await stage.client.create(config_map(namespace, "a", labels=MINE))
        await stage.writes.seen()
        assert sorted(obj.namespace for obj in stage.maps) == ["ci", "test"]


async def test_an_object_of_the_same_name_elsewhere_is_not_taken_for_the_deleted_one(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock, labels="pool=mine", namespace="") as stage:
        for namespace in ("ci", "test"):
            await stage.client.create(config_map(namespace, "a", labels=MINE))
        await stage.maps.wait_until(lambda: len(stage.maps) == 2)
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.delete(ConfigMap, Key("ci", "a"))
        await stage.writes.seen()
        assert [obj.namespace for obj in stage.maps] == ["test"]


async def test_what_is_being_deleted_and_held_is_told_by_an_event_like_everything_else(
    running: RunningApi, clock: Clock
) -> None:
    async with staged(running, clock) as stage:
        made = await stage.client.create(config_map("ci", "a", finalizers=("example.com/guard",)))
        await stage.client.delete(ConfigMap, made.key)
        await stage.maps.wait_until(lambda: any(one.is_being_deleted for one in stage.maps))
        stage.wire.lag_s = 0.5
        with stage.writes.noted():
            await stage.client.patch(ConfigMap, made.key, Merge({"data": {"x": "1"}}))
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == []
        assert [obj.data for obj in stage.maps] == [{"x": "1"}]


async def test_a_lost_creation_is_looked_up_by_its_name(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        stage.network.plan = in_turn([Lost()])
        with stage.writes.noted(), pytest.raises(Unreachable):
            await stage.client.create(config_map("ci", "a"))
        await stage.writes.seen()
        assert ("fieldSelector", "metadata.name=a") in stage.network.calls[-1].query


async def test_a_lost_binding_without_a_uid_is_not_sent_again(running: RunningApi, clock: Clock) -> None:
    """The Pod of that name may be another by now."""
    async with staged(running, clock) as stage:
        await stage.client.create(pod("ci", "p"))
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "mac-1"}}
        request = Request("POST", "/api/v1/namespaces/ci/pods/p/binding", body=msgspec.json.encode(binding))
        stage.wire.loses_next = True
        with stage.writes.noted(), pytest.raises(Unreachable):
            await stage.client.call(request, repeatable=False)
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == []


async def test_what_changes_again_while_it_is_looked_up_is_seen_all_the_same(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        people = Client(running.transport(), clock)
        made = await people.create(config_map("ci", "a"))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.network.plan = always(Late(1.0))
        stage.writes.begin_term()
        seen = asyncio.create_task(stage.writes.seen())
        await elapse(0.5)
        changed = await people.patch(ConfigMap, made.key, Merge({"data": {"x": "1"}}))
        await seen
        assert list(stage.maps) == [changed]
        assert clock.monotonic() < 2


async def test_a_look_up_that_hangs_holds_up_no_other_key_for_longer_than_a_while(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        await stage.client.create(config_map("ci", "a"))
        with stage.writes.noted("one"):
            await stage.client.delete(ConfigMap, Key("ci", "a"))
        stage.network.plan = always(Hung())
        one = asyncio.create_task(stage.writes.seen("one"))
        await elapse(0.1)
        began_s = clock.monotonic()
        with pytest.raises(Behind):
            await stage.writes.seen("two")
        assert clock.monotonic() - began_s == pytest.approx(WITHIN_S)
        one.cancel()
        await asyncio.wait([one])


async def test_what_is_looked_up_as_a_whole_is_looked_up_once(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        stage.writes.read_from(stage.maps)  # a second controller of one mind asks for the same informer
        await stage.client.create(config_map("ci", "a"))
        stage.writes.begin_term()
        with stage.writes.noted():
            await stage.client.delete(ConfigMap, Key("ci", "a"))
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == ["GET configmaps"]


async def test_the_key_that_made_what_came_and_went_is_woken_and_no_other(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        woken: list[object] = []
        stage.writes.wake = woken.append
        people = Client(running.transport(), clock)
        stage.network.plan = lambda request: Says(410) if ("watch", "true") in request.query else None
        stage.network.sever()
        for name in ("stays", "goes"):
            stage.writes.wrote(*await written(people, name), f"who made what {name}")
        await people.delete(ConfigMap, Key("ci", "goes"))
        await stage.maps.wait_until(lambda: stage.names == ["stays"])
        assert set(woken) == {"who made what goes"}


async def test_nobody_is_woken_for_what_the_list_shows_or_an_event_is_still_to_tell(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        woken: list[object] = []
        stage.writes.wake = woken.append
        stage.network.plan = lambda request: Late(3.0) if ("watch", "true") not in request.query else Says(410)
        stage.network.sever()
        people = Client(running.transport(), clock)
        for name in ("in the list", "after the list"):
            with stage.writes.noted(name):
                stage.writes.wrote(*await written(people, name.partition(" ")[0]), name)
            await elapse(2)  # the list is read in between and arrives afterwards
        await stage.maps.wait_until(lambda: stage.names == ["in"])
        assert woken == []


async def written(client: Client, name: str) -> tuple[Request, Response]:
    request = Request("POST", "/api/v1/namespaces/ci/configmaps", body=msgspec.json.encode(document(config_map("ci", name))))
    return request, await client.call(request)


async def test_keys_that_come_and_go_leave_nothing_behind(running: RunningApi, clock: Clock) -> None:
    """Memory that grows with every key that ever was."""
    async with staged(running, clock) as stage:
        for key in ("a", "b"):
            stage.network.plan = in_turn([Lost()])
            with stage.writes.noted(key), pytest.raises(Unreachable):
                await stage.client.create(config_map("ci", key))
            await stage.writes.seen(key)
        await elapse(0)
        assert (dict(stage.writes._under_way), stage.writes._lost) == ({}, {})


async def test_the_scale_of_what_is_out_of_sight_is_waited_for_by_nobody(running: RunningApi, clock: Clock) -> None:
    """Its answer has no labels, which looks like an object that the selector means."""
    client = Client(running.transport(), clock)
    await define(client, *(one for one in DEFINITIONS if one.kind is RunnerPool))
    hidden = runner_pool("ci", "a")
    made = await client.create(
        msgspec.structs.replace(hidden, metadata=msgspec.structs.replace(hidden.metadata, labels={"x": ""}))
    )
    pools, writes = Informer(client, RunnerPool, "ci", labels="!x"), OwnWrites()
    writes.read_from(pools)
    task = asyncio.create_task(pools.run())
    await pools.following()
    with writes.noted():
        await client.scale(RunnerPool, made.key, 5)
    began_s = clock.monotonic()
    await writes.seen()
    assert clock.monotonic() - began_s < 2 * PATIENCE_S
    task.cancel()


@pytest.mark.parametrize("is_deletion", [False, True], ids=["a place", "no place"])
async def test_what_is_written_while_others_are_waited_for_is_waited_for_next(
    running: RunningApi, clock: Clock, is_deletion: bool
) -> None:
    async with staged(running, clock) as stage:
        expected = ["0", "1"]
        for name in expected if is_deletion else ():
            await stage.client.create(config_map("ci", name))
        await stage.maps.wait_until(lambda: len(stage.names) == 2 * is_deletion)
        stage.wire.lag_s = 0.5
        waiting = []
        for name in ("0", "1"):
            with stage.writes.noted():
                if is_deletion:
                    await stage.client.delete(ConfigMap, Key("ci", name))
                else:
                    await stage.client.create(config_map("ci", name))
            waiting.append(asyncio.create_task(stage.writes.seen()))
            await elapse(0.3)
        await waiting[0]
        await waiting[1]
        assert stage.names == ([] if is_deletion else expected)


async def test_what_is_deleted_again_while_its_first_deletion_is_waited_for_is_waited_for_next(
    running: RunningApi, clock: Clock
) -> None:
    """The worker of another key waits for the first one. When it had seen that, it forgot the second as well."""
    other = Client(running.transport(), clock)
    async with staged(running, clock) as stage:
        made = await other.create(config_map("ci", "a", finalizers=("example.com/held",)))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.wire.lag_s = 0.5
        with stage.writes.noted("two"):
            await stage.client.delete(ConfigMap, made.key)
        waiting = asyncio.create_task(stage.writes.seen("one"))
        await elapse(0.3)
        await other.patch(ConfigMap, made.key, Merge({"metadata": {"finalizers": None}}))
        await other.create(config_map("ci", "a"))
        with stage.writes.noted("two"):
            await stage.client.delete(ConfigMap, made.key)
        await waiting
        await stage.writes.seen("two")
        assert stage.names == []


async def test_a_write_to_another_namespace_is_waited_for_by_nobody(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        with stage.writes.noted():
            await stage.client.create(config_map("test", "elsewhere"))
        stage.wire.sent.clear()
        began_s = clock.monotonic()
        await stage.writes.seen()
        assert (clock.monotonic(), stage.wire.sent) == (began_s, [])


async def test_a_new_term_sees_what_the_process_before_wrote(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        stage.wire.lag_s = 0.5
        await Client(running.transport(), clock).create(config_map("ci", "of-another-process"))
        stage.writes.begin_term()
        await stage.writes.seen()
        assert stage.names == ["of-another-process"]


async def test_a_new_term_waits_for_nothing_that_the_informer_does_not_follow(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock, labels="pool=mine") as stage:
        await Client(running.transport(), clock).create(config_map("ci", "of-others"))
        stage.writes.begin_term()
        await stage.writes.seen()
        assert stage.names == []


async def test_a_new_term_sends_nothing_again_that_was_decided_in_the_one_before(running: RunningApi, clock: Clock) -> None:
    """Another process has decided since."""
    async with staged(running, clock) as stage:
        stage.wire.loses_next = True
        with stage.writes.noted(), pytest.raises(Unreachable):
            await stage.client.create(config_map("ci", "a"))
        stage.writes.begin_term()
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == ["GET configmaps"]


async def test_an_object_that_somebody_made_again_under_a_deleted_name_is_waited_for_by_nobody(
    running: RunningApi, clock: Clock
) -> None:
    """The end of the one and the beginning of the other come in one batch: the name is never free in the cache."""
    async with staged(running, clock) as stage:
        other = Client(running.transport(), clock)
        made = await other.create(config_map("ci", "a"))
        await stage.maps.wait_until(lambda: stage.names == ["a"])
        stage.wire.lag_s = 0.5
        await other.create(config_map("ci", "b"))
        await elapse(0.1)
        with stage.writes.noted():
            await stage.client.delete(ConfigMap, made.key)
        seen = asyncio.create_task(stage.writes.seen())
        await elapse(0.1)
        again = await other.create(config_map("ci", "a"))
        await seen
        assert stage.maps.get(made.key) == again


async def test_a_batch_of_events_brings_the_cache_to_the_place_of_the_last_one(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        await asyncio.gather(*(stage.client.create(config_map("ci", name)) for name in "abc"))
        await stage.maps.wait_until(lambda: len(stage.names) == 3)
        assert stage.maps.position == running.store.revision


async def test_what_was_surely_refused_is_waited_for_by_nobody(running: RunningApi, clock: Clock) -> None:
    async with staged(running, clock) as stage:
        with stage.writes.noted(), pytest.raises(NotFound):
            await stage.client.patch(ConfigMap, Key("ci", "none"), Merge({"data": {}}))
        stage.wire.sent.clear()
        await stage.writes.seen()
        assert stage.wire.sent == []


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/namespaces/ci/pods/a/binding", ("pods", Key("ci", "a"))),
        ("/api/v1/namespaces/ci/pods", ("pods", Key("ci", ""))),
        ("/api/v1/nodes/mac-1/status", ("nodes", Key("", "mac-1"))),
        ("/api/v1/namespaces/ci", ("namespaces", Key("", "ci"))),
        ("/api/v1/namespaces/ci/finalize", ("namespaces", Key("", "ci"))),
        ("/apis/tuist.dev/v1alpha1/namespaces/ci/runnerpools/a", ("runnerpools.tuist.dev", Key("ci", "a"))),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            ("clusterroles.rbac.authorization.k8s.io", Key("", "system:node")),
        ),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/a", ("clusterroles.rbac.authorization.k8s.io", Key("", "a"))),
    ],
)
def test_what_a_request_is_about(path: str, target: tuple[str, Key]) -> None:
    assert target_of(path) == target
