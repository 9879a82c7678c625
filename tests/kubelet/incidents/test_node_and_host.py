"""Incidents of the Node, of the host's session and of guests that are up and useless."""

import base64
import json
from pathlib import Path

import msgspec
import pytest

from applecart.api.conditions import DISK_PRESSURE, READY
from applecart.api.containers import ExecAction, Probe, TcpSocketAction
from applecart.api.core import Secret
from applecart.api.meta import Key, ObjectMeta
from applecart.api.names import golden_label
from applecart.api.nodes import Node, NodeCondition
from applecart.api.pods import FAILED, RUNNING, Pod
from applecart.clock import Clock
from applecart.kube.patches import Strategic
from applecart.kube.stuck_pods import Sweep
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kubelet.incidents.scene import (
    calls,
    delete,
    events,
    go_wrong,
    guests,
    job,
    scene,
    told,
    waiting_reason,
    within,
)
from tests.kubelet.world import IMAGE, NODE, World, vm_pod
from tests.virtual_time import elapse

PROVIDER_ID = "scw-applesilicon://fr-par-1/6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


async def _node(here: World) -> Node:
    return await here.client.get(Node, Key("", NODE))


async def _condition(here: World, type_: str) -> NodeCondition:
    found = (await _node(here)).condition(type_)
    assert found is not None
    return found


# Node


async def test_a_node_that_was_given_up_is_ready_again_when_its_agent_is_back(tmp_path: Path, clock: Clock) -> None:
    """Incident 33: after any gap in the heartbeat a Node stayed Unknown; nine hosts took no work."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        await here.kill_agent()
        await elapse(120)
        unknown = {"type": READY, "status": "Unknown", "reason": "NodeStatusUnknown", "message": ""}
        await here.client.patch_status(Node, Key("", NODE), Strategic({"status": {"conditions": [unknown]}}))
        here.start_agent()
        await elapse(60)
        assert (await _condition(here, READY)).status == "True"


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
        assert (await _condition(here, READY)).status == "True"
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
        pressure = await _condition(here, DISK_PRESSURE)
        assert (pressure.status, pressure.reason) == ("False", "TartKubeletHasSufficientDisk")


async def test_a_full_host_says_so(tmp_path: Path, clock: Clock) -> None:
    """Incident 30: updates failed for want of space while the Node was without any pressure."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        here.mac.fill_disk(10**9)
        await elapse(60)
        pressure = await _condition(here, DISK_PRESSURE)
        assert (pressure.status, pressure.reason) == ("True", "TartKubeletHasDiskPressure")
        assert "0.2% free" in pressure.message


@pytest.mark.parametrize(("verb", "reason"), [("list", "TartNotAnswering"), ("launchctl", "NoGuiSession")])
async def test_a_host_that_can_start_no_vm_is_not_ready(verb: str, reason: str, tmp_path: Path, clock: Clock) -> None:
    """Weakness 22: Ready was unconditional, so Pods went to hosts where nothing could start."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await elapse(60)
        assert (await _condition(here, READY)).status == "True"
        go_wrong(here, Fault(on=verb, kind="fail", times=None, text="no"))
        await elapse(120)
        ready = await _condition(here, READY)
        assert (ready.status, ready.reason) == ("False", reason)
        assert "since 2026-01-01T" in ready.message
        go_wrong(here)
        await elapse(60)
        assert (await _condition(here, READY)).status == "True"


# Session


@pytest.mark.parametrize("loginwindow_is_dead", [False, True])
async def test_a_lost_login_session_is_brought_back_before_a_vm_is_started(
    loginwindow_is_dead: bool, tmp_path: Path, clock: Clock
) -> None:
    """Incidents 38 and 39, weakness 24: every start died with a HostKey error; `killall` had nothing to signal."""
    async with scene(tmp_path, clock) as here:
        here.mac.lose_gui_session()
        here.mac.loginwindow_is_dead = loginwindow_is_dead
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert len(calls(here, "run")) == 1
        assert not [call for call in here.mac.calls if "killall" in call.argv]


async def test_a_host_nobody_can_log_in_to_fails_its_pod_with_a_sentence_and_is_left_in_peace(
    tmp_path: Path, clock: Clock
) -> None:
    """Incident 39 and weakness 5: a sealed password; the Pod was retried every 30 s for ever, each time with a kick."""
    async with scene(tmp_path, clock) as here:
        here.mac.lose_gui_session()
        here.mac.seal_auto_login()
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: waiting_reason(pod) == "NoGuiSession", within_s=120)
        pod = await here.until_phase("job-1", FAILED, within_s=1200)
        assert pod.status.reason == "NoGuiSession"
        assert "/etc/kcpassword" in pod.status.message
        assert calls(here, "run") == []
        kicks = [call for call in here.mac.calls if "kickstart" in call.argv]
        assert 1 <= len(kicks) <= 3
        assert (await _condition(here, READY)).reason == "NoGuiSession"


async def test_a_pod_that_waits_for_a_session_never_costs_a_running_vm_its_own(tmp_path: Path, clock: Clock) -> None:
    """Weakness 24: a kick of the login window ends every VM of the session."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod("works"))
        await here.until_phase("works", RUNNING)
        here.mac.lose_gui_session()
        await here.create(vm_pod("waits"))
        await here.until_phase("waits", FAILED, within_s=1200)
        assert here.mac.running() == ["ci-works"]


async def test_a_start_that_tart_refuses_tells_what_tart_said(tmp_path: Path, clock: Clock) -> None:
    """Incident 43: a share with a wrong suffix ended every VM at once, and the reason was only on the host."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", code=64, text="Error: invalid --dir syntax: rw"))
        here.start_agent()
        await here.create(vm_pod())
        pod = await here.until_phase("job-1", FAILED, within_s=60)
        assert "invalid --dir syntax: rw" in pod.status.message
        assert "invalid --dir syntax: rw" in (await events(here))["TartCreateFailed"].message
        assert len(calls(here, "run")) == 1


async def test_a_start_that_came_to_nothing_is_tried_again_with_a_new_clone(tmp_path: Path, clock: Clock) -> None:
    """Incident 43: what `tart run` printed last is told, and a disk that never booted may be replaced."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", code=1, text="Error: the hypervisor is busy"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert "the hypervisor is busy" in (await events(here))["TartCreateFailed"].message
        assert len(calls(here, "clone", "ci-job-1")) == 2
        assert [boot.times for boot in here.mac.boots] == [1]


async def test_the_third_vm_waits_for_a_place(tmp_path: Path, clock: Clock) -> None:
    """Weakness 5: the limit of two guests looked like any other failure."""
    async with scene(tmp_path, clock, "--max-pods=3") as here:
        here.start_agent()
        await here.create(job("first", runs_s=120))
        await here.create(vm_pod("second"))
        for name in ("first", "second"):
            await here.until_phase(name, RUNNING)
        await here.create(vm_pod("third"))
        await here.until("third", lambda pod: waiting_reason(pod) == "TooManyVMs", within_s=60)
        await here.until_phase("third", RUNNING, within_s=240)
        assert [boot.vm for boot in here.mac.boots].count("ci-third") == 1


# Guests that are up and useless


def _with(probe: dict[str, Probe]) -> Pod:
    pod = vm_pod()
    container = msgspec.structs.replace(pod.spec.containers[0], **probe)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))


async def test_a_guest_that_nothing_reaches_is_not_ready(tmp_path: Path, clock: Clock) -> None:
    """Incident 41 and weakness 12: an address was enough for Ready; dead guests took jobs for 13 hours."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(network_is_dead=True))
        here.start_agent()
        await here.create(_with({"readiness_probe": Probe(tcp_socket=TcpSocketAction(port=9091), period_seconds=5)}))
        pod = await here.until_phase("job-1", RUNNING)
        await elapse(60)
        pod = await here.until_phase("job-1", RUNNING)
        assert {each.status for each in pod.status.conditions if each.type in ("Ready", "ContainersReady")} == {"False"}
        assert not pod.status.container_statuses[0].ready
        assert told((await events(here))["Unhealthy"]) > 1


async def test_a_guest_whose_liveness_probe_fails_is_ended_with_a_reason(tmp_path: Path, clock: Clock) -> None:
    """Weakness 12: nobody ended a guest that was up and dead."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(ignores_shutdown=True))
        here.start_agent()
        dead = Probe(exec=ExecAction(command=("false",)), period_seconds=5, failure_threshold=2)
        await here.create(_with({"liveness_probe": dead}))
        pod = await here.until_phase("job-1", FAILED, within_s=300)
        assert pod.status.reason == "LivenessProbeFailed"
        assert here.mac.running() == []


async def test_the_token_of_a_guest_outlives_its_job_and_serves_one_purpose(tmp_path: Path, clock: Clock) -> None:
    """Incident 42: it was good for an hour and for everything; jobs lost their access in the middle."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(automount_service_account_token=True, service_account_name="default"))
        pod = await here.until_phase("job-1", RUNNING)
        await here.create(vm_pod("plain"))
        await here.until_phase("plain", RUNNING)
        assert not (tmp_path / "userdata" / "ci-plain" / "sa_token").exists()
        file = tmp_path / "userdata" / "ci-job-1" / "sa_token"
        assert file.stat().st_mode & 0o077 == 0
        payload = file.read_text().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        assert claims["exp"] - claims["iat"] == 8 * 3600
        assert claims["aud"] == ["tuist-runners-dispatch"]
        assert claims["kubernetes.io"]["pod"]["uid"] == pod.uid


async def test_secrets_for_a_guest_reach_only_its_own_folder(tmp_path: Path, clock: Clock) -> None:
    """I9 along the whole path: nothing of the value in arguments, events, statuses or the journal."""
    text = "correct-horse-battery"
    async with scene(tmp_path, clock) as here:
        data = {"PASSWORD": base64.b64encode(text.encode()).decode()}
        await here.client.create(Secret(metadata=ObjectMeta(name="login", namespace="ci"), data=data))
        pod = vm_pod()
        env = msgspec.convert([{"secretRef": {"name": "login"}}], type=type(pod.spec.containers[0].env_from))
        container = msgspec.structs.replace(pod.spec.containers[0], env_from=env)
        go_wrong(here, Fault(on="clone", kind="fail", vm="ci-job-1", text="no"))
        here.start_agent()
        await here.create(msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,))))
        with within(here, 120):
            await here.until_phase("job-1", RUNNING)
        assert _holders(tmp_path, text) == [Path("userdata/ci-job-1/tuist.env")]
        assert not [call for call in here.mac.calls if text in " ".join(call.argv)]


def _holders(folder: Path, text: str) -> list[Path]:
    """Files in which it can be read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [path.relative_to(folder) for path in files if text.encode() in path.read_bytes()]
