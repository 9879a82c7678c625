"""VMs that are half made: made again by the next agent, or taken away with their Pod."""

from pathlib import Path

import pytest

from applecart.api.pods import FAILED, RUNNING
from applecart.clock import Clock
from applecart.sim.tart.faults import Fault
from applecart.tart.marks import PodMark
from tests.kubelet.incidents.scene import calls, delete, go_wrong, person_runs, scene
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_clone_that_outlives_its_agent_never_replaces_the_vm_of_the_next(
    when: str, tmp_path: Path, clock: Clock
) -> None:
    """Tart replaces a VM of the same name without a word, even one that runs by then."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        go_wrong(here, Fault(on="clone", vm="ci-job-1", kind="slow", seconds=300, when=when))
        await here.create(vm_pod())
        while not calls(here, "clone", "ci-job-1"):
            await elapse(1)
        await here.kill_agent()
        here.start_agent()
        await here.until_phase("job-1", RUNNING, within_s=120)
        await elapse(600)
        assert here.agent is not None
        assert isinstance(here.agent.host.home.mark("ci-job-1"), PodMark)
        assert here.mac.running() == ["ci-job-1"]
        assert len(here.mac.boots) == 1
        await delete(here)
        await here.until_gone("job-1", within_s=120)
        assert "ci-job-1" not in here.mac.vms()


@pytest.mark.parametrize("is_agent_killed", [False, True], ids=["same-agent", "next-agent"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_pod_that_is_deleted_while_its_vm_is_cloned_leaves_nothing_behind(
    when: str, is_agent_killed: bool, tmp_path: Path, clock: Clock
) -> None:
    """The VM bears no mark yet, or comes when nobody wants it any more; the collector would never touch it (I3)."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        go_wrong(here, Fault(on="clone", vm="ci-job-1", kind="slow", seconds=250, when=when))
        await here.create(vm_pod())
        while not calls(here, "clone", "ci-job-1"):
            await elapse(1)
        await elapse(1)
        if is_agent_killed:
            await here.kill_agent()
        await delete(here)
        if is_agent_killed:
            here.start_agent()
        await here.until_gone("job-1", within_s=120)
        await elapse(600)
        assert "ci-job-1" not in here.mac.vms()
        assert here.mac.boots == []
        assert here.agent is not None
        assert list(here.agent.host.journal) == []
        assert list((tmp_path / "userdata").iterdir()) == []


async def test_a_vm_that_a_person_renamed_to_a_pods_name_is_that_persons(tmp_path: Path, clock: Clock) -> None:
    """I3: `tart rename` carries the mark of another Pod along, and the VM that somebody wanted to keep was replaced."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod("other"))
        await here.until_phase("other", RUNNING)
        await here.stop_agent()
        await person_runs(here, "stop", "ci-other")
        await person_runs(here, "rename", "ci-other", "ci-job-1")
        await here.create(vm_pod())
        here.start_agent()
        pod = await here.until_phase("job-1", FAILED, within_s=60)
        assert "was not made for a Pod" in pod.status.message
        await elapse(60)
        assert "ci-job-1" in here.mac.vms()
