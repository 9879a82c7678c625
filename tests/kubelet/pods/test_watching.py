"""A VM that runs: its deadline, its address, its end, whatever the clock does."""

from datetime import timedelta
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock, VirtualClock
from applecart.kube.patches import Merge
from tests.kubelet.incidents.scene import events, job, scene, terminated, within
from tests.kubelet.world import NAMESPACE, vm_pod
from tests.virtual_time import elapse


async def test_a_pod_that_is_active_too_long_is_ended_and_says_so(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=120))
        with within(here, 180):
            pod = await here.until_phase("job-1", FAILED)
        assert (pod.status.reason, terminated(pod).reason) == ("DeadlineExceeded", "DeadlineExceeded")
        assert "activeDeadlineSeconds of 120" in pod.status.message
        await elapse(60)
        assert here.mac.running() == []


async def test_a_deadline_that_is_set_while_the_pod_runs_counts_from_its_start(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(600)
        await here.client.patch(Pod, Key(NAMESPACE, "job-1"), Merge({"spec": {"activeDeadlineSeconds": 300}}))
        with within(here, 120):
            await here.until_phase("job-1", FAILED)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_is_set_while_the_pod_runs_does_not_move_its_deadline(
    hours: int, tmp_path: Path, clock: Clock
) -> None:
    assert isinstance(clock, VirtualClock)
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=1200))
        await here.until_phase("job-1", RUNNING)
        clock.jump(timedelta(hours=hours))
        await elapse(900)
        assert here.mac.running() == ["ci-job-1"]
        with within(here, 600):
            await here.until_phase("job-1", FAILED)


async def test_a_pod_that_ends_in_time_keeps_its_own_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=30, code=0, active_deadline_seconds=600))
        pod = await here.until_phase("job-1", SUCCEEDED)
        assert terminated(pod).reason == "Completed"


async def test_a_guest_that_reported_its_end_is_believed_although_it_was_being_ended(tmp_path: Path, clock: Clock) -> None:
    """It finished its job while the agent was about to end it."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod(active_deadline_seconds=120))
        await here.until_phase("job-1", RUNNING)
        (tmp_path / "userdata" / "ci-job-1" / "status" / "runner-rc").write_text("0\n")
        pod = await here.until_phase("job-1", SUCCEEDED)
        assert (terminated(pod).exit_code, terminated(pod).reason) == (0, "Completed")


async def test_the_way_to_a_running_vm_is_told_in_events(tmp_path: Path, clock: Clock) -> None:
    """Incident 8: nothing was recorded between Scheduled and Running, for minutes."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await elapse(5)
        found = await events(here)
        assert {"CreatingVM", "Pulling", "Pulled", "Started"} <= found.keys()
        assert found["Started"].message.startswith("VM ci-job-1 is up at 192.168.64.")
