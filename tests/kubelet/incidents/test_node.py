"""Incidents of the Node: it is there, it says how its host is, and it comes back."""

from pathlib import Path

import pytest

from applecart.api.conditions import DISK_PRESSURE, READY
from applecart.api.meta import Key, ObjectMeta
from applecart.api.names import golden_label
from applecart.api.nodes import Node
from applecart.api.pods import RUNNING
from applecart.clock import Clock
from applecart.kube.patch import Strategic
from applecart.kube.stuck_pods import Sweep
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kubelet.incidents.scene import (
    delete,
    events,
    go_wrong,
    guests,
    node_condition,
    scene,
)
from tests.kubelet.world import IMAGE, NODE, World, vm_pod
from tests.virtual_time import elapse

PROVIDER_ID = "scw-applesilicon://fr-par-1/6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


async def _node(here: World) -> Node:
    return await here.client.get(Node, Key("", NODE))


async def test_a_node_that_was_given_up_is_ready_again_when_its_agent_is_back(tmp_path: Path, clock: Clock) -> None:
    """Incident 33: after any gap in the heartbeat a Node stayed Unknown; nine hosts took no work."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        await here.kill_agent()
        await elapse(120)
        unknown = {"type": READY, "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
        await here.client.patch_status(Node, Key("", NODE), Strategic({"status": {"conditions": [unknown]}}))
        here.flags.append("--node-labels=tuist.dev/fleet=ci")  # metadata change too: the answer to that held the Unknown
        here.start_agent()
        await elapse(60)
        assert (await node_condition(here, READY)).status == "True"
        assert (await _node(here)).labels["tuist.dev/fleet"] == "ci"


async def test_what_a_node_says_of_itself_reaches_the_api(tmp_path: Path, clock: Clock) -> None:
    """Incidents 34 and 35: labels of goldens went with a status write, which drops them; without an id no machine was bound."""
    async with scene(tmp_path, clock, f"--provider-id={PROVIDER_ID}", "--node-labels=tuist.dev/fleet=ci") as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(30)
        node = await _node(here)
        assert node.spec.provider_id == PROVIDER_ID
        assert node.labels[golden_label(IMAGE)] == "true"
        assert node.labels["tuist.dev/fleet"] == "ci"


async def test_a_node_that_somebody_deleted_comes_back_and_keeps_its_vms(tmp_path: Path, clock: Clock) -> None:
    """Weakness 22: it was only created at the start of the agent."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.client.delete(Node, Key("", NODE))
        await elapse(30)
        assert (await node_condition(here, READY)).status == "True"
        assert here.mac.running() == ["ci-job-1"]


async def test_a_pod_of_a_host_that_never_comes_back_is_freed_without_its_agent(tmp_path: Path, clock: Clock) -> None:
    """Weakness 17: nobody but the agent removed the finalizer; four Pods of a lost host were stuck for a day."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.client.create(Node(metadata=ObjectMeta(name="another")))
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await delete(here)
        await here.client.delete(Node, Key("", NODE))
        sweep = Sweep(here.client, clock)
        for _ in range(3):
            await sweep.once()
            await elapse(60)
        assert await here.pod("job-1") is None


async def test_a_full_guest_is_told_to_its_own_pod_and_blames_no_other(tmp_path: Path, clock: Clock) -> None:
    """Incident 37 and weakness 23: a full guest was invisible; later it took the whole host out of service."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(vm="ci-full", disk_used_percent=98))
        here.start_agent()
        for name in ("full", "well"):
            await here.create(vm_pod(name))
            await here.until_phase(name, RUNNING)
        await elapse(60)
        assert "98%" in (await events(here, "full"))["GuestDiskNearlyFull"].message
        assert "GuestDiskNearlyFull" not in await events(here, "well")
        pressure = await node_condition(here, DISK_PRESSURE)
        assert (pressure.status, pressure.reason) == ("False", "TartKubeletHasSufficientDisk")


async def test_a_full_host_says_so(tmp_path: Path, clock: Clock) -> None:
    """Incident 30: updates failed for want of space while the Node was without any pressure."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        here.mac.fill_disk(10**9)
        await elapse(60)
        pressure = await node_condition(here, DISK_PRESSURE)
        assert (pressure.status, pressure.reason) == ("True", "TartKubeletHasDiskPressure")
        assert "0.2% free" in pressure.message


@pytest.mark.parametrize(("verb", "reason"), [("list", "TartNotAnswering"), ("launchctl", "NoGuiSession")])
async def test_a_host_that_can_start_no_vm_is_not_ready(verb: str, reason: str, tmp_path: Path, clock: Clock) -> None:
    """Weakness 22: Ready was unconditional, so Pods went to hosts where nothing could start."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        assert (await node_condition(here, READY)).status == "True"
        go_wrong(here, Fault(on=verb, kind="fail", times=None, text="no"))
        await elapse(120)
        ready = await node_condition(here, READY)
        assert (ready.status, ready.reason) == ("False", reason)
        assert "since 2026-01-01T" in ready.message
        go_wrong(here)
        await elapse(60)
        assert (await node_condition(here, READY)).status == "True"
