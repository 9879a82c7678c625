"""What the status of a Node says whose agent is silent, and what a Pod on it says.

The words are the real controller's. NetworkUnavailable stays as it is: not the agent but the control plane keeps it. Pure;
`nodes.py` writes it.
"""

from datetime import datetime

import msgspec

from applecart.api.conditions import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE, READY
from applecart.api.nodes import Node, NodeCondition
from applecart.api.pods import Pod, PodCondition
from applecart.kube.conditions import FALSE, TRUE, UNKNOWN

KEPT_BY_THE_AGENT = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)
STOPPED_REASON, STOPPED = "NodeStatusUnknown", "Kubelet stopped posting node status."
NEVER_REASON, NEVER = "NodeStatusNeverUpdated", "Kubelet never posted node status."


def readiness(node: Node) -> str:
    """The status of Ready; empty when nobody ever wrote one."""
    ready = node.condition(READY)
    return ready.status if ready is not None else ""


def lost_conditions(node: Node, now: datetime) -> list[NodeCondition]:
    """The conditions to write when nothing is heard of the agent; none when all say so already."""
    at = now.replace(microsecond=0)
    changed = []
    for type_ in KEPT_BY_THE_AGENT:
        known = node.condition(type_)
        if known is None:
            changed.append(_never(type_, node, at))
        elif known.status != UNKNOWN:
            changed.append(
                msgspec.structs.replace(known, status=UNKNOWN, reason=STOPPED_REASON, message=STOPPED, last_transition_time=at)
            )
    return changed


def _never(type_: str, node: Node, at: datetime) -> NodeCondition:
    return NodeCondition(
        type=type_,
        status=UNKNOWN,
        reason=NEVER_REASON,
        message=NEVER,
        last_heartbeat_time=node.metadata.creation_timestamp,
        last_transition_time=at,
    )


def unready_condition(pod: Pod, now: datetime) -> PodCondition | None:
    """Ready=False for a Pod that still claims another readiness on a lost Node; None when there is nothing to write."""
    ready = pod.condition(READY)
    if ready is None or ready.status == FALSE:
        return None
    return msgspec.structs.replace(ready, status=FALSE, last_transition_time=now.replace(microsecond=0))


def was_ready(node: Node) -> bool:
    return readiness(node) == TRUE
