"""The Pod garbage at work on the embedded API in memory, on virtual time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.pod_garbage.collector import Patience
from applecart.embedded.controllers.pod_garbage.run import run_pod_garbage
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.pod_garbage.pods import FINALIZER, OUT_OF_SERVICE, node, pod, store
from tests.kube.faults import Fault, FaultyTransport, Refused, Says, Stalls, always
from tests.virtual_time import elapse


class Scene:
    def __init__(self, network: FaultyTransport, clock: Clock) -> None:
        self.network = FaultyTransport(network)  # the collector's own
        self.client = Client(network, clock)
        collector = Client(self.network, clock)
        self._task = asyncio.create_task(run_pod_garbage(collector, clock, patience=Patience(finished_threshold=3)))

    async def find(self, name: str) -> Pod | None:
        try:
            return await self.client.get(Pod, Key("default", name))
        except NotFound:
            return None

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


@pytest.fixture
async def scene(network: FaultyTransport, clock: Clock) -> AsyncIterator[Scene]:
    made = Scene(network, clock)
    yield made
    await made.stop()


async def test_the_pods_of_a_deleted_node_end_and_go_after_the_quarantine(scene: Scene) -> None:
    await scene.client.create(node())
    await store(scene.client, pod(on="mac-1"))
    await elapse(600)
    assert await scene.find("runner") is not None
    await scene.client.delete(Node, Key("", "mac-1"))
    await elapse(39)
    assert await scene.find("runner") is not None
    await elapse(61)
    assert await scene.find("runner") is None


async def test_an_orphan_with_a_finalizer_says_why_it_ended_and_waits_for_it(scene: Scene) -> None:
    await store(scene.client, pod(on="gone", finalizers=(FINALIZER,)))
    await elapse(600)
    left = await scene.find("runner")
    assert left is not None
    assert left.metadata.finalizers == (FINALIZER,)
    assert (left.status.phase, left.is_being_deleted, left.metadata.deletion_grace_period_seconds) == ("Failed", True, 0)
    target = left.condition("DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason) == ("True", "DeletionByPodGC")
    assert target.message == "PodGC: node no longer exists"
    scene.network.calls.clear()
    await elapse(600)
    assert [call.method for call in scene.network.calls if call.method in ("PATCH", "DELETE")] == []
    await scene.client.patch(Pod, left.key, Merge({"metadata": {"finalizers": None}}))
    assert await scene.find("runner") is None


async def test_a_node_that_is_created_again_in_time_keeps_its_pods(scene: Scene) -> None:
    await store(scene.client, pod(on="mac-1"))
    await elapse(35)
    await scene.client.create(node())
    await elapse(600)
    kept = await scene.find("runner")
    assert kept is not None
    assert kept.status.phase == "Running"


async def test_a_node_that_only_the_cache_misses_keeps_its_pods(scene: Scene) -> None:
    """A watch that silently stopped never brings the Node. The API itself has the last word."""
    await elapse(1)

    def stale(request: Request) -> Fault | None:
        is_watch = request.path == "/api/v1/nodes" and ("watch", "true") in request.query
        return Stalls() if is_watch else None

    scene.network.plan = stale
    scene.network.sever()
    await elapse(1)
    await scene.client.create(node())
    await store(scene.client, pod(on="mac-1"))
    await elapse(600)
    assert await scene.find("runner") is not None
    assert "/api/v1/nodes/mac-1" in {call.path for call in scene.network.calls}


async def test_an_api_that_does_not_answer_about_the_node_kills_nobody(scene: Scene) -> None:
    await store(scene.client, pod(on="gone"))

    def unsure(request: Request) -> Fault | None:
        return Says(500) if request.path == "/api/v1/nodes/gone" else None

    scene.network.plan = unsure
    await elapse(3600)
    assert await scene.find("runner") is not None
    scene.network.heal()
    await elapse(60)
    assert await scene.find("runner") is None


async def test_an_outage_is_survived_and_the_work_done_after_it(scene: Scene) -> None:
    await store(scene.client, pod(on="gone"))
    scene.network.plan = always(Refused())
    scene.network.sever()
    await elapse(600)
    assert await scene.find("runner") is not None
    scene.network.heal()
    await elapse(120)
    assert await scene.find("runner") is None


async def test_a_pod_that_took_the_name_of_an_orphan_lives(scene: Scene) -> None:
    await scene.client.create(node("mac-2"))
    await store(scene.client, pod(on="gone"))

    async def replace() -> None:
        await scene.client.delete(Pod, Key("default", "runner"), grace_s=0)
        await store(scene.client, pod(on="mac-2"))

    replaced: list[asyncio.Task[None]] = []

    def race(request: Request) -> Fault | None:
        if request.method == "PATCH" and not replaced:
            replaced.append(asyncio.create_task(replace()))
            return Says(503)  # the collector tries again when the other Pod is there
        return None

    scene.network.plan = race
    await elapse(600)
    assert replaced
    lives = await scene.find("runner")
    assert lives is not None
    assert (lives.status.phase, lives.is_being_deleted, lives.spec.node_name) == ("Running", False, "mac-2")


async def test_a_pod_that_goes_without_a_node_is_failed_and_its_finalizer_stays(scene: Scene) -> None:
    await store(scene.client, pod(phase="Pending", finalizers=(FINALIZER,)))
    await scene.client.delete(Pod, Key("default", "runner"))
    await elapse(30)
    left = await scene.find("runner")
    assert left is not None
    assert (left.status.phase, left.metadata.finalizers) == ("Failed", (FINALIZER,))
    assert left.condition("DisruptionTarget") is None


async def test_a_pod_that_goes_on_a_host_out_of_service_is_finished(scene: Scene) -> None:
    await scene.client.create(node(ready="Unknown", taints=(OUT_OF_SERVICE,)))
    await store(scene.client, pod(on="mac-1"))
    await store(scene.client, pod("stays", on="mac-1"))
    await scene.client.delete(Pod, Key("default", "runner"))
    await elapse(30)
    assert await scene.find("runner") is None
    assert await scene.find("stays") is not None


async def test_finished_pods_above_the_threshold_go_oldest_first(scene: Scene) -> None:
    await scene.client.create(node())
    for number in range(5):
        await store(scene.client, pod(f"done-{number}", on="mac-1", phase="Succeeded"))
        await elapse(1)
    await store(scene.client, pod("running", on="mac-1"))
    await elapse(60)
    left = {found.name for found in await scene.client.list(Pod, "default")}
    assert left == {"done-2", "done-3", "done-4", "running"}
