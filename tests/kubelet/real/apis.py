"""The APIs that the agent's process is tried on: the embedded one over HTTPS, and a real kube-apiserver.

The agent gets a kubeconfig of its own with exactly the rights that `node_access` grants, so a right that it lacks shows as a
Pod that does not go; the test itself is an administrator.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from applecart.api import names, node_access
from applecart.api.core import Namespace, ServiceAccount
from applecart.api.meta import Object, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.binaries.cluster import RealCluster
from applecart.embedded.server.server import EmbeddedServer
from applecart.embedded.trust.kubeconfig_file import write_kubeconfig
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import AlreadyExists

MACHINES = "machines"  # the namespace of the agents' ServiceAccounts


@dataclass(frozen=True, slots=True)
class Api:
    client: Client  # of an administrator
    kubeconfig: Path  # of an administrator
    agent_kubeconfig: Path
    namespace: str
    node: str
    requests: Path | None = None  # where the server notes who asked for what


@asynccontextmanager
async def embedded_api(folder: Path, clock: Clock, namespace: str, node: str) -> AsyncIterator[Api]:
    async with EmbeddedServer(folder / "api", clock) as server:
        pair = server.authority.issue_client(agent_user(node), (), clock.now())
        kubeconfig = folder / "agent.kubeconfig"
        write_kubeconfig(kubeconfig, server.url, server.authority.certificate_pem, pair)
        async with admitted(server.folder.admin_kubeconfig, kubeconfig, clock, namespace, node, server.folder.requests) as api:
            yield api


@asynccontextmanager
async def real_api(cluster: RealCluster, clock: Clock, namespace: str, node: str) -> AsyncIterator[Api]:
    agent = cluster.issue_client(f"agent-{node}", agent_user(node))
    async with admitted(cluster.kubeconfig, agent.kubeconfig, clock, namespace, node) as api:
        yield api


@asynccontextmanager
async def admitted(
    admin: Path, agent: Path, clock: Clock, namespace: str, node: str, requests: Path | None = None
) -> AsyncIterator[Api]:
    """An API that knows the agent and has the namespace of its Pods."""
    client = Client(connect(str(admin), None, clock, environ={}), clock)
    try:
        for name in (namespace, MACHINES, node_access.NODE_LEASES):
            await _make(client, Namespace(metadata=ObjectMeta(name=name)))
        await _make(client, ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace)))
        for granted in (*node_access.roles([namespace]), *node_access.bindings(node, MACHINES, [namespace])):
            await _make(client, granted)
        yield Api(client, admin, agent, namespace, node, requests)
    finally:
        await client.aclose()


def agent_user(node: str) -> str:
    return f"system:serviceaccount:{MACHINES}:{names.node_identity(node)}"


async def _make(client: Client, obj: Object) -> None:
    with suppress(AlreadyExists):
        await client.create(obj)
