"""Services and Endpoints as rows."""

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
ENDPOINTS_COLUMNS = (NAME, Column("Endpoints", description="Addresses behind the Service."), AGE_TEXT)

SHOWN_ENDPOINTS = 3  # the rest is counted


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


def endpoints_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    subsets = obj.get("subsets")
    found: list[str] = []
    for subset in subsets or ():
        addresses = [one.get("ip") or "" for one in subset.get("addresses") or ()]
        if ports := subset.get("ports"):
            found += [f"{_host(address)}:{port.get('port', 0)}" for port in ports for address in addresses]
        else:
            found += addresses
    text = ",".join(found[:SHOWN_ENDPOINTS])
    if len(found) > SHOWN_ENDPOINTS:
        text = f"{text} + {len(found) - SHOWN_ENDPOINTS} more..."
    return [metadata.get("name", ""), text if subsets else NONE, age(metadata.get("creationTimestamp"), now)]


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


SERVICES = BuiltInTable(SERVICE_COLUMNS, service_row)
ENDPOINTS = BuiltInTable(ENDPOINTS_COLUMNS, endpoints_row)
