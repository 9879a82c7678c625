"""Incidents of restarts: VMs survive their agent, a new one finds them, and nothing boots or is lost because of it."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, PENDING, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock, VirtualClock
from applecart.kube.patches import Merge
from applecart.kube.transport import Request
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from applecart.tart.running import running_vms
from tests.kube.faults import Fault as WireFault
from tests.kube.faults import Says
from tests.kubelet.incidents.scene import calls, cut_off, delete, go_wrong, guests, job, scene, terminated, within
from tests.kubelet.world import World, vm_pod
from tests.virtual_time import elapse


async def _pid(here: World) -> int:
    return running_vms(await here.mac.processes(), "/usr/local/bin/tart")["ci-job-1"].pid


async def test_a_vm_outlives_its_agent_and_the_next_agent_finds_it(tmp_path: Path, clock: Clock) -> None:
    """Incidents 17 and 18: an agent that was stopped took its VMs with it; later none started at all without a terminal."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        before = await here.until_phase("job-1", RUNNING)
        pid = await _pid(here)
        for _ in range(3):
            await here.kill_agent()
            await elapse(60)
            here.start_agent()
            await elapse(60)
        assert await _pid(here) == pid
        after = await here.pod("job-1")
        assert after is not None
        assert after.status == before.status
        assert not [call for call in here.mac.calls if "nohup" in call.argv]
        await delete(here)
        await here.until_gone("job-1", within_s=30)
        assert len(here.mac.boots) == 1


async def test_an_agent_that_restarts_beside_many_goldens_knows_its_vm_within_seconds(tmp_path: Path, clock: Clock) -> None:
    """Incident 19: it asked every stopped VM for its address, ran out of time, and tried to start what ran already."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        for number in range(3):
            image = "ghcr.io/acme/runner@sha256:" + str(number) * 64
            await here.create(job(f"old-{number}", runs_s=0, image=image))
            await here.until_phase(f"old-{number}", SUCCEEDED)
            await delete(here, f"old-{number}")
        await here.create(job(runs_s=300))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        here.mac.calls.clear()
        here.start_agent()
        await elapse(5)
        assert here.agent is not None
        assert [guest.vm for guest in here.agent.guests.running()] == ["ci-job-1"]
        await here.until_phase("job-1", SUCCEEDED)
        assert calls(here, "run") == []
        assert {argv[1] for argv in calls(here, "ip")} <= {"ci-job-1"}


@pytest.mark.parametrize(("code", "phase"), [(0, SUCCEEDED), (7, FAILED)])
async def test_a_vm_that_ended_while_no_agent_ran_is_reported_as_it_ended_and_not_run_again(
    code: int, phase: str, tmp_path: Path, clock: Clock
) -> None:
    """Weakness 9: its used disk was booted a second time, and a crash that nobody saw was a success."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(code=code))
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await elapse(600)
        assert here.mac.running() == []
        here.start_agent()
        pod = await here.until_phase("job-1", phase, within_s=30)
        assert terminated(pod).exit_code == code
        assert len(here.mac.boots) == 1


async def test_a_host_that_lost_power_reports_its_vms_as_failed(tmp_path: Path, clock: Clock) -> None:
    """Weakness 9: after a reboot nobody knows how the job went, so it is not called a success, nor run again."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await here.mac.reboot()
        here.start_agent()
        pod = await here.until_phase("job-1", FAILED, within_s=60)
        assert "unknown" in pod.status.message
        assert terminated(pod).exit_code != 0
        await elapse(600)
        assert len(here.mac.boots) == 1


@pytest.mark.parametrize("status", [409, 503])
async def test_an_end_that_cannot_be_published_keeps_its_vm_and_is_published_later(
    status: int, tmp_path: Path, clock: Clock
) -> None:
    """Weakness 8: the VM went first; the write failed; the next look found a Running Pod without a VM, and booted one."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        here.start_agent()
        await here.create(job(code=3))
        await here.until_phase("job-1", RUNNING)

        def refuse_status(request: Request) -> WireFault | None:
            return Says(status) if request.path.endswith("/pods/job-1/status") else None

        wire.plan = refuse_status
        await elapse(300)
        assert here.mac.running() == []
        assert "ci-job-1" in here.mac.vms(), "its files are needed until the API knows its end"
        wire.heal()
        pod = await here.until_phase("job-1", FAILED, within_s=300)
        assert terminated(pod).exit_code == 3
        await elapse(60)
        assert "ci-job-1" not in here.mac.vms()
        assert len(here.mac.boots) == 1


# The agent's memory


async def test_an_agent_whose_whole_memory_is_lost_finds_its_vm_by_its_mark(tmp_path: Path, clock: Clock) -> None:
    """The state folder was wiped while a VM ran: it is watched to its end, never started, and leaves nothing behind."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=600, code=5))
        await here.until_phase("job-1", RUNNING)
        pid = await _pid(here)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state")
        here.start_agent()
        await elapse(400)
        assert await _pid(here) == pid
        pod = await here.until_phase("job-1", FAILED)
        assert terminated(pod).exit_code == 5
        await elapse(60)
        assert "ci-job-1" not in here.mac.vms()
        assert len(here.mac.boots) == 1


async def test_a_pod_can_be_deleted_by_an_agent_whose_memory_is_lost(tmp_path: Path, clock: Clock) -> None:
    """Weakness 15: without a memory of it, deletion removed the finalizer and left VM and secrets on the host."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state")
        await delete(here)
        here.start_agent()
        await here.until_gone("job-1", within_s=120)
        assert here.mac.running() == []
        assert "ci-job-1" not in here.mac.vms()
        assert list((tmp_path / "userdata").iterdir()) == []


@pytest.mark.parametrize("found", [b"\0" * 100, b'{"uid": 1}'], ids=["zeros", "wrong"])
async def test_one_entry_that_cannot_be_read_costs_no_other_pod_anything(found: bytes, tmp_path: Path, clock: Clock) -> None:
    """A power cut tore one file: its Pod is known by its mark, and its neighbour does not notice."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        for name in ("job-1", "job-2"):
            await here.create(job(name, runs_s=600))
            pod = await here.until_phase(name, RUNNING)
        await here.kill_agent()
        (tmp_path / "state" / "pods" / pod.uid / "entry.json").write_bytes(found)
        here.start_agent()
        for name in ("job-1", "job-2"):
            await here.until_phase(name, SUCCEEDED)
            await delete(here, name)
            await here.until_gone(name)
        assert sorted(boot.vm for boot in here.mac.boots) == ["ci-job-1", "ci-job-2"]
        assert not [vm for vm in here.mac.vms() if vm.startswith("ci-")]


async def test_the_vm_of_a_pod_that_vanished_goes_as_often_as_it_takes(tmp_path: Path, clock: Clock) -> None:
    """Weakness 16: the Pod was gone, its VM could not be deleted, and from then on it was protected for ever."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await _force_away(here)
        go_wrong(here, Fault(on="delete", kind="fail", vm="ci-job-1", times=3, text="busy"))
        here.start_agent()
        await elapse(600)
        assert here.mac.running() == []
        assert "ci-job-1" not in here.mac.vms()
        assert list((tmp_path / "userdata").iterdir()) == []


async def test_files_of_a_pod_that_never_started_go_with_it(tmp_path: Path, clock: Clock) -> None:
    """Weakness 15: secrets that were staged for a VM that was never made stayed on the host for ever."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="pull", kind="hang", times=None))
        here.start_agent()
        await here.create(job())
        await elapse(30)
        assert list((tmp_path / "userdata").iterdir())
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert list((tmp_path / "userdata").iterdir()) == []


async def _force_away(here: World) -> None:
    """As somebody does who edits the finalizer out."""
    await delete(here, grace_s=0)
    await here.client.patch(Pod, Key("ci", "job-1"), Merge({"metadata": {"finalizers": []}}))
    await here.until_gone("job-1")


# An API that is away


def _at_once(here: World) -> bool:
    return True


def _pulls(here: World) -> bool:
    return bool(calls(here, "pull"))


def _boots(here: World) -> bool:
    return bool(here.mac.running())


def _ended(here: World) -> bool:
    return bool(here.mac.boots) and not here.mac.running()


@pytest.mark.parametrize("stage", [_at_once, _pulls, _boots, _ended], ids=["accepted", "pulling", "booting", "ended"])
async def test_ten_minutes_without_the_api_cost_a_pod_nothing_but_time(
    stage: Callable[[World], bool], tmp_path: Path, clock: Clock
) -> None:
    """I12: an outage of the control plane never counts against a Pod, whatever it was doing."""
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        here.start_agent()
        await elapse(5)
        await here.create(job(code=4))
        while not stage(here):
            await elapse(0.5)
        wire.plan = lambda request: Says(503)
        wire.sever()
        await elapse(600)
        wire.heal()
        pod = await here.until_phase("job-1", FAILED, within_s=180)
        assert terminated(pod).exit_code == 4
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert len(here.mac.boots) == 1


async def test_a_deletion_that_the_api_interrupts_is_finished_afterwards(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        wire = cut_off(here)
        guests(here, Rule(shutdown_s=20))
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await delete(here)
        await elapse(5)
        wire.plan = lambda request: Says(503)
        wire.sever()
        await elapse(600)
        assert here.mac.running() == []
        wire.heal()
        await here.until_gone("job-1", within_s=180)
        assert "ci-job-1" not in here.mac.vms()


# A clock that is set


HOUR_S = 3600


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_a_clock_that_is_set_while_a_vm_boots_changes_nothing(by_s: int, tmp_path: Path, clock: Clock) -> None:
    """The boot deadline is a duration: a Mac whose clock was corrected at its start must not lose the VMs that boot."""
    async with scene(tmp_path, clock) as here:
        guests(here, Rule(vm="ci-job-1", boot_s=120), Rule(vm="ci-job-2", never_gets_ip=True))
        here.start_agent()
        await here.create(job(runs_s=60))
        await here.create(vm_pod("job-2"))
        await here.until("job-1", lambda pod: len(here.mac.running()) == 2)
        _set_clock(clock, by_s)
        with within(here, 130):
            await here.until_phase("job-1", RUNNING)
        with within(here, 70):
            await here.until_phase("job-1", SUCCEEDED)
        pod = await here.until_phase("job-2", FAILED, within_s=600)
        assert pod.status.reason == "TartBootTimedOut"
        assert len(here.mac.boots) == 2


@pytest.mark.parametrize("by_s", [HOUR_S, -HOUR_S], ids=["forward", "back"])
async def test_a_clock_that_is_set_during_a_backoff_neither_ends_the_pod_nor_holds_it_up(
    by_s: int, tmp_path: Path, clock: Clock
) -> None:
    """The next attempt comes after a duration, and giving up needs time that really passed."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="clone", kind="fail", vm="ci-job-1", times=6, text="disk I/O error"))
        here.start_agent()
        await here.create(vm_pod())
        await here.until("job-1", lambda pod: len(calls(here, "clone", "ci-job-1")) == 2)
        _set_clock(clock, by_s)
        await elapse(30)
        pod = await here.pod("job-1")
        assert pod is not None
        assert pod.status.phase == PENDING
        await here.until_phase("job-1", RUNNING, within_s=600)


def _set_clock(clock: Clock, by_s: int) -> None:
    assert isinstance(clock, VirtualClock)
    clock.jump(timedelta(seconds=by_s))
