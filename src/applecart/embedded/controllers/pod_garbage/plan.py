"""Which Pods are garbage: those whose Node is gone, those that go without ever having had one, and finished ones that are
too many.

A Node counts as gone only after a quarantine during which nobody saw it; `collector.py` asks the API once more before it acts.
Pods that already are on their way out with nothing left to do are left alone, so a finalizer is waited for in peace (I5).
Pure: reads no clock and no API.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

from applecart.api.conditions import READY
from applecart.api.nodes import Node
from applecart.api.pods import FAILED, Pod
from applecart.kube.conditions import is_true

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"  # a person's word that the host is off and will not come back by itself
EVICTED = "Evicted"
ORPHANED_REASON, ORPHANED = "DeletionByPodGC", "PodGC: node no longer exists"
_UNDATED = datetime.min.replace(tzinfo=UTC)


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
