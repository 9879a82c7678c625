"""The two servers that the rows of the API compare: `applecart api start`, and kube-apiserver with a durable etcd.

Both get the same namespace, the same Role for the same ordinary user, and the same objects to work on; the load comes as that
user, by client certificate, so that authentication, RBAC and validation are part of every figure.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from applecart.clock import SystemClock
from applecart.embedded.binaries.cluster import Options, RealCluster
from applecart.embedded.trust.pki import load_or_create_authority, write_pair
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import AlreadyExists
from applecart.kube.transport import Request
from bench.embedded_requests import LEASES, NAMESPACE, PODS, standing_lease, standing_pod
from tests.kubernetes.recipe import DEFAULT_KUBE, folder

USER = "bench-agent"
CONNECTIONS = 32
STOP_S = 10.0
ROLES = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"]


@dataclass(frozen=True)
class Side:
    """A running server, as its load sees it."""

    name: str
    url: str
    ca: Path
    certificate: Path
    key: Path
    kubeconfig: Path  # of an administrator
    pids: tuple[int, ...]
    started_in_s: float

    def credentials(self) -> list[str]:
        return [self.url, str(self.ca), str(self.certificate), str(self.key)]

    def rss_bytes(self) -> int:
        return sum(rss_of(pid) for pid in self.pids)


@contextmanager
def our_side(data: Path) -> Iterator[Side]:
    command = [sys.executable, "-m", "applecart", "api", "start", "--data", str(data), "--port", "0", "--no-controllers"]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            url = next((word for line in process.stdout for word in line.split() if word.startswith("https://")), "")
            started_in_s = time.perf_counter() - began
            if not url:
                raise SystemExit("our server did not start; its words are above")
            now = SystemClock().now()
            pki = data / "pki"
            user = write_pair(pki, "bench", load_or_create_authority(pki, "ca", now).issue_client(USER, (), now))
            admin = data / "admin.kubeconfig"
            yield Side("ours", url, pki / "ca.crt", user.certificate, user.key, admin, (process.pid,), started_in_s)
        finally:
            process.terminate()
            process.communicate(timeout=STOP_S)


@contextmanager
def real_side(run_folder: Path) -> Iterator[Side]:
    cluster = RealCluster(folder(DEFAULT_KUBE), run_folder, Options(durable=True))
    began = time.perf_counter()
    asyncio.run(cluster.start())
    started_in_s = time.perf_counter() - began
    try:
        user = cluster.issue_client("bench", USER)
        pids = tuple(cluster.pids.values())
        ca = run_folder / "pki" / "ca.crt"
        yield Side("peer", cluster.url, ca, user.files.certificate, user.files.key, cluster.kubeconfig, pids, started_in_s)
    finally:
        asyncio.run(cluster.stop())


async def furnish(side: Side) -> None:
    """Make what the loads need; what is there from an earlier run stays."""
    clock = SystemClock()
    client = Client(connect(str(side.kubeconfig), None, clock, environ={}), clock)
    try:
        await _create(client, "/api/v1/namespaces", {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}})
        for kind, part in (("Role", {"rules": _rules()}), ("RoleBinding", _binding())):
            document = {"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "bench"}, **part}
            await _create(client, f"{ROLES}/{kind.lower()}s", document)
        for connection in range(CONNECTIONS):
            await _create(client, PODS, standing_pod(connection))
            await _create(client, LEASES, standing_lease(connection))
    finally:
        await client.aclose()


def _rules() -> list[dict[str, Any]]:
    return [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": VERBS},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": VERBS},
    ]


def _binding() -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "bench"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
    }


async def _create(client: Client, path: str, document: dict[str, Any]) -> None:
    try:
        await client.call(Request("POST", path, body=yaml.safe_dump(document).encode(), content_type="application/yaml"))
    except AlreadyExists:
        return


def rss_of(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"process {pid} has no memory any more")
