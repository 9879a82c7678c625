"""Incidents of restarts: VMs survive their agent, a new one finds them, and nothing boots twice because of it."""

from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kube.patch import Strategic
from applecart.kube.transport import Request
from tests.kube.faults import Fault as WireFault
from tests.kube.faults import Says
from tests.kubelet.incidents.scene import calls, cut_off, delete, job, scene, terminated, vm_pid
from tests.kubelet.world import NAMESPACE, vm_pod
from tests.virtual_time import elapse


async def test_a_vm_outlives_its_agent_and_the_next_agent_finds_it(tmp_path: Path, clock: Clock) -> None:
    """Incidents 17 and 18: an agent that was stopped took its VMs with it; later none started at all without a terminal."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        before = await here.until_phase("job-1", RUNNING)
        pid = await vm_pid(here)
        for _ in range(3):
            await here.kill_agent()
            await elapse(60)
            here.start_agent()
            await elapse(60)
        assert await vm_pid(here) == pid
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


async def test_a_pod_that_somebody_else_declared_failed_loses_its_vm(tmp_path: Path, clock: Clock) -> None:
    """Incident 2, the other way round: an evicted Pod is finished, whatever its guest thinks."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        evicted = {"status": {"phase": FAILED, "reason": "Evicted"}}
        await here.client.patch_status(Pod, Key(NAMESPACE, "job-1"), Strategic(evicted))
        await elapse(60)
        assert "ci-job-1" not in here.mac.vms()
        pod = await here.pod("job-1")
        assert pod is not None
        assert (pod.status.phase, pod.status.reason) == (FAILED, "Evicted")
        assert len(here.mac.boots) == 1
