"""Which Pods are garbage, and their collection at work on the embedded API in memory, on virtual time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Key
from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod
from applecart.clock import EPOCH, Clock
from applecart.embedded.controllers.pod_garbage import (
    Patience,
    PodGarbage,
    Quarantine,
    beyond_threshold,
    never_placed,
    on_dead_hosts,
    orphans,
)
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.patch import Merge
from applecart.kube.transport import Request
from tests.embedded.controllers.pods import FINALIZER, OUT_OF_SERVICE, node, pod, store
from tests.embedded.controllers.stages import run_alone
from tests.kube.faults import Fault, FaultyTransport, Refused, Says, Stalls, always
from tests.virtual_time import elapse

NOW = EPOCH + timedelta(hours=1)


def looked(quarantine: Quarantine, now_s: float, *existing: str, named: tuple[str, ...] = ("gone",)) -> list[str]:
    pods = [pod(f"on-{name}", on=name) for name in named]
    return quarantine.look(pods, lambda name: name in existing, now_s)


def test_a_node_is_gone_only_after_a_whole_quarantine() -> None:
    quarantine = Quarantine(40)
    assert [looked(quarantine, now_s) for now_s in (0, 20, 39.9, 40)] == [[], [], [], ["gone"]]


def test_a_node_that_shows_up_begins_its_quarantine_anew() -> None:
    quarantine = Quarantine(40)
    looked(quarantine, 0)
    looked(quarantine, 20, "gone")
    assert looked(quarantine, 40) == []
    assert looked(quarantine, 80) == ["gone"]


def test_a_node_that_no_pod_names_is_of_no_interest() -> None:
    quarantine = Quarantine(40)
    looked(quarantine, 0)
    looked(quarantine, 20, named=("",))
    assert looked(quarantine, 40) == []


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=30))
def test_a_node_seen_within_the_quarantine_is_never_gone(steps: list[tuple[float, bool]]) -> None:
    quarantine = Quarantine(40)
    now_s, missing_since_s = 0.0, None
    for step_s, is_there in steps:
        now_s += step_s
        missing_since_s = None if is_there else (now_s if missing_since_s is None else missing_since_s)
        gone = looked(quarantine, now_s, *(("gone",) if is_there else ()))
        assert bool(gone) == (missing_since_s is not None and now_s - missing_since_s >= 40)


def test_only_pods_of_a_gone_node_are_orphans() -> None:
    pods = [pod("a", on="gone"), pod("b", on="here"), pod("c")]
    assert [removal.pod.name for removal in orphans(pods, ["gone"])] == ["a"]
    assert all(removal.is_orphan for removal in orphans(pods, ["gone"]))


@pytest.mark.parametrize(
    ("phase", "grace_s", "is_asked_again"), [("Failed", 0, False), ("Failed", 30, True), ("Running", 0, True)]
)
def test_an_orphan_that_only_waits_for_its_finalizer_is_left_in_peace(phase: str, grace_s: int, is_asked_again: bool) -> None:
    waiting = pod(on="gone", phase=phase, deleted_at=NOW, grace_s=grace_s)
    assert bool(orphans([waiting], ["gone"])) is is_asked_again


@pytest.mark.parametrize(("is_deleted", "on", "is_garbage"), [(True, "", True), (False, "", False), (True, "mac-1", False)])
def test_a_pod_that_goes_without_ever_having_had_a_node_is_garbage(is_deleted: bool, on: str, is_garbage: bool) -> None:
    found = never_placed([pod(on=on, phase="Pending", deleted_at=NOW if is_deleted else None, grace_s=30)])
    assert bool(found) is is_garbage


@pytest.mark.parametrize(
    ("ready", "taints", "is_deleted", "is_garbage"),
    [
        ("Unknown", (OUT_OF_SERVICE,), True, True),
        ("False", (OUT_OF_SERVICE,), True, True),
        ("True", (OUT_OF_SERVICE,), True, False),
        ("Unknown", (OUT_OF_SERVICE,), False, False),
        ("Unknown", (Taint(key="maintenance", effect="NoExecute"),), True, False),
        ("Unknown", (), True, False),
    ],
)
def test_only_a_person_can_declare_a_host_dead(
    ready: str, taints: tuple[Taint, ...], is_deleted: bool, is_garbage: bool
) -> None:
    leaving = pod(on="mac-1", deleted_at=NOW if is_deleted else None, grace_s=30)
    assert bool(on_dead_hosts([leaving], lambda _: node(ready=ready, taints=taints))) is is_garbage
    assert on_dead_hosts([leaving], lambda _: None) == []


def test_the_oldest_finished_pods_above_the_threshold_go_and_evicted_ones_first() -> None:
    pods = [
        pod("new", phase="Succeeded", age_s=1),
        pod("old", phase="Succeeded", age_s=100),
        pod("b-older", phase="Failed", age_s=200),
        pod("a-older", phase="Failed", age_s=200),
        pod("evicted", phase="Failed", reason="Evicted", age_s=2),
        pod("running", phase="Running", age_s=900),
        pod("going", phase="Failed", age_s=900, deleted_at=NOW),
    ]
    order = [removal.pod.name for removal in beyond_threshold(pods, 1)]
    assert order == ["evicted", "a-older", "b-older", "old"]
    assert [removal.pod.name for removal in beyond_threshold(pods, 4)] == ["evicted"]
    assert beyond_threshold(pods, 5) == beyond_threshold(pods, 0) == []


phases = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])


@given(st.lists(st.tuples(phases, st.booleans(), st.sampled_from(["", "here"])), max_size=30), st.integers(0, 10))
def test_a_living_pod_of_a_living_node_is_never_garbage(states: list[tuple[str, bool, str]], threshold: int) -> None:
    pods = [
        pod(f"p{number}", phase=phase, on=on, deleted_at=NOW if going else None)
        for number, (phase, going, on) in enumerate(states)
    ]
    well = node()
    removals = [
        *orphans(pods, ["gone"]),
        *never_placed(pods),
        *on_dead_hosts(pods, lambda _: well),
        *beyond_threshold(pods, threshold),
    ]
    for removal in removals:
        assert removal.pod.is_terminal or (removal.pod.is_being_deleted and not removal.pod.spec.node_name)
    kept = sum(each.is_terminal and not each.is_being_deleted for each in pods) - len(beyond_threshold(pods, threshold))
    assert threshold == 0 or kept <= threshold


class Scene:
    def __init__(self, network: FaultyTransport, clock: Clock) -> None:
        self.network = FaultyTransport(network)  # the collector's own
        self.client = Client(network, clock)
        collector = Client(self.network, clock)
        self._task = asyncio.create_task(run_alone(PodGarbage, collector, Patience(finished_threshold=3)))

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


async def test_while_nodes_cannot_be_followed_nothing_is_done_on_what_was_known_of_them(scene: Scene) -> None:
    """The host may be back since."""
    await scene.client.create(node(ready="Unknown", taints=(OUT_OF_SERVICE,)))
    await store(scene.client, pod(on="mac-1"))
    await elapse(5)
    scene.network.plan = lambda request: Refused() if request.path == "/api/v1/nodes" else None
    scene.network.sever()
    await elapse(1)
    await scene.client.delete(Pod, Key("default", "runner"))
    await elapse(120)
    assert await scene.find("runner") is not None
    scene.network.heal()
    await elapse(120)
    assert await scene.find("runner") is None


async def test_finished_pods_above_the_threshold_go_oldest_first(scene: Scene) -> None:
    await scene.client.create(node())
    for number in range(5):
        await store(scene.client, pod(f"done-{number}", on="mac-1", phase="Succeeded"))
        await elapse(1)
    await store(scene.client, pod("running", on="mac-1"))
    await elapse(60)
    left = {found.name for found in await scene.client.list(Pod, "default")}
    assert left == {"done-2", "done-3", "done-4", "running"}
