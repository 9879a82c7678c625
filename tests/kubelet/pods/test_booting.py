"""Starting a VM: given up in time, judged by its own time, and never done twice."""

import shutil
from pathlib import Path

from applecart.api.pods import FAILED, RUNNING
from applecart.clock import Clock
from applecart.errors import Transient
from applecart.sim.mac import Call
from applecart.sim.tart.faults import Fault
from tests.kubelet.incidents.scene import calls, delete, events, go_wrong, scene, terminated, told
from tests.kubelet.world import World, vm_pod
from tests.virtual_time import elapse


def refuse_starts(here: World) -> None:
    async def refuse(call: Call) -> None:
        if call.verb == "start":
            raise Transient("the log ci-job-1.log cannot be opened: Permission denied")

    here.mac.before_call = refuse


async def test_a_start_that_always_fails_is_given_up_like_everything_else(tmp_path: Path, clock: Clock) -> None:
    """I10: what failed after the run folder was taken was never judged; one Pod was tried 486 times in twelve hours."""
    async with scene(tmp_path, clock) as here:
        refuse_starts(here)
        here.start_agent()
        pod = await here.create(vm_pod())
        await elapse(1800)
        folders = list((tmp_path / "state" / "pods" / pod.uid).glob("run-*"))
        assert len(folders) <= 1
        pod = await here.until_phase("job-1", FAILED, within_s=3600)
        assert pod.status.reason == "TartCreateFailed"
        assert "given up after" in pod.status.message
        assert "Permission denied" in pod.status.message
        assert here.mac.boots == []
        await delete(here)
        await here.until_gone("job-1", within_s=120)


async def test_a_start_that_fails_for_a_while_is_made_up_for(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        refuse_starts(here)
        here.start_agent()
        await here.create(vm_pod())
        await elapse(1800)
        here.mac.before_call = None
        await here.until_phase("job-1", RUNNING, within_s=300)
        assert [boot.times for boot in here.mac.boots] == [1]


async def test_the_run_folders_of_false_starts_do_not_pile_up(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", text="Error: the hypervisor is busy", times=None))
        here.start_agent()
        pod = await here.create(vm_pod())
        await elapse(1800)
        assert told((await events(here))["TartCreateFailed"]) > 10
        assert len(list((tmp_path / "state" / "pods" / pod.uid).glob("run-*"))) <= 1


async def test_a_false_start_is_known_although_the_way_to_it_was_long(tmp_path: Path, clock: Clock) -> None:
    """The time was taken before the cache volume was attached and the supervisor came up, which may take longer than the whole
    window: a VM that never began counted as one that ran and failed."""
    async with scene(tmp_path, clock) as here:
        go_wrong(here, Fault(on="run", kind="fail", text="Error: the hypervisor is busy"))

        async def take_long(call: Call) -> None:
            if call.verb == "start":
                await elapse(25)

        here.mac.before_call = take_long
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=240)
        assert len(calls(here, "clone", "ci-job-1")) == 2


async def test_a_vm_that_ran_and_whose_run_folder_is_lost_is_not_started_again(tmp_path: Path, clock: Clock) -> None:
    """I4: a disk that was used booted once more, and its job ran twice."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        pod = await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await here.mac.reboot()
        shutil.rmtree(tmp_path / "state" / "pods" / pod.uid / "run-1")
        here.start_agent()
        pod = await here.until_phase("job-1", FAILED, within_s=300)
        assert (pod.status.reason, terminated(pod).exit_code) == ("TartRunExited", 255)
        assert len(here.mac.boots) == 1


async def test_a_vm_that_runs_without_its_run_folder_is_watched_to_its_end(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        pod = await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state" / "pods" / pod.uid / "run-1")
        here.start_agent()
        await elapse(600)
        assert here.mac.running() == ["ci-job-1"]
        assert len(here.mac.boots) == 1
        await delete(here)
        await here.until_gone("job-1", within_s=120)
        assert here.mac.running() == []
