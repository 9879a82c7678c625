"""Nodes, Leases and Pods for tests of the node lifecycle, as short as the sentence they prove."""

from datetime import datetime
from typing import Any

from applecart.api.containers import Container
from applecart.api.coordination import Lease, LeaseSpec
from applecart.api.meta import ObjectMeta, micro_time
from applecart.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from applecart.api.pods import Pod, PodCondition, PodSpec, PodStatus
from applecart.api.scheduling import Toleration
from applecart.clock import EPOCH

PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
UNREACHABLE = "node.kubernetes.io/unreachable"
NOT_READY = "node.kubernetes.io/not-ready"


def condition(type_: str, status: str, at: datetime = EPOCH, reason: str = "KubeletSays") -> NodeCondition:
    return NodeCondition(type=type_, status=status, reason=reason, last_heartbeat_time=at, last_transition_time=at)


def node(
    name: str = "mac-1",
    *,
    ready: str = "True",
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    labels: dict[str, str] | None = None,
    more: tuple[NodeCondition, ...] = (),
    at: datetime = EPOCH,
    uid: str = "",
) -> Node:
    """A Node; `ready` empty for one whose agent never posted a status."""
    conditions = (condition("Ready", ready, at), *more) if ready else more
    return Node(
        metadata=ObjectMeta(name=name, uid=uid or f"uid-{name}", labels=labels or {}, creation_timestamp=EPOCH),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(conditions=conditions),
    )


def lease(name: str = "mac-1", at: datetime = EPOCH) -> Lease:
    return Lease(
        metadata=ObjectMeta(name=name, namespace="kube-node-lease"),
        spec=LeaseSpec(holder_identity=name, lease_duration_seconds=40, renew_time=micro_time(at)),
    )


def pod(name: str = "runner", *, on: str = "mac-1", namespace: str = "default", ready: str = "True", **spec: Any) -> Pod:
    conditions = (PodCondition(type="Ready", status=ready, last_transition_time=EPOCH),) if ready else ()
    return Pod(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}"),
        spec=PodSpec(**{"node_name": on, "containers": (Container(name="runner", image="image"),), **spec}),
        status=PodStatus(phase="Running", conditions=conditions),
    )


def tolerates(key: str, seconds: int | None = None, effect: str = "NoExecute") -> Toleration:
    return Toleration(key=key, operator="Exists", effect=effect, toleration_seconds=seconds)


def leaves_after(seconds: int) -> tuple[Toleration, ...]:
    """Of both taints of a lost Node."""
    return tolerates(NOT_READY, seconds), tolerates(UNREACHABLE, seconds)
