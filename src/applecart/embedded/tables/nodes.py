"""Nodes as rows: whether they are ready, what they are for, and what runs on them."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import AGE_TEXT, NAME, NONE, UNKNOWN, BuiltInTable

COLUMNS = (
    NAME,
    Column("Status", description="Whether the Node is ready, and whether Pods may be placed on it."),
    Column("Roles", description="Roles that its labels name."),
    AGE_TEXT,
    Column("Version", description="Version of the agent on the Node."),
    Column("Internal-IP", description="Address inside the cluster.", priority=1),
    Column("External-IP", description="Address outside the cluster.", priority=1),
    Column("OS-Image", description="Operating system the Node reports.", priority=1),
    Column("Kernel-Version", description="Kernel the Node reports, with its architecture.", priority=1),
    Column("Container-Runtime", description="What runs the Pods, as the Node reports it.", priority=1),
)

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"


def node_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    architecture = info.get("architecture")
    return [
        metadata.get("name", ""),
        _status(status.get("conditions") or (), bool(spec.get("unschedulable"))),
        ",".join(sorted(_roles(metadata.get("labels") or {}))) or NONE,
        age(metadata.get("creationTimestamp"), now),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(conditions: Any, is_unschedulable: bool) -> str:
    ready = {one.get("type"): one.get("status") for one in conditions}.get("Ready", UNKNOWN)
    word = "Unknown" if ready == UNKNOWN else ("Ready" if ready == "True" else "NotReady")
    return f"{word},SchedulingDisabled" if is_unschedulable else word


def _roles(labels: dict[str, str]) -> set[str]:
    named = {label.removeprefix(ROLE_PREFIX) for label in labels if label.startswith(ROLE_PREFIX)}
    return (named | {labels.get(ROLE_LABEL, "")}) - {""}


def _address(status: dict[str, Any], kind: str) -> str:
    return next((one.get("address") or "" for one in status.get("addresses") or () if one.get("type") == kind), NONE)


NODES = BuiltInTable(COLUMNS, node_row)
