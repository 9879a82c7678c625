"""Election, informers, queue and controller together: a standby is warm, and takes over what the leader had in hand."""

import asyncio

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.server.server import RunningApi
from applecart.errors import Transient
from applecart.kube.client import Client
from applecart.kube.controller import DONE, Controller, Result
from applecart.kube.election import Election
from applecart.kube.informer import Informer
from applecart.kube.lease import JITTER, Timing
from applecart.kube.patch import Merge
from applecart.kube.workqueue import WorkQueue
from tests.kube.backends import Backend
from tests.kube.faults import FaultyTransport
from tests.virtual_time import elapse

OBJECTS = 20


class Replica:
    """One process of a controller: the cache runs always, the work only under the Lease."""

    def __init__(self, name: str, running: RunningApi, clock: Clock) -> None:
        self.wire = FaultyTransport(running.transport())
        client = Client(self.wire, clock)
        self.informer = Informer(client, ConfigMap, "test")
        self.queue: WorkQueue[Key] = WorkQueue(clock)
        self.seen: dict[Key, float] = {}
        self.clock = clock
        controller = Controller("configs", self._reconcile, self.queue, clock, workers=2)
        controller.watch(self.informer)
        election = Election(client, Key("test", "configs"), name, clock)
        self.tasks = [asyncio.create_task(self.informer.run()), asyncio.create_task(election.lead(controller.run))]

    async def _reconcile(self, key: Key) -> Result:
        await elapse(0.01)
        self.seen[key] = self.clock.monotonic()
        return DONE

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.wait(self.tasks)

    def lists(self) -> int:
        return sum(1 for call in self.wire.calls if call.path.endswith("/configmaps") and ("watch", "true") not in call.query)


async def test_a_standby_takes_over_at_its_next_look_and_lists_nothing_again(running: RunningApi, clock: Clock) -> None:
    client = Client(running.transport(), clock)
    keys = [Key("test", f"config-{number}") for number in range(OBJECTS)]
    for key in keys:
        await client.create(ConfigMap(metadata=ObjectMeta(name=key.name, namespace=key.namespace)))
    leader = Replica("a", running, clock)
    await elapse(1)
    standby = Replica("b", running, clock)
    await elapse(60)
    assert set(leader.seen) == set(keys)
    assert standby.seen == {}
    assert standby.informer.is_synced
    lists_before = standby.lists()
    await leader.stop()
    stopped_s = clock.monotonic()
    await elapse(30)
    assert set(standby.seen) == set(keys)
    timing = Timing()
    assert max(standby.seen.values()) - stopped_s <= timing.retry_s * (1 + JITTER) + OBJECTS * 0.01
    assert standby.lists() == lists_before
    await standby.stop()


async def test_on_every_api_the_leader_looks_at_every_change_again_until_it_is_well(api: Backend, clock: Clock) -> None:
    """Informer, queue, controller and election on a real API; the deadline is only there to fail instead of hanging."""
    tries: dict[str, list[str]] = {}
    settled = asyncio.Event()
    queue: WorkQueue[Key] = WorkQueue(clock)
    informer = Informer(api.client, ConfigMap, api.namespace, labels="test=handover")

    async def reconcile(key: Key) -> Result:
        current = informer.get(key)
        value = current.data.get("value", "") if current else "gone"
        tries.setdefault(key.name, []).append(value)
        if len(tries[key.name]) == 1:
            raise Transient("the first look at each object fails")
        if len(tries) == 3 and all(len(values) > 1 and values[-1] == "final" for values in tries.values()):
            settled.set()
        return DONE

    controller = Controller("configs", reconcile, queue, clock, workers=2)
    controller.watch(informer)
    election = Election(api.client, Key(api.namespace, "configs"), "a", clock)
    tasks = [asyncio.create_task(informer.run()), asyncio.create_task(election.lead(controller.run))]
    for name in ("x", "y", "z"):
        metadata = ObjectMeta(name=name, namespace=api.namespace, labels={"test": "handover"})
        await api.client.create(ConfigMap(metadata=metadata, data={"value": "first"}))
        await api.client.patch(ConfigMap, Key(api.namespace, name), Merge({"data": {"value": "final"}}))
    await asyncio.wait_for(settled.wait(), 30)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(queue.failures(Key(api.namespace, name)) == 0 for name in tries)
