"""Services as rows."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import AGE_TEXT, NAME, NONE, UNKNOWN, BuiltInTable

SERVICE_COLUMNS = (
    NAME,
    Column("Type", description="How the Service is reached."),
    Column("Cluster-IP", description="Address inside the cluster."),
    Column("External-IP", description="Addresses outside the cluster."),
    Column("Port(s)", description="Ports and their protocols."),
    AGE_TEXT,
    Column("Selector", description="Labels of the Pods behind it.", priority=1),
)


def service_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs")
    selector = spec.get("selector") or {}
    return [
        metadata.get("name", ""),
        spec.get("type") or "",
        addresses[0] if addresses else NONE,
        _external(spec, obj.get("status") or {}),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(metadata.get("creationTimestamp"), now),
        ",".join(f"{label}={selector[label]}" for label in sorted(selector)) or NONE,
    ]


def _external(spec: dict[str, Any], status: dict[str, Any]) -> str:
    extra = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return extra or NONE
        case "LoadBalancer":
            entries = (status.get("loadBalancer") or {}).get("ingress") or ()
            found = ",".join(sorted({one.get("ip") or one.get("hostname") or "" for one in entries} - {""}))
            return ",".join(part for part in (found, extra) if part) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
    return UNKNOWN


def _port(port: dict[str, Any]) -> str:
    on_node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{on_node}/{port.get('protocol', '')}"


SERVICES = BuiltInTable(SERVICE_COLUMNS, service_row)
