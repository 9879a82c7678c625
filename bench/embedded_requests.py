"""The requests that the rows of the API measure, as bytes.

A Pod as a runner pool makes it (2.5 kB), the status a node's agent reports, the Lease it renews. Everything is rendered before
the first is sent, so that the program that sends them is not what is measured.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.pods import pod

NAMESPACE = "bench"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json"
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)

Maker = Callable[[int, int], bytes]  # of a connection and of a number on it: the request


def render(method: str, path: str, body: Any = None, content_type: str = JSON) -> bytes:
    sent = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAccept: {JSON}\r\n"
    if body is not None:
        head += f"Content-Type: {content_type}\r\nContent-Length: {len(sent)}\r\n"
    return head.encode() + b"\r\n" + sent


def new_pod(name: str, number: int) -> dict[str, Any]:
    """What a controller sends: no status, nothing that the server fills in."""
    full = pod(number, 1, NAMESPACE)
    metadata = {key: full["metadata"][key] for key in ("labels", "annotations", "finalizers", "ownerReferences")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": full["spec"]}


def standing_pod(connection: int) -> dict[str, Any]:
    return new_pod(standing_name(connection), connection)


def standing_name(connection: int) -> str:
    return f"standing-{connection}"


def standing_lease(connection: int) -> dict[str, Any]:
    spec = {"holderIdentity": f"mac-{connection}", "leaseDurationSeconds": 40, "renewTime": micro_time(0)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": standing_name(connection)},
        "spec": spec,
    }


def create_pod(run: str) -> Maker:
    def make(connection: int, number: int) -> bytes:
        return render("POST", PODS, new_pod(f"{run}-{connection}-{number}", number))

    return make


def patch_status(connection: int, number: int) -> bytes:
    state = ("False", "True")[number % 2]
    conditions = [{"type": kind, "status": state, "reason": f"Turn{number}"} for kind in ("Ready", "ContainersReady")]
    status = {"phase": "Running", "conditions": conditions, "startTime": "2026-11-16T00:00:00Z"}
    return render("PATCH", f"{PODS}/{standing_name(connection)}/status", {"status": status}, STRATEGIC)


def renew_lease(connection: int, number: int) -> bytes:
    return render("PATCH", f"{LEASES}/{standing_name(connection)}", {"spec": {"renewTime": micro_time(number)}}, MERGE)


def get_pod(connection: int, number: int) -> bytes:
    return render("GET", f"{PODS}/{standing_name(connection)}")


def micro_time(number: int) -> str:
    return (LONG_AGO + timedelta(seconds=number)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def maker(load: str, run: str) -> Maker:
    """Of a load by its name; `run` keeps the names of one run apart from those of the next."""
    return {"create": create_pod(run), "status": patch_status, "lease": renew_lease, "get": get_pod}[load]
