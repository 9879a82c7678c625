"""The APIs that the agent's process is tried on: the embedded one over HTTPS, and a real kube-apiserver.

The agent gets a kubeconfig of its own with exactly the rights that `node_access` grants, so a right that it lacks shows as a
Pod that does not go; the test itself is an administrator.
"""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from applecart.api import names, node_access
from applecart.api.authentication import TokenRequest, TokenRequestSpec
from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.private_file import write_private
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import AlreadyExists
from applecart.secrets import Secret
from tests.kubernetes.cluster import FullCluster

MACHINES = "machines"  # the namespace of the agents' ServiceAccounts


@dataclass(frozen=True, slots=True)
class Api:
    client: Client  # of an administrator
    kubeconfig: Path  # of an administrator
    agent_kubeconfig: Path
    namespace: str
    node: str
    pki: Path  # of its authority, with a server certificate for loopback
    requests: Path | None = None  # where the server notes who asked for what

    @property
    def serving_flags(self) -> tuple[str, ...]:
        """For an agent whose logs and exec the API may ask for."""
        cert, key, ca = (self.pki / name for name in ("server.crt", "server.key", "ca.crt"))
        return (
            "--kubelet-bind-address=127.0.0.1:0", f"--tls-cert-file={cert}", f"--tls-private-key-file={key}",
            f"--client-ca-file={ca}",
        )  # fmt: skip


@asynccontextmanager
async def embedded_api(folder: Path, clock: Clock, namespace: str, node: str) -> AsyncIterator[Api]:
    async with EmbeddedServer(folder / "api", clock) as server:
        admin = Admin(server.folder.admin_kubeconfig, server.url, server.folder.pki)
        async with admitted(admin, folder, clock, namespace, node, server.folder.requests) as api:
            yield api


@asynccontextmanager
async def real_api(cluster: FullCluster, folder: Path, clock: Clock, namespace: str, node: str) -> AsyncIterator[Api]:
    admin = Admin(cluster.kubeconfig, cluster.url, cluster.run_folder / "pki")
    async with admitted(admin, folder, clock, namespace, node) as api:
        yield api


@dataclass(frozen=True, slots=True)
class Admin:
    kubeconfig: Path
    url: str
    pki: Path


@asynccontextmanager
async def admitted(
    admin: Admin, folder: Path, clock: Clock, namespace: str, node: str, requests: Path | None = None
) -> AsyncIterator[Api]:
    """An API that knows the agent, with the namespace of its Pods; the agent's kubeconfig is in the folder."""
    client = Client(connect(str(admin.kubeconfig), None, clock, environ={}), clock)
    account = Key(MACHINES, names.node_identity(node))
    try:
        for name in (namespace, MACHINES, node_access.NODE_LEASES):
            await _make(client, Namespace(metadata=ObjectMeta(name=name)))
        for each in (Key(namespace, "default"), account):
            await _make(client, ServiceAccount(metadata=ObjectMeta(name=each.name, namespace=each.namespace)))
        for granted in (*node_access.roles([namespace]), *node_access.bindings(node, MACHINES, [namespace])):
            await _make(client, granted)
        answer = await client.create_subresource(ServiceAccount, account, "token", TokenRequest(spec=TokenRequestSpec()))
        kubeconfig = folder / "agent.kubeconfig"
        write_private(kubeconfig, kubeconfig_of(admin, answer.token).reveal().encode())
        yield Api(client, admin.kubeconfig, kubeconfig, namespace, node, admin.pki, requests)
    finally:
        await client.aclose()


def kubeconfig_of(admin: Admin, token: Secret) -> Secret:
    """As a host gets it: the server, its authority, and a token of the host's own ServiceAccount."""
    cluster = {
        "server": admin.url,
        "certificate-authority-data": b64encode((admin.pki / "ca.crt").read_bytes()).decode("ascii"),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "agent", "user": {"token": token.reveal()}}],
        "contexts": [{"name": "agent", "context": {"cluster": "here", "user": "agent"}}],
        "current-context": "agent",
    }
    return Secret(yaml.safe_dump(content))


def agent_user(node: str) -> str:
    return f"system:serviceaccount:{MACHINES}:{names.node_identity(node)}"


async def _make(client: Client, obj: Object) -> None:
    with suppress(AlreadyExists):
        await client.create(obj)
