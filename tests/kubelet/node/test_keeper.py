"""A host's Node on the embedded API, kept through deletions, other writers, outages and the node lifecycle."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from applecart.api import labels, taints
from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeSpec, Taint
from applecart.api.reasons import kubelet as reasons
from applecart.clock import Clock
from applecart.kube.client import Client
from applecart.kube.patch import Merge, Strategic
from applecart.kube.transport import Request
from applecart.kubelet.node.conditions import CheckState
from applecart.kubelet.node.desired import Offer
from applecart.tart.mac import Disk
from tests.kube.embedded_api import serving
from tests.kube.faults import Fault, FaultyTransport, Late, Refused, Says, always
from tests.kubelet.node.stage import Stage, running
from tests.virtual_time import elapse

OFFER = Offer("mac-1", provider_id="vendor://mac-1", labels={labels.FLEET: "ci"}, endpoint_port=10250)
GOLDEN = labels.GOLDEN_PREFIX + "9c8af651fdf30b10"
LOST = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}


class World:
    """The API as an operator sees it, and the agent's own connection to it."""

    def __init__(self, client: Client, network: FaultyTransport, clock: Clock) -> None:
        self.client = client
        self.network = network
        self.clock = clock
        self.stage = Stage(Client(network, clock), clock, OFFER)
        self.stage.client = client

    def written(self) -> list[str]:
        return [f"{call.method} {call.path.rpartition('nodes')[2]}" for call in self.network.calls if call.method != "GET"]


@pytest.fixture
async def world(clock: Clock) -> AsyncIterator[World]:
    async with serving(clock) as api:
        yield World(Client(api.transport(), clock), FaultyTransport(api.transport()), clock)


async def test_a_host_registers_itself_with_everything_it_offers(world: World) -> None:
    async with running(world.stage.keeper.run):
        await elapse(1)
        node = await world.stage.node()
    assert node.labels[labels.FLEET] == "ci"
    assert node.labels[labels.RUNTIME] == "tart"
    assert node.spec.provider_id == "vendor://mac-1"
    assert taints.MACOS.key in {taint.key for taint in node.spec.taints}
    assert node.status.capacity == node.status.allocatable
    assert node.status.capacity["memory"] == "16Gi"
    assert node.status.capacity["ephemeral-storage"] == "494384795648"
    assert [address.address for address in node.status.addresses] == ["10.0.0.7", "mac-1"]
    assert node.status.node_info is not None
    assert node.status.node_info.kubelet_version == "tart-kubelet-v0"
    assert node.status.daemon_endpoints is not None
    assert {condition.type: condition.status for condition in node.status.conditions} == {
        "Ready": "True",
        "DiskPressure": "False",
        "MemoryPressure": "False",
        "PIDPressure": "False",
        "TartKubeletHostBusy": "False",
    }


async def test_a_host_that_serves_exec_declares_how_it_streams(world: World) -> None:
    async with running(world.stage.keeper.run):
        await elapse(1)
        answer = await world.client.call(Request("GET", "/api/v1/nodes/mac-1"))
    status = msgspec.json.decode(answer.body)["status"]
    assert status["declaredFeatures"] == ["ExtendWebSocketsToKubelet"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}


async def test_a_node_that_stands_costs_nothing_but_a_status_every_five_minutes(world: World) -> None:
    async with running(world.stage.keeper.run):
        await elapse(5)
        first = await world.stage.node()
        del world.network.calls[:]
        await elapse(280)
        assert [call for call in world.network.calls if call.method != "GET"] == []
        await elapse(3600)
        second = await world.stage.node()
    assert world.written() == ["PATCH /mac-1/status"] * 12
    before, after = first.condition("Ready"), second.condition("Ready")
    assert before is not None
    assert after is not None
    assert after.last_transition_time == before.last_transition_time
    assert after.last_heartbeat_time > before.last_heartbeat_time  # type: ignore[operator]


async def test_a_deleted_node_is_registered_again(world: World) -> None:
    """Weakness 22: a Node that somebody deleted stayed away until the agent was restarted."""
    async with running(world.stage.keeper.run):
        await elapse(5)
        first = await world.stage.node()
        await world.client.delete(Node, world.stage.key)
        await elapse(2)
        again = await world.stage.node()
        assert again.uid != first.uid
        assert await world.stage.says("Ready") == ("True", "TartKubeletReady")
        assert again.status.capacity["cpu"] == "8"


@pytest.mark.parametrize("labels_differ_too", [False, True])
async def test_a_node_that_was_given_up_says_ready_again_at_once(world: World, labels_differ_too: bool) -> None:
    """Incident 33: the answer to the patch of the labels held the Unknown of the lifecycle controller, and was written back
    as the status; nine Nodes stayed Unknown after a gap."""
    async with running(world.stage.keeper.run):
        await elapse(5)
        if labels_differ_too:
            await world.client.patch(Node, world.stage.key, Merge({"metadata": {"labels": {labels.FLEET: None}}}))
        body = Strategic({"status": {"conditions": [LOST, {**LOST, "type": "DiskPressure"}]}})
        await world.client.patch_status(Node, world.stage.key, body)
        await elapse(1.5)
        assert await world.stage.says("Ready") == ("True", "TartKubeletReady")
        assert await world.stage.says("DiskPressure") == ("False", "TartKubeletHasSufficientDisk")
        assert (await world.stage.node()).labels[labels.FLEET] == "ci"


async def test_an_agent_that_starts_on_a_lost_node_lifts_it(world: World) -> None:
    """Incident 33, from the other side: the gap was a restart of the agent."""
    await world.client.create(Node(metadata=ObjectMeta(name="mac-1", labels={labels.FLEET: "old"})))
    await world.client.patch_status(Node, world.stage.key, Strategic({"status": {"conditions": [LOST]}}))
    async with running(world.stage.keeper.run):
        await elapse(0.5)
        assert await world.stage.says("Ready") == ("True", "TartKubeletReady")
        assert (await world.stage.node()).spec.provider_id == "vendor://mac-1"


async def test_labels_of_goldens_are_stored_and_go_with_them(world: World) -> None:
    """Incident 34: labels were sent with the status, which drops them; Pods never preferred hosts that hold their image."""
    async with running(world.stage.keeper.run):
        await elapse(2)
        world.stage.labels[GOLDEN] = "true"
        await elapse(12)
        assert (await world.stage.node()).labels[GOLDEN] == "true"
        world.stage.label_fault = OSError("the store cannot be read")
        world.stage.labels.clear()
        await elapse(60)
        assert (await world.stage.node()).labels[GOLDEN] == "true"
        world.stage.label_fault = None
        await elapse(12)
        assert GOLDEN not in (await world.stage.node()).labels


async def test_a_nudge_is_answered_before_the_next_round(world: World) -> None:
    async with running(world.stage.keeper.run):
        await elapse(3)
        world.stage.labels[GOLDEN] = "true"
        world.stage.keeper.nudge()
        await elapse(0.1)
        assert (await world.stage.node()).labels[GOLDEN] == "true"


async def test_what_others_took_away_comes_back_and_what_they_added_stays(world: World) -> None:
    """Weakness 23: the agent and other writers of the domain fought over labels for ever."""
    theirs = Taint(key="example.com/maintenance", effect="NoExecute")
    async with running(world.stage.keeper.run):
        await elapse(3)
        change = {
            "metadata": {"labels": {labels.RUNTIME: None, "tuist.dev/rack": "7"}},
            "spec": {"taints": msgspec.to_builtins([theirs])},
        }
        await world.client.patch(Node, world.stage.key, Merge(change))
        await elapse(2)
        node = await world.stage.node()
        assert node.labels[labels.RUNTIME] == "tart"
        assert node.labels["tuist.dev/rack"] == "7"
        assert {taint.key for taint in node.spec.taints} == {theirs.key, taints.MACOS.key}
        del world.network.calls[:]
        await elapse(60)
        assert world.written() == []


async def test_a_taint_written_between_our_look_and_our_write_is_not_lost(world: World) -> None:
    """The list of taints is sent whole, so it names the revision it was read at."""
    meddled = False

    def meddle(call: Request) -> Fault | None:
        nonlocal meddled
        if call.method == "GET" and call.path.endswith("/mac-1") and not meddled:
            meddled = True
            return Late(5.0)  # what we read is old when it arrives
        return None

    await world.client.create(Node(metadata=ObjectMeta(name="mac-1")))
    world.network.plan = meddle
    async with running(world.stage.keeper.run):
        await elapse(2)
        assert meddled
        theirs = [{"key": "example.com/maintenance", "effect": "NoSchedule"}]
        await world.client.patch(Node, world.stage.key, Merge({"spec": {"taints": theirs}}))
        await elapse(10)
        keys = {taint.key for taint in (await world.stage.node()).spec.taints}
    assert keys == {"example.com/maintenance", taints.MACOS.key}


async def test_the_identity_of_another_machine_is_told_and_never_overwritten(world: World) -> None:
    """Incident 35: a providerID ties the Node to a Machine; one that changes unties a running host."""
    await world.client.create(Node(metadata=ObjectMeta(name="mac-1"), spec=NodeSpec(provider_id="vendor://other")))
    async with running(world.stage.keeper.run):
        await elapse(30)
        node = await world.stage.node()
    assert node.spec.provider_id == "vendor://other"
    ready = node.condition("Ready")
    assert ready is not None
    assert ready.status == "True"
    assert "spec.providerID is vendor://other, but this host was told vendor://mac-1" in ready.message
    assert world.written().count("PATCH /mac-1/status") == 1


async def test_a_sick_host_says_so_and_gets_well_without_an_old_message(world: World) -> None:
    """Weakness 22: a host without Tart stayed Ready."""
    sick = CheckState("tart", reasons.TART_NOT_ANSWERING, "run it", fault="no answer", failures=2, since=world.clock.now())
    async with running(world.stage.keeper.run):
        await elapse(2)
        well = world.stage.findings
        world.stage.findings = msgspec.structs.replace(well, outcomes=(sick,), disk=Disk(100, 5))
        world.stage.keeper.nudge()
        await elapse(2)
        assert await world.stage.says("Ready") == ("False", "TartNotAnswering")
        assert await world.stage.says("DiskPressure") == ("True", "TartKubeletHasDiskPressure")
        world.stage.findings = well
        world.stage.keeper.nudge()
        await elapse(2)
        pressure = (await world.stage.node()).condition("DiskPressure")
        assert pressure is not None
        assert (pressure.status, pressure.message) == ("False", "")


async def test_an_address_that_moved_does_not_stay_beside_the_new_one(world: World) -> None:
    async with running(world.stage.keeper.run):
        await elapse(2)
        theirs = {"type": "ExternalIP", "address": "192.0.2.1"}
        await world.client.patch_status(Node, world.stage.key, Strategic({"status": {"addresses": [theirs]}}))
        world.stage.facts = msgspec.structs.replace(world.stage.facts, address="10.0.0.8")
        await elapse(12)
        assert [address.address for address in (await world.stage.node()).status.addresses] == ["10.0.0.8", "mac-1"]


async def test_an_outage_of_the_api_is_outlived(world: World) -> None:
    world.network.plan = always(Refused())
    async with running(world.stage.keeper.run):
        await elapse(300)
        world.network.heal()
        await elapse(31)
        assert await world.stage.says("Ready") == ("True", "TartKubeletReady")
        world.network.plan = always(Says(503))
        world.network.sever()
        world.stage.labels[GOLDEN] = "true"
        await elapse(300)
        world.network.heal()
        await elapse(61)
        assert (await world.stage.node()).labels[GOLDEN] == "true"


async def test_labels_that_the_api_refuses_do_not_keep_the_status_back(world: World) -> None:
    def refuse(call: Request) -> Fault | None:
        return Says(422) if call.method == "PATCH" and call.path.endswith("/mac-1") else None

    await world.client.create(Node(metadata=ObjectMeta(name="mac-1")))
    world.network.plan = refuse
    async with running(world.stage.keeper.run):
        await elapse(1)
        assert await world.stage.says("Ready") == ("True", "TartKubeletReady")
        await elapse(600)
    assert len(world.network.calls) < 200


async def test_a_fight_with_another_writer_stays_slow(world: World) -> None:
    async def undo() -> None:
        while True:
            await world.client.patch(Node, world.stage.key, Merge({"metadata": {"labels": {labels.FLEET: None}}}))
            await asyncio.sleep(0.05)

    async with running(world.stage.keeper.run):
        await elapse(2)
        async with running(undo):
            del world.network.calls[:]
            await elapse(60)
        assert len(world.written()) <= 61
        await elapse(2)
        assert (await world.stage.node()).labels[labels.FLEET] == "ci"
