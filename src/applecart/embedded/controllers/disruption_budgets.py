"""Keeps the status of PodDisruptionBudgets: how many Pods there should be, how many are healthy, how many more may go.

An eviction itself takes one off `disruptionsAllowed` and notes the Pod, which counts as gone before its deletion is seen; so
every write here is on the revision that was judged. What cannot be counted allows no eviction. A percentage and
`maxUnavailable` are shares of what the Pods' owners want, read from their `scale`; Pods without an owner add nothing to that.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from applecart.api.autoscaling import Scale
from applecart.api.conditions import READY
from applecart.api.meta import Condition, Key, Object, OwnerReference, Resource
from applecart.api.pods import Pod
from applecart.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from applecart.errors import ApplecartError
from applecart.kube.codec import decoder
from applecart.kube.conditions import FALSE, TRUE, is_true, set_condition
from applecart.kube.controller import DONE, WAIT, Controller, Result, again_in
from applecart.kube.discovery import Discovery, discover
from applecart.kube.errors import NotFound
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.patch import Json
from applecart.kube.paths import object_path
from applecart.kube.transport import Request

COMPONENT = "controllermanager"
BY_NAMESPACE = "namespace"
DELETED_WITHIN = timedelta(minutes=2)  # an evicted Pod that is not being deleted by then stays and counts again
ALLOWED, SYNC_FAILED = "DisruptionAllowed", "SyncFailed"
WORKERS = 2
SELECTED_AT_ONCE = 50  # Pods of a budget, or budgets of a Pod; the largest selectors take 0.2 ms each
UNMANAGED = (
    "Pods selected by this PodDisruptionBudget have no owner, so what its share is a share of cannot be known; "
    'to account for these Pods set ".spec.minAvailable" to an integer'
)


class Uncountable(Exception):
    """How many Pods there should be cannot be known; the text is the real controller's."""


# Deciding


def wanted(spec: PodDisruptionBudgetSpec, present: int, scale: int) -> tuple[int, int]:
    """How many Pods there should be, and how many of them healthy."""
    if spec.max_unavailable is not None:
        return scale, max(scale - _share(spec.max_unavailable, scale), 0)
    if isinstance(spec.min_available, str):
        return scale, _share(spec.min_available, scale)
    return (0, 0) if spec.min_available is None else (present, spec.min_available)


def status_now(
    budget: PodDisruptionBudget, pods: Collection[Pod], expected: int, desired: int, now: datetime
) -> PodDisruptionBudgetStatus:
    staying = [pod for pod in pods if not pod.is_being_deleted]
    noted = budget.status.disrupted_pods
    disrupted = {pod.name: noted[pod.name] for pod in staying if pod.name in noted and noted[pod.name] + DELETED_WITHIN > now}
    healthy = sum(pod.name not in disrupted and is_true(pod.status.conditions, READY) for pod in staying)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    generation = budget.metadata.generation
    reason, status = ("SufficientPods", TRUE) if allowed else ("InsufficientPods", FALSE)
    condition = Condition(type=ALLOWED, status=status, reason=reason, message="", observed_generation=generation or None)
    return PodDisruptionBudgetStatus(
        observed_generation=generation,
        disrupted_pods=disrupted,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        conditions=set_condition(budget.status.conditions, condition, now),
    )


def status_unknown(budget: PodDisruptionBudget, why: str, now: datetime) -> PodDisruptionBudgetStatus:
    """Nothing may go while nobody can count."""
    seen = budget.status.observed_generation or None
    condition = Condition(type=ALLOWED, status=FALSE, reason=SYNC_FAILED, message=why, observed_generation=seen)
    conditions = set_condition(budget.status.conditions, condition, now)
    return msgspec.structs.replace(budget.status, disruptions_allowed=0, conditions=conditions)


def selects(budget: PodDisruptionBudget, labels: Mapping[str, str]) -> bool:
    """Of a Pod of its namespace."""
    selector = budget.spec.selector
    return selector is not None and selector.selects(labels)


def _share(value: int | str, whole: int) -> int:
    """A number as it is; of a percentage the next whole number above."""
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * whole // 100)


# Doing

_Place = tuple[str, tuple[tuple[str, str], ...]]  # the namespace and labels of a Pod
K = TypeVar("K", bound=Object)


async def _in_turns(objects: Sequence[K]) -> AsyncIterator[K]:
    """Each of them, and others get a turn after every few."""
    for number, obj in enumerate(objects, 1):
        yield obj
        if not number % SELECTED_AT_ONCE:
            await asyncio.sleep(0)


class DisruptionBudgets:
    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._budgets = manager.informer(PodDisruptionBudget, indexes={BY_NAMESPACE: lambda budget: [budget.namespace]})
        self._pods = manager.informer(Pod, indexes={BY_NAMESPACE: lambda pod: [pod.namespace]})
        self._recorder = manager.recorder(COMPONENT)
        self._clock = manager.clock
        self._discovered = Discovery()
        controller: Controller[Key] = manager.controller("disruption budgets", self.reconcile, workers=WORKERS)
        controller.watch(self._budgets, ends_backoff=lambda change: True)
        controller.read_from(self._pods)
        self._queue = controller.queue
        finder: Controller[_Place] = manager.controller("budgets of Pods", self.find_budgets)
        finder.watch(self._pods, key_of=lambda pod: (pod.namespace, tuple(pod.labels.items())))
        finder.read_from(self._budgets)

    async def find_budgets(self, of: _Place) -> Result:
        """Look at the budgets of Pods with these labels."""
        namespace, labels = of[0], dict(of[1])
        async for budget in _in_turns(self._budgets.by_index(BY_NAMESPACE, namespace)):
            if selects(budget, labels):
                self._queue.add(budget.key)
        return DONE

    async def reconcile(self, key: Key) -> Result:
        budget = self._budgets.get(key)
        if budget is None:
            return DONE
        pods = [pod async for pod in _in_turns(self._pods.by_index(BY_NAMESPACE, key.namespace)) if selects(budget, pod.labels)]
        if not pods:
            self._recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        needs_scale = budget.spec.max_unavailable is not None or isinstance(budget.spec.min_available, str)
        try:
            scale = await self._scale(budget, pods) if needs_scale else 0
        except (Uncountable, ApplecartError) as error:
            why = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", why)
            await self._write(budget, status_unknown(budget, str(error), self._clock.now()))
            if isinstance(error, ApplecartError):
                raise
            return WAIT
        now = self._clock.now()
        status = status_now(budget, pods, *wanted(budget.spec, len(pods), scale), now)
        await self._write(budget, status)
        if not status.disrupted_pods:
            return DONE
        return again_in(min(status.disrupted_pods.values()) + DELETED_WITHIN - now)

    async def _write(self, budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus) -> None:
        if status == budget.status:
            return
        change = Json([{"op": "add", "path": "/status", "value": msgspec.to_builtins(status)}])
        with suppress(NotFound):
            await self._client.patch_status(PodDisruptionBudget, budget.key, change, if_revision=budget.revision)

    async def _scale(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> int:
        """How many Pods their owners want, together."""
        replicas: dict[str, int] = {}
        for pod in pods:
            owner = pod.controller
            if owner is None:
                self._recorder.event(budget, "Warning", "UnmanagedPods", UNMANAGED)
            elif owner.uid not in replicas:
                replicas[owner.uid] = await self._replicas(owner, pod)
        return sum(replicas.values())

    async def _replicas(self, owner: OwnerReference, pod: Pod) -> int:
        resource = await self._resource(owner)
        key = Key(pod.namespace if resource.namespaced else "", owner.name)
        try:
            answer = await self._client.call(Request("GET", object_path(resource, key, "scale")))
        except NotFound:
            if await self._exists(resource, key):
                raise Uncountable(f"{resource.label} does not implement the scale subresource") from None
        else:
            scale = decoder(Scale).decode(answer.body)
            if scale.uid == owner.uid:
                return scale.spec.replicas
        raise Uncountable(f'found no controllers for pod "{pod.name}"')

    async def _resource(self, owner: OwnerReference) -> Resource:
        """Where the owner's kind is served; asked again when it is not known, because kinds come while we run."""
        found = self._discovered.find(owner.api_version, owner.kind)
        if found is None:
            self._discovered = await discover(self._client)
            found = self._discovered.find(owner.api_version, owner.kind)
        if found is None:
            raise Uncountable(f'no matches for kind "{owner.kind}" in version "{owner.api_version}"')
        return found

    async def _exists(self, resource: Resource, key: Key) -> bool:
        try:
            await MetadataClient.of(self._client).get(metadata_kind(resource), key)
        except NotFound:
            return False
        return True
