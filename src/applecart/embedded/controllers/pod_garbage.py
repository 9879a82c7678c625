"""Removes Pods that nobody is left to finish: those whose Node is gone, those that go without ever having had one, and finished
ones that are too many. It runs only where no kube-controller-manager does the same.

Sweeps every few seconds over what the informers know. A Node counts as gone only after a quarantine during which nobody saw it,
and when the API itself then says so. A Pod that has not ended is first marked Failed, so that whoever owns it sees an end and
not a disappearance; then it is deleted without grace. Every write names the uid it was decided on. Never touches a finalizer
(I5) and never a Pod of a Node that exists, unless a person took that Node out of service.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from applecart.api.conditions import READY
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, Pod, PodCondition
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kube.conditions import TRUE, is_true
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.manager import Manager
from applecart.kube.patch import Strategic
from applecart.observe.logs import logger

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"  # a person's word that the host is off and will not come back by itself
EVICTED = "Evicted"
ORPHANED_REASON, ORPHANED = "DeletionByPodGC", "PodGC: node no longer exists"
_UNDATED = datetime.min.replace(tzinfo=UTC)

DISRUPTION_TARGET = "DisruptionTarget"

AT_A_TIME = 8  # Pods; more would crowd out others at the API without being done sooner


log = logger(__name__)


class Removal(msgspec.Struct, frozen=True):
    pod: Pod
    because: str
    is_orphan: bool = False  # its owner is told by a condition


class Quarantine:
    """Since when a Node that Pods name has not been seen."""

    def __init__(self, quarantine_s: float) -> None:
        self._quarantine_s = quarantine_s
        self._missing_since_s: dict[str, float] = {}

    def look(self, pods: Iterable[Pod], known: Callable[[str], bool], now_s: float) -> list[str]:
        """The names of Nodes that were missing at every look of a whole quarantine."""
        named = {pod.spec.node_name for pod in pods if pod.spec.node_name}
        missing = {name: self._missing_since_s.get(name, now_s) for name in named if not known(name)}
        self._missing_since_s = missing
        return sorted(name for name, since_s in missing.items() if now_s - since_s >= self._quarantine_s)


def orphans(pods: Iterable[Pod], gone: Iterable[str]) -> list[Removal]:
    names = frozenset(gone)
    return [
        Removal(pod, f"its Node {pod.spec.node_name} is gone", is_orphan=True)
        for pod in pods
        if pod.spec.node_name in names and not _is_only_waiting(pod)
    ]


def never_placed(pods: Iterable[Pod]) -> list[Removal]:
    """Being deleted, and no agent that could finish it."""
    return [
        Removal(pod, "it is being deleted and never had a Node")
        for pod in pods
        if pod.is_being_deleted and not pod.spec.node_name and not _is_only_waiting(pod)
    ]


def on_dead_hosts(pods: Iterable[Pod], node_of: Callable[[str], Node | None]) -> list[Removal]:
    """Being deleted on a Node that is not ready and that a person took out of service."""
    return [
        Removal(pod, f"its Node {pod.spec.node_name} is out of service")
        for pod in pods
        if pod.is_being_deleted and not _is_only_waiting(pod) and _is_dead(node_of(pod.spec.node_name))
    ]


def beyond_threshold(pods: Iterable[Pod], threshold: int) -> list[Removal]:
    """The oldest finished Pods above the threshold, evicted ones first; 0 keeps all."""
    finished = [pod for pod in pods if pod.is_terminal and not pod.is_being_deleted]
    excess = len(finished) - threshold
    if threshold <= 0 or excess <= 0:
        return []
    return [Removal(pod, f"more than {threshold} Pods are finished") for pod in sorted(finished, key=_age_rank)[:excess]]


def _is_only_waiting(pod: Pod) -> bool:
    """Everything that could be asked for was: it ended and goes as soon as its last finalizer does."""
    return pod.is_terminal and pod.is_being_deleted and pod.metadata.deletion_grace_period_seconds == 0


def _is_dead(node: Node | None) -> bool:
    if node is None or is_true(node.status.conditions, READY):
        return False
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def _age_rank(pod: Pod) -> tuple[bool, datetime, str]:
    is_evicted = pod.status.phase == FAILED and pod.status.reason == EVICTED
    return not is_evicted, pod.metadata.creation_timestamp or _UNDATED, pod.name


def disrupted(pod: Pod, reason: str, message: str, now: datetime) -> PodCondition:
    """The condition that tells the Pod's owner why it goes; since when is kept from an earlier one."""
    known = pod.condition(DISRUPTION_TARGET)
    since = known.last_transition_time if known is not None and known.status == TRUE else None
    return PodCondition(
        type=DISRUPTION_TARGET,
        status=TRUE,
        reason=reason,
        message=message,
        last_transition_time=since or now.replace(microsecond=0),
        observed_generation=pod.metadata.generation or None,
    )


async def write_pod_status(client: Client, pod: Pod, *conditions: PodCondition, phase: str = "") -> bool:
    """Whether the Pod was still there to be written."""
    status: dict[str, object] = {"phase": phase} if phase else {}
    if conditions:
        status["conditions"] = msgspec.to_builtins(conditions)
    try:
        await client.patch_status(Pod, pod.key, Strategic({"metadata": {"uid": pod.uid}, "status": status}))
    except (NotFound, Conflict):  # without a revision the only conflict is that of the uid
        return False
    return True


async def delete_pod(client: Client, pod: Pod, *, grace_s: int | None = None) -> bool:
    """Whether the Pod was still there to be deleted."""
    try:
        await client.delete(Pod, pod.key, if_uid=pod.uid, grace_s=grace_s)
    except (NotFound, Conflict):
        return False
    return True


class Patience(msgspec.Struct, frozen=True):
    """The real controller's numbers; tests on a real cluster shorten them."""

    sweep_every_s: float = 20.0
    quarantine_s: float = 40.0  # a Node that is created again finds its Pods
    finished_threshold: int = 12_500
    deadline_s: float = 30.0  # for all calls about one Pod (I13)


class PodGarbage:
    def __init__(self, manager: Manager, patience: Patience = Patience()) -> None:  # noqa: B008 (frozen)
        self._client = manager.client
        self._pods = manager.informer(Pod)
        self._nodes = manager.informer(Node)
        self._clock = manager.clock
        self._patience = patience
        self._quarantine = Quarantine(patience.quarantine_s)
        manager.background("pod garbage", self.run)

    async def run(self) -> None:
        """Sweep until cancelled, whenever the API can be read."""
        while True:
            await self._nodes.following()
            await self._pods.following()
            await self.sweep()
            await asyncio.sleep(self._patience.sweep_every_s)

    async def sweep(self) -> None:
        pods = list(self._pods)
        missing = self._quarantine.look(pods, lambda name: self._node(name) is not None, self._clock.monotonic())
        gone = [name for name in missing if await self._is_gone(name)]
        plan = [
            *beyond_threshold(pods, self._patience.finished_threshold),
            *on_dead_hosts(pods, self._node),
            *orphans(pods, gone),
            *never_placed(pods),
        ]
        limit = asyncio.Semaphore(AT_A_TIME)

        async def carry_out(removal: Removal) -> None:
            async with limit:
                await self._try(removal)

        await asyncio.gather(*(carry_out(removal) for removal in plan))

    def _node(self, name: str) -> Node | None:
        return self._nodes.get(Key("", name))

    async def _is_gone(self, name: str) -> bool:
        """Whether the API says so; when it says nothing, the next sweep asks again."""
        try:
            await self._client.get(Node, Key("", name))
        except NotFound:
            return True
        except ApplecartError as error:
            log.warning("cannot tell whether a Node still exists, asking again", node=name, because=str(error))
        return False

    async def _try(self, removal: Removal) -> None:
        about = log.bind(removal.pod.key)
        try:
            async with asyncio.timeout(self._patience.deadline_s):
                await self._remove(removal)
        except (ApplecartError, TimeoutError) as error:
            because = str(error) or f"the API did not answer within {self._patience.deadline_s:g} s"
            about.warning("a Pod could not be removed, trying again", because=because)
        except Exception:
            about.exception("removing a Pod failed unexpectedly, trying again")

    async def _remove(self, removal: Removal) -> None:
        pod = removal.pod
        if not pod.is_terminal:
            told = (disrupted(pod, ORPHANED_REASON, ORPHANED, self._clock.now()),) if removal.is_orphan else ()
            if not await write_pod_status(self._client, pod, *told, phase=FAILED):
                return
        if await delete_pod(self._client, pod, grace_s=0):
            log.bind(pod.key).info("a Pod was removed", because=removal.because)
