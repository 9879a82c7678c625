"""The heartbeat of a host, through outages, and with the node lifecycle watching."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from applecart.api.coordination import Lease
from applecart.api.core import Namespace
from applecart.api.meta import Key, ObjectMeta
from applecart.api.nodes import Node
from applecart.clock import Clock
from applecart.embedded.controllers.node_lifecycle.monitor import add_node_lifecycle
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kubelet.node.advertised import Advertised
from applecart.kubelet.node.desired import Offer
from applecart.kubelet.node.facts import Facts
from applecart.kubelet.node.health import Health, tart_answers
from applecart.kubelet.node.keeper import NodeKeeper
from applecart.kubelet.node.lease import NodeLease
from tests.embedded.controllers.stages import run_alone
from tests.kube.embedded_api import lose, serving
from tests.kube.faults import FaultyTransport, Hung, Refused, always
from tests.kubelet.node.host import Host
from tests.kubelet.node.stage import Stage, running
from tests.virtual_time import elapse

KEY = Key("kube-node-lease", "mac-1")


class World:
    def __init__(self, client: Client, network: FaultyTransport, clock: Clock) -> None:
        self.client = client
        self.network = network
        self.agent = Client(network, clock)
        self.node: Node | None = None
        self.lease = NodeLease(self.agent, clock, "mac-1", owner=lambda: self.node)

    async def stored(self) -> Lease:
        return await self.client.get(Lease, KEY)


@pytest.fixture
async def world(clock: Clock) -> AsyncIterator[World]:
    async with serving(clock) as api:
        yield World(Client(api.transport(), clock), FaultyTransport(api.transport()), clock)


async def test_the_lease_names_its_holder_and_is_renewed_every_ten_seconds(world: World, clock: Clock) -> None:
    async with running(world.lease.run):
        await elapse(1)
        first = await world.stored()
        assert (first.holder, first.spec.lease_duration_seconds) == ("mac-1", 40)
        assert first.acquired_at == first.renewed_at
        times = []
        for _ in range(6):
            await elapse(10)
            renewed = (await world.stored()).renewed_at
            assert renewed is not None
            times.append((clock.now() - renewed).total_seconds())
        assert times == [1.0] * 6
        assert world.lease.age_s == 1.0
        assert (await world.stored()).acquired_at == first.acquired_at


async def test_the_lease_belongs_to_the_node_once_that_is_known(world: World) -> None:
    async with running(world.lease.run):
        await elapse(1)
        assert (await world.stored()).metadata.owner_references == ()
        world.node = await world.client.create(Node(metadata=ObjectMeta(name="mac-1")))
        await elapse(10)
        owners = (await world.stored()).metadata.owner_references
        assert [(owner.kind, owner.uid) for owner in owners] == [("Node", world.node.uid)]
        await world.client.delete(Node, Key("", "mac-1"))
        world.node = await world.client.create(Node(metadata=ObjectMeta(name="mac-1")))
        await elapse(10)
        assert [owner.uid for owner in (await world.stored()).metadata.owner_references] == [world.node.uid]


async def test_a_lease_that_was_deleted_is_made_again(world: World) -> None:
    async with running(world.lease.run):
        await elapse(1)
        await world.client.delete(Lease, KEY)
        await elapse(10)
        assert (await world.stored()).holder == "mac-1"


@pytest.mark.parametrize("fault", [Refused(), Hung()])
async def test_renewals_go_on_through_an_outage_of_the_api(world: World, clock: Clock, fault: Refused | Hung) -> None:
    """Weakness 21: whatever fails, the next renewal is tried in time."""
    async with running(world.lease.run):
        await elapse(1)
        world.network.plan = always(fault)
        await elapse(600)
        assert world.lease.age_s is not None
        assert world.lease.age_s > 590
        world.network.heal()
        await elapse(15)
        renewed = (await world.stored()).renewed_at
        assert renewed is not None
        assert (clock.now() - renewed).total_seconds() < 15


async def test_one_call_that_hangs_does_not_cost_the_lease(world: World) -> None:
    async with running(world.lease.run):
        await elapse(1)
        world.network.plan = lambda request: Hung() if len(world.network.calls) == 3 else None
        worst = 0.0
        for _ in range(60):
            await elapse(1)
            worst = max(worst, world.lease.age_s or 0.0)
        assert worst < 20


async def test_a_missing_namespace_is_told_and_not_made(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(clock) as api:
        client = Client(api.transport(), clock)
        lose(api, "namespaces", Key("", "kube-node-lease"))
        lease = NodeLease(Client(api.transport(), clock), clock, "mac-1", owner=lambda: None)
        async with running(lease.run):
            await elapse(60)
            assert lease.age_s is None
            with pytest.raises(NotFound):
                await client.get(Namespace, Key("", "kube-node-lease"))
            assert len([record for record in caplog.records if "heartbeat failed" in record.message]) == 1
            await client.create(Namespace(metadata=ObjectMeta(name="kube-node-lease")))
            await elapse(10)
            assert lease.age_s is not None


async def test_a_host_whose_tart_hangs_stays_known_to_the_control_plane(clock: Clock) -> None:
    """Weakness 21: the heartbeat waited for `tart list` and for every guest, and a slow Tart made the Node Unknown.

    The Node says that Tart hangs, and never becomes Unknown, for as long as it lasts.
    """

    async def hung_tart() -> None:
        await asyncio.Event().wait()

    async with serving(clock) as api:
        client = Client(api.transport(), clock)
        health = Health(Host(), clock, [tart_answers(hung_tart)])
        keeper = NodeKeeper(client, clock, Offer("mac-1"), facts=Facts, conditions=health.conditions, advertised=Advertised())
        health.on_report = keeper.nudge
        lease = NodeLease(client, clock, "mac-1", owner=lambda: keeper.node)

        async def lifecycle() -> None:
            await run_alone(add_node_lifecycle, Client(api.transport(), clock))

        said: set[tuple[str, str]] = set()
        async with running(lifecycle, keeper.run, health.run, lease.run):
            for _ in range(900):
                await elapse(1)
                ready = (await client.get(Node, Key("", "mac-1"))).condition("Ready")
                said.add((ready.status, ready.reason) if ready else ("", ""))
        assert said == {("False", "TartKubeletStarting"), ("False", "TartNotAnswering")}


async def test_a_node_whose_agent_was_cut_off_is_ready_again_once_it_is_back(clock: Clock) -> None:
    """Incident 33 end to end: the lifecycle controller gives the Node up, and the agent lifts it when the network heals."""
    async with serving(clock) as api:
        operator, network = Client(api.transport(), clock), FaultyTransport(api.transport())
        stage = Stage(Client(network, clock), clock, Offer("mac-1"))
        stage.client = operator
        lease = NodeLease(Client(network, clock), clock, "mac-1", owner=lambda: stage.keeper.node)

        async def lifecycle() -> None:
            await run_alone(add_node_lifecycle, Client(api.transport(), clock))

        async with running(lifecycle, stage.keeper.run, lease.run):
            await elapse(30)
            assert await stage.says("Ready") == ("True", "TartKubeletReady")
            network.plan = always(Refused())
            network.sever()
            await elapse(120)
            assert await stage.says("Ready") == ("Unknown", "NodeStatusUnknown")
            network.heal()
            await elapse(40)
            assert await stage.says("Ready") == ("True", "TartKubeletReady")
            assert await stage.says("DiskPressure") == ("False", "TartKubeletHasSufficientDisk")
