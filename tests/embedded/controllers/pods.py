"""Pods and Nodes for tests of the controllers, as short as the sentence they prove."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from applecart.api.containers import Container
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.clock import EPOCH
from applecart.kube.client import Client
from applecart.kube.patch import Strategic

FINALIZER = "tuist.dev/tart-kubelet"
OUT_OF_SERVICE = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute", value="nodeshutdown")


def pod(
    name: str = "runner",
    *,
    on: str = "",
    phase: str = "Running",
    reason: str = "",
    age_s: float = 0.0,
    deleted_at: datetime | None = None,
    grace_s: int | None = None,
    finalizers: tuple[str, ...] = (),
    **spec: Any,
) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace="default",
        uid=f"uid-{name}",
        creation_timestamp=EPOCH - timedelta(seconds=age_s),
        deletion_timestamp=deleted_at,
        deletion_grace_period_seconds=grace_s,
        finalizers=finalizers,
    )
    containers = (Container(name="runner", image="image"),)
    return Pod(
        metadata=metadata,
        spec=PodSpec(**{"node_name": on, "containers": containers, **spec}),
        status=PodStatus(phase=phase, reason=reason),
    )


def node(name: str = "mac-1", *, ready: str = "True", taints: tuple[Taint, ...] = ()) -> Node:
    said = (NodeCondition(type="Ready", status=ready),)
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(taints=taints), status=NodeStatus(conditions=said))


async def store(client: Client, wanted: Pod, namespace: str = "default") -> Pod:
    """As its owner creates it and its agent reports it."""
    metadata = ObjectMeta(name=wanted.name, namespace=namespace, finalizers=wanted.metadata.finalizers)
    made = await client.create(msgspec.structs.replace(wanted, metadata=metadata))
    status = {"phase": wanted.status.phase, **({"reason": wanted.status.reason} if wanted.status.reason else {})}
    return await client.patch_status(Pod, Key(namespace, wanted.name), Strategic({"status": status})) if status else made
