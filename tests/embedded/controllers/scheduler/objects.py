"""Nodes and Pods for tests of the scheduler, as short as the sentence they prove."""

from datetime import datetime, timedelta
from typing import Any

from applecart.api.containers import Container, ContainerPort, Resources
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from applecart.api.pods import Pod, PodSpec, PodStatus
from applecart.api.scheduling import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredNode,
)
from applecart.clock import EPOCH


def node(
    name: str = "mac-1",
    *,
    pods: str = "2",
    cpu: str = "8",
    memory: str = "16Gi",
    labels: dict[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    more: dict[str, str] | None = None,
    ready: str = "True",
) -> Node:
    allocatable = {"pods": pods, "cpu": cpu, "memory": memory, **(more or {})}
    condition = NodeCondition(type="Ready", status=ready, reason="KubeletReady", message="")
    return Node(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", labels={"kubernetes.io/hostname": name, **(labels or {})}),
        spec=NodeSpec(taints=taints, unschedulable=unschedulable),
        status=NodeStatus(capacity=allocatable, allocatable=allocatable, conditions=(condition,)),
    )


def container(name: str = "runner", *, host_port: int = 0, restart_policy: str | None = None, **requests: str) -> Container:
    ports = (ContainerPort(container_port=80, host_port=host_port, protocol="TCP"),) if host_port else ()
    named = {resource.replace("_", "-"): quantity for resource, quantity in requests.items()}
    resources = Resources(requests=named) if named else None
    return Container(name=name, image="image", ports=ports, resources=resources, restart_policy=restart_policy)


def pod(
    name: str = "runner-1",
    *,
    namespace: str = "test",
    on: str = "",
    phase: str = "Pending",
    age_s: float = 0.0,
    labels: dict[str, str] | None = None,
    host_port: int = 0,
    requests: dict[str, str] | None = None,
    deleted_at: datetime | None = None,
    uid: str = "",
    **spec: Any,
) -> Pod:
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=uid or f"uid-{name}",
        labels=labels or {},
        resource_version="1",
        creation_timestamp=EPOCH - timedelta(seconds=age_s),
        deletion_timestamp=deleted_at,
    )
    containers = (container(host_port=host_port, **(requests or {})),)
    return Pod(
        metadata=metadata,
        spec=PodSpec(**{"node_name": on, "containers": containers, **spec}),
        status=PodStatus(phase=phase),
    )


def needs(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def term(*expressions: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions, match_fields=fields)


def affinity(*required: NodeSelectorTerm, preferred: tuple[tuple[int, NodeSelectorTerm], ...] = ()) -> Affinity:
    likes = tuple(PreferredNode(weight=weight, preference=preference) for weight, preference in preferred)
    musts = NodeSelector(node_selector_terms=required) if required else None
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=musts,
            preferred_during_scheduling_ignored_during_execution=likes,
        )
    )
