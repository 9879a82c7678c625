"""The Node and the Lease of a host on a real kube-apiserver: the same keeper, the same sentences."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest

from applecart.api import labels, taints
from applecart.api.coordination import Lease
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.connect import connect
from applecart.kube.errors import NotFound
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge, Strategic
from applecart.kube.transport import Request, Response, Stream, Transport
from applecart.kubelet.node.desired import Offer
from applecart.kubelet.node.lease import NAMESPACE, NodeLease
from tests.kubelet.node.stage import Stage, running
from tests.kubernetes.cluster import FullCluster

WITHIN_S = 30.0
QUIET_ROUNDS = 3
GOLDEN = labels.GOLDEN_PREFIX + "9c8af651fdf30b10"
LOST = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}

pytestmark = pytest.mark.kubernetes


class Counted:
    """Counts what the agent writes."""

    def __init__(self, inner: Transport) -> None:
        self.writes: list[str] = []
        self._inner = inner

    async def send(self, request: Request) -> Response:
        if request.method != "GET":
            self.writes.append(str(request))
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class World:
    def __init__(self, client: Client, wire: Counted, clock: Clock, name: str) -> None:
        self.client = client
        self.wire = wire
        offer = Offer(name, provider_id=f"vendor://{name}", labels={labels.FLEET: "ci"}, endpoint_port=10250)
        self.stage = Stage(Client(wire, clock), clock, offer)
        self.nodes = Informer(client, Node, fields=f"metadata.name={name}")
        self.lease = NodeLease(Client(wire, clock), clock, name, owner=lambda: self.stage.keeper.node)

    async def until(self, holds: Callable[[Node], bool], what: str) -> Node:
        def is_so() -> bool:
            node = self.nodes.get(self.stage.key)
            return node is not None and holds(node)

        try:
            async with asyncio.timeout(WITHIN_S):
                await self.nodes.wait_until(is_so)
        except TimeoutError:
            raise AssertionError(f"{what}: did not come true; {self.nodes.get(self.stage.key)}") from None
        node = self.nodes.get(self.stage.key)
        assert node is not None
        return node


def is_ready(node: Node) -> bool:
    ready = node.condition("Ready")
    return ready is not None and (ready.status, ready.reason) == ("True", "TartKubeletReady")


@asynccontextmanager
async def world_on(cluster: FullCluster, clock: Clock, name: str) -> AsyncIterator[World]:
    client = Client(connect(str(cluster.kubeconfig), None, clock, environ={}), clock)
    wire = Counted(connect(str(cluster.kubeconfig), None, clock, environ={}))
    world = World(client, wire, clock, name)
    try:
        async with running(world.nodes.run):
            await world.nodes.following()
            yield world
    finally:
        for kind, key in ((Node, world.stage.key), (Lease, Key(NAMESPACE, name))):
            with suppress(NotFound):
                await client.delete(kind, key)
        await client.aclose()
        await wire.aclose()


@pytest.fixture
async def world(real_cluster: FullCluster, namespace: str, clock: Clock) -> AsyncIterator[World]:
    """A host whose Node is named like the test's own namespace."""
    async with world_on(real_cluster, clock, namespace) as made:
        yield made


async def test_a_node_is_registered_and_then_left_in_peace(world: World) -> None:
    """A spelling that the API rewrites, such as 16384Mi, would be written again at every round."""
    async with running(world.stage.keeper.run):
        node = await world.until(is_ready, "the Node is ready")
        assert node.status.capacity["memory"] == "16Gi"
        assert node.status.capacity["ephemeral-storage"] == "494384795648"
        assert [address.address for address in node.status.addresses] == ["10.0.0.7", node.name]
        assert node.spec.provider_id == f"vendor://{node.name}"
        assert taints.MACOS.key in {taint.key for taint in node.spec.taints}
        assert len(world.wire.writes) == 2
        for _ in range(QUIET_ROUNDS):
            await world.stage.keeper.reconcile()
        assert len(world.wire.writes) == 2


async def test_a_node_that_was_given_up_is_lifted_and_what_others_did_is_put_right(world: World) -> None:
    """Incidents 33 and 34 on the real API."""
    key = world.stage.key
    async with running(world.stage.keeper.run):
        node = await world.until(is_ready, "the Node is ready")
        theirs = {"key": "example.com/maintenance", "effect": "NoExecute"}
        change = {
            "metadata": {"labels": {labels.FLEET: None, "tuist.dev/rack": "7"}},
            "spec": {"taints": [theirs, {**theirs, "effect": "NoSchedule"}]},
        }
        await world.client.patch(Node, key, Merge(change))
        await world.client.patch_status(Node, key, Strategic({"status": {"conditions": [LOST]}}))
        await world.until(lambda found: not is_ready(found), "it is given up")
        world.stage.labels[GOLDEN] = "true"
        world.stage.facts = msgspec.structs.replace(world.stage.facts, address="10.0.0.8")
        world.stage.keeper.nudge()
        node = await world.until(
            lambda found: is_ready(found) and GOLDEN in found.labels and labels.FLEET in found.labels, "all is right again"
        )
        assert node.labels["tuist.dev/rack"] == "7"
        assert sorted(
            (taint.key, taint.effect) for taint in node.spec.taints if taint.key.startswith(("example", "tuist"))
        ) == [
            ("example.com/maintenance", "NoExecute"),
            ("example.com/maintenance", "NoSchedule"),
            ("tuist.dev/macos", "NoSchedule"),
        ]
        await world.until(lambda found: [at.address for at in found.status.addresses] == ["10.0.0.8", found.name], "it moved")
        world.stage.labels.clear()
        world.stage.keeper.nudge()
        await world.until(lambda found: GOLDEN not in found.labels, "the golden is gone")


async def test_a_deleted_node_is_registered_again(world: World) -> None:
    async with running(world.stage.keeper.run):
        first = await world.until(is_ready, "the Node is ready")
        await world.client.delete(Node, world.stage.key)
        await world.until(lambda node: node.uid != first.uid and is_ready(node), "another one is ready")


async def test_an_identity_is_filled_in_once(world: World) -> None:
    await world.client.create(Node(metadata=msgspec.structs.replace(Node().metadata, name=world.stage.key.name)))
    async with running(world.stage.keeper.run):
        node = await world.until(is_ready, "the Node is ready")
        assert node.spec.provider_id == f"vendor://{node.name}"


async def test_the_lease_is_renewed_and_belongs_to_the_node(world: World) -> None:
    leases = Informer(world.client, Lease, NAMESPACE, fields=f"metadata.name={world.stage.key.name}")
    key = Key(NAMESPACE, world.stage.key.name)

    def is_held() -> bool:
        lease = leases.get(key)
        return lease is not None and lease.holder == key.name and bool(lease.metadata.owner_references)

    async with running(world.stage.keeper.run, leases.run):
        node = await world.until(is_ready, "the Node is ready")
        async with running(world.lease.run), asyncio.timeout(WITHIN_S):
            await leases.wait_until(is_held)
    lease = leases.get(key)
    assert lease is not None
    assert lease.metadata.owner_references[0].uid == node.uid
    assert lease.spec.lease_duration_seconds == 40
    assert lease.renewed_at is not None
