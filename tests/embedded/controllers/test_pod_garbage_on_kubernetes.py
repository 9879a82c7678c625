"""The same scenarios with kube-controller-manager and with ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.binaries.cluster import Options
from applecart.embedded.controllers.pod_garbage import Patience, PodGarbage
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge
from tests.embedded.controllers.pods import FINALIZER, node, pod, store
from tests.embedded.controllers.stages import run_alone
from tests.kubernetes.cluster import CONTROLLER_MANAGER, FullCluster

OURS = "ours"
REAL = "kube-controller-manager"
WITHIN_S = 100.0  # the real one sweeps every 20 s, waits out 40 s, and lets neither be shortened
THRESHOLD = 3
QUICK = Patience(sweep_every_s=0.5, quarantine_s=1.0, finished_threshold=THRESHOLD)

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]


@asynccontextmanager
async def our_collector(client: Client, clock: Clock) -> AsyncIterator[None]:
    task = asyncio.create_task(run_alone(PodGarbage, client, QUICK))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture(scope="module")
def cluster_of_garbage(kube_programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FullCluster]:
    """One of its own: the threshold counts all Pods of the cluster."""
    cluster = FullCluster(kube_programs, tmp_path_factory.mktemp("garbage"), Options(durable=False))
    asyncio.run(cluster.start())
    yield cluster
    asyncio.run(cluster.stop())


@pytest.fixture(scope="module", params=[OURS, REAL])
def collector(request: pytest.FixtureRequest, cluster_of_garbage: FullCluster) -> Iterator[str]:
    """Who collects; never both at once."""
    if request.param == REAL:
        wanted = (f"--terminated-pod-gc-threshold={THRESHOLD}", "--controllers=*,-taint-eviction-controller")
        asyncio.run(cluster_of_garbage.start_controller_manager(*wanted))
    yield request.param
    asyncio.run(cluster_of_garbage.stop_program(CONTROLLER_MANAGER))


async def test_both_collect_the_same_pods_in_the_same_way(
    collector: str, cluster_of_garbage: FullCluster, clock: Clock
) -> None:
    client = Client(connect(str(cluster_of_garbage.kubeconfig), None, clock, environ={}), clock)
    who = our_collector(client, clock) if collector == OURS else nullcontext()
    pods = Informer(client, Pod, "default")
    following = asyncio.create_task(pods.run())
    try:
        await pods.following()
        async with who:
            await play(client, pods)
    finally:
        for left in await client.list(Pod, "default"):
            await client.patch(Pod, left.key, Merge({"metadata": {"finalizers": None}}))
            if not left.is_being_deleted:
                await client.delete(Pod, left.key, grace_s=0)
        await client.delete(Node, Key("", "mac-1"))
        following.cancel()
        await client.aclose()


async def play(client: Client, pods: Informer[Pod]) -> None:
    await client.create(node())
    await store(client, pod("orphan", on="gone", finalizers=(FINALIZER,)))
    await store(client, pod("plain-orphan", on="gone"))
    await store(client, pod("unplaced", phase="Pending", finalizers=(FINALIZER,)))
    await client.delete(Pod, Key("default", "unplaced"))
    await store(client, pod("running", on="mac-1"))
    await store(client, pod("evicted", on="mac-1", phase="Failed", reason="Evicted"))
    for number in range(THRESHOLD):
        await store(client, pod(f"done-{number}", on="mac-1", phase="Succeeded"))

    def get(name: str) -> Pod | None:
        return pods.get(Key("default", name))

    def is_failed(name: str) -> bool:
        found = get(name)
        return found is not None and found.status.phase == "Failed" and found.metadata.deletion_grace_period_seconds == 0

    await until(pods, lambda: is_failed("unplaced"), "the Pod without a node is failed")
    await until(pods, lambda: get("evicted") is None, "the evicted Pod goes first")
    await until(pods, lambda: get("plain-orphan") is None, "the orphan goes")
    await until(pods, lambda: is_failed("orphan"), "the orphan with a finalizer is failed")
    orphan, unplaced = get("orphan"), get("unplaced")
    assert orphan is not None
    assert unplaced is not None
    target = orphan.condition("DisruptionTarget")
    assert target is not None
    assert (target.status, target.reason, target.message) == ("True", "DeletionByPodGC", "PodGC: node no longer exists")
    assert unplaced.condition("DisruptionTarget") is None
    assert orphan.metadata.finalizers == unplaced.metadata.finalizers == (FINALIZER,)
    # The real one also counts finished Pods that wait for a finalizer, so it may take two more; the newest stays.
    assert get(f"done-{THRESHOLD - 1}") is not None
    running = get("running")
    assert running is not None
    assert running.is_alive


async def until(pods: Informer[Pod], holds: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WITHIN_S):
            await pods.wait_until(holds)
    except TimeoutError:
        seen = {found.name: (found.status.phase, found.is_being_deleted) for found in pods}
        raise AssertionError(f"{what}: did not come true; {seen}") from None
