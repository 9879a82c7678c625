"""How disruption budgets guard Pods, as stories that every controller of them tells the same.

Pods have no Node, so they are gone as soon as they are evicted; whether one is ready the scenario says.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import yaml

from applecart.api.apiextensions import CustomResourceDefinition
from applecart.api.meta import Key, LabelSelector, Object, ObjectMeta, OwnerReference
from applecart.api.pods import Eviction, Pod
from applecart.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from applecart.api.runners import RunnerPool, RunnerPoolSpec
from applecart.kube.codec import encode_object
from applecart.kube.errors import AlreadyExists
from applecart.kube.owners import owner_reference
from applecart.kube.patch import Merge, Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request
from tests.embedded.controllers.pods import pod
from tests.embedded.controllers.scene import WITHIN_S, Scenario, Scene

POOLS = yaml.safe_load(Path("deploy/crds/tuist.dev_runnerpools.yaml").read_text())
LABELS = {"app": "guarded"}


async def running(scene: Scene, name: str, *owners: OwnerReference, is_ready: bool = True) -> Pod:
    metadata = ObjectMeta(name=name, namespace=scene.namespace, labels=LABELS, owner_references=owners)
    made = await scene.client.create(msgspec.structs.replace(pod(name), metadata=metadata))
    return await report(scene, made, is_ready=is_ready)


async def report(scene: Scene, about: Pod, *, is_ready: bool) -> Pod:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(is_ready)}]}
    return await scene.client.patch_status(Pod, about.key, Strategic({"status": status}))


async def budget(
    scene: Scene, *, least: int | str | None = None, most: int | str | None = None, name: str = "budget"
) -> PodDisruptionBudget:
    spec = PodDisruptionBudgetSpec(min_available=least, max_unavailable=most, selector=LabelSelector(match_labels=LABELS))
    return await scene.client.create(PodDisruptionBudget(metadata=ObjectMeta(name=name, namespace=scene.namespace), spec=spec))


def counts(status: PodDisruptionBudgetStatus) -> tuple[int, int, int, int]:
    return status.expected_pods, status.current_healthy, status.desired_healthy, status.disruptions_allowed


async def becomes(scene: Scene, about: PodDisruptionBudget, *wanted: int) -> PodDisruptionBudgetStatus:
    """Wait for expected, healthy, desired and allowed; of a budget that was seen as it is now."""

    def holds(now: PodDisruptionBudget | None) -> bool:
        return now is not None and now.status.observed_generation == now.metadata.generation and counts(now.status) == wanted

    return await _status(scene, about, holds, f"its counts are {wanted}")


async def cannot_be_counted(scene: Scene, about: PodDisruptionBudget, why: str) -> None:
    def holds(now: PodDisruptionBudget | None) -> bool:
        said = [(one.reason, one.message) for one in now.status.conditions] if now else []
        return said == [("SyncFailed", why)]

    status = await _status(scene, about, holds, f"it says {why!r}")
    assert status.disruptions_allowed == 0


async def _status(
    scene: Scene, about: PodDisruptionBudget, holds: Callable[[PodDisruptionBudget | None], bool], what: str
) -> PodDisruptionBudgetStatus:
    found = await scene.until(PodDisruptionBudget, about.key, holds, what)
    assert found is not None
    return found.status


async def evict(scene: Scene, about: Object) -> None:
    metadata = ObjectMeta(name=about.name, namespace=about.namespace)
    await scene.client.create_subresource(Pod, about.key, "eviction", Eviction(metadata=metadata))


async def refused(scene: Scene, about: Object) -> str:
    """The cause of the refusal; asked once, because the client asks a server that has too much to do again and again."""
    body = encode_object(Eviction(metadata=ObjectMeta(name=about.name, namespace=about.namespace)))
    request = Request("POST", object_path(Pod.resource, about.key, "eviction"), body=body)
    answer = await scene.client.transport.send(request)
    assert answer.status == 429
    cause: str = json.loads(answer.body)["details"]["causes"][0]["message"]
    return cause


async def as_many_pods_go_as_a_budget_can_spare(scene: Scene) -> None:
    one, two = await running(scene, "one"), await running(scene, "two")
    guard = await budget(scene, least=1)
    status = await becomes(scene, guard, 2, 2, 1, 1)
    assert [(one.type, one.status, one.reason) for one in status.conditions] == [
        ("DisruptionAllowed", "True", "SufficientPods")
    ]
    await evict(scene, one)
    status = await becomes(scene, guard, 1, 1, 1, 0)
    assert [(one.status, one.reason) for one in status.conditions] == [("False", "InsufficientPods")]
    assert status.disrupted_pods == {}
    assert await refused(scene, two) == "The disruption budget budget needs 1 healthy pods and has 1 currently"
    await running(scene, "three")
    await becomes(scene, guard, 2, 2, 1, 1)
    await evict(scene, two)


async def a_pod_that_is_not_ready_is_spent_already(scene: Scene) -> None:
    one, two = await running(scene, "one"), await running(scene, "two")
    guard = await budget(scene, least=1)
    await becomes(scene, guard, 2, 2, 1, 1)
    await report(scene, two, is_ready=False)
    await becomes(scene, guard, 2, 1, 1, 0)
    await refused(scene, one)
    await evict(scene, two)
    await becomes(scene, guard, 1, 1, 1, 0)


async def a_changed_budget_is_counted_anew(scene: Scene) -> None:
    await running(scene, "one")
    guard = await budget(scene, least=1)
    await becomes(scene, guard, 1, 1, 1, 0)
    await scene.client.patch(PodDisruptionBudget, guard.key, Merge({"spec": {"minAvailable": 0}}))
    await becomes(scene, guard, 1, 1, 0, 1)


async def a_pod_joins_and_leaves_a_budget_with_its_labels(scene: Scene) -> None:
    guard = await budget(scene, least=1)
    await becomes(scene, guard, 0, 0, 1, 0)
    one = await running(scene, "one")
    await becomes(scene, guard, 1, 1, 1, 0)
    await refused(scene, one)
    await scene.client.patch(Pod, one.key, Merge({"metadata": {"labels": {"app": "free"}}}))
    await evict(scene, one)


async def a_share_of_pods_without_an_owner_is_nothing(scene: Scene) -> None:
    one = await running(scene, "one")
    guard = await budget(scene, most=1)
    await becomes(scene, guard, 0, 1, 0, 0)
    assert await refused(scene, one) == "The disruption budget budget does not allow evicting pods currently"


async def counted_at_last(scene: Scene, about: PodDisruptionBudget, selected: Pod) -> None:
    """kube-controller-manager learns of new kinds twice a minute, and looks at a budget again when one of its Pods changes."""
    eye = await scene.eye(PodDisruptionBudget)
    async with asyncio.timeout(WITHIN_S):
        while (now := eye.get(about.key)) is None or now.status.observed_generation == 0:
            mark = {"metadata": {"annotations": {"looked-at": scene.client.clock.now().isoformat()}}}
            await scene.client.patch(Pod, selected.key, Merge(mark))
            await asyncio.sleep(1)  # there is no event to wait for


async def a_share_is_one_of_what_the_pods_owner_wants(scene: Scene) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    with suppress(AlreadyExists):
        await scene.client.call(Request("POST", path, body=json.dumps(POOLS).encode()))
    key = Key("", POOLS["metadata"]["name"])
    await scene.until(CustomResourceDefinition, key, lambda now: now is not None and now.is_established, "it is served")
    spec = RunnerPoolSpec(image="image", fleet_selector="fleet", dispatch_label="mac", runner_labels=("mac",), replicas=5)
    pool = await scene.client.create(RunnerPool(metadata=ObjectMeta(name="pool", namespace=scene.namespace), spec=spec))
    pods = [await running(scene, f"pod-{number}", owner_reference(pool)) for number in range(4)]
    shared = await budget(scene, least="50%")
    await counted_at_last(scene, shared, pods[0])
    await becomes(scene, shared, 5, 4, 3, 1)
    limited = await budget(scene, most="30%", name="limited")
    await becomes(scene, limited, 5, 4, 3, 1)
    await scene.client.delete(PodDisruptionBudget, limited.key)
    await evict(scene, pods[0])
    await becomes(scene, shared, 5, 3, 3, 0)


async def an_owner_that_has_no_scale_is_named(scene: Scene) -> None:
    await running(scene, "one", owner_reference(await scene.config_map("owner")))
    guard = await budget(scene, most=1)
    await cannot_be_counted(scene, guard, "configmaps does not implement the scale subresource")


async def an_owner_of_an_unknown_kind_is_named(scene: Scene) -> None:
    ghost = OwnerReference(api_version="ghost.test/v1", kind="Ghost", name="boo", uid="a-uid", controller=True)
    one = await running(scene, "one", ghost)
    guard = await budget(scene, least="50%")
    why = 'no matches for kind "Ghost" in version "ghost.test/v1"'
    await cannot_be_counted(scene, guard, why)
    assert await refused(scene, one) == "The disruption budget budget is still being processed by the server."


SCENARIOS: list[Scenario] = [
    as_many_pods_go_as_a_budget_can_spare,
    a_pod_that_is_not_ready_is_spent_already,
    a_changed_budget_is_counted_anew,
    a_pod_joins_and_leaves_a_budget_with_its_labels,
    a_share_of_pods_without_an_owner_is_nothing,
    a_share_is_one_of_what_the_pods_owner_wants,
    an_owner_that_has_no_scale_is_named,
    an_owner_of_an_unknown_kind_is_named,
]
