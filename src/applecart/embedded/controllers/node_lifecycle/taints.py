"""The taints that a Node's conditions mean.

NoSchedule follows every condition at once. NoExecute, which makes Pods leave, follows Ready only, and only when the fleet as a
whole looks sane (`disruption.py` grants it). Taints of anybody else are kept as they are, in their order. Pure.
"""

from datetime import datetime

from applecart.api.conditions import DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, PID_PRESSURE, READY
from applecart.api.nodes import Node, Taint
from applecart.embedded.controllers.node_lifecycle.verdict import readiness
from applecart.kube.conditions import FALSE, TRUE, UNKNOWN

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OF_CONDITION = {
    (READY, FALSE): NOT_READY,
    (READY, UNKNOWN): UNREACHABLE,
    (MEMORY_PRESSURE, TRUE): "node.kubernetes.io/memory-pressure",
    (DISK_PRESSURE, TRUE): "node.kubernetes.io/disk-pressure",
    (PID_PRESSURE, TRUE): "node.kubernetes.io/pid-pressure",
    (NETWORK_UNAVAILABLE, TRUE): "node.kubernetes.io/network-unavailable",
}
_KEPT_HERE = frozenset({(key, NO_SCHEDULE) for key in (*_OF_CONDITION.values(), UNSCHEDULABLE)}) | {
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
}


def wanted_taints(node: Node, *, may_execute: bool, now: datetime) -> tuple[Taint, ...]:
    """All taints of the Node as they should be; the Node's own tuple when nothing has to change."""
    wanted = [(key, NO_SCHEDULE) for key in _keys_of_conditions(node)]
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    lost = lost_key(node)
    if lost and may_execute:
        wanted.append((lost, NO_EXECUTE))
    kept = tuple(taint for taint in node.spec.taints if (_id := (taint.key, taint.effect)) not in _KEPT_HERE or _id in wanted)
    there = {(taint.key, taint.effect) for taint in kept}
    at = now.replace(microsecond=0)
    new = tuple(Taint(key=key, effect=effect, time_added=at) for key, effect in wanted if (key, effect) not in there)
    return node.spec.taints if not new and len(kept) == len(node.spec.taints) else (*kept, *new)


def lost_key(node: Node) -> str:
    """The key of the taint that makes Pods leave; empty while the Node is ready or never said."""
    return _OF_CONDITION.get((READY, readiness(node)), "")


def is_told_to_leave(node: Node) -> bool:
    """Whether the Node has one of our taints that make Pods leave."""
    return any(taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE) for taint in node.spec.taints)


def taints_that_evict(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


def taints_that_still_evict(node: Node) -> tuple[Taint, ...]:
    """Without ours on a Node that is ready: they are about to go, and nobody may leave for them any more."""
    is_ready = readiness(node) == TRUE
    return tuple(taint for taint in taints_that_evict(node) if not (is_ready and taint.key in (NOT_READY, UNREACHABLE)))


def _keys_of_conditions(node: Node) -> list[str]:
    found = (_OF_CONDITION.get((condition.type, condition.status)) for condition in node.status.conditions)
    return [key for key in found if key]
