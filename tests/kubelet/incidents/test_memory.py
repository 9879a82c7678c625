"""The agent's memory lost, torn or behind the times: marks in VMs speak for it, and nothing stays behind."""

import errno
import shutil
from pathlib import Path

import pytest

from applecart.api.meta import Key
from applecart.api.pods import FAILED, RUNNING, SUCCEEDED, Pod
from applecart.clock import Clock
from applecart.kube.patch import Merge
from applecart.sim.tart.faults import Fault
from tests.kubelet.incidents.scene import delete, go_wrong, job, scene, terminated, vm_pid
from tests.kubelet.killing import KillableFiles
from tests.kubelet.world import World, vm_pod
from tests.virtual_time import elapse


async def test_an_agent_whose_whole_memory_is_lost_finds_its_vm_by_its_mark(tmp_path: Path, clock: Clock) -> None:
    """The state folder was wiped while a VM ran: it is watched to its end, never started, and leaves nothing behind."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(job(runs_s=600, code=5))
        await here.until_phase("job-1", RUNNING)
        pid = await vm_pid(here)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state")
        here.start_agent()
        await elapse(400)
        assert await vm_pid(here) == pid
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


async def test_a_pod_that_takes_the_name_of_one_that_vanished_gets_a_vm_of_its_own(tmp_path: Path, clock: Clock) -> None:
    """Weakness 16 with a successor: the old VM ends first, and nothing of it is left to the new Pod."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        old = await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await _force_away(here)
        await here.create(vm_pod())
        here.start_agent()
        new = await here.until_phase("job-1", RUNNING, within_s=300)
        assert new.uid != old.uid
        assert here.mac.running() == ["ci-job-1"]
        assert [boot.times for boot in here.mac.boots] == [1, 1]
        assert here.mac.boots[0].disk != here.mac.boots[1].disk


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


async def test_a_pod_whose_entry_is_lost_can_be_deleted_although_the_disk_is_full(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: the entry that a lost journal needs could not be written, and that was no reason to let the Pod go."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        shutil.rmtree(tmp_path / "state" / "pods")

        def full(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(KillableFiles, "write", full)
        await delete(here)
        here.start_agent()
        await here.until_gone("job-1", within_s=600)
        await elapse(600)
        assert here.mac.running() == []
        assert "ci-job-1" not in here.mac.vms()  # the collector knows it by its mark


@pytest.mark.parametrize("from_s", [0, 20, 40, 60], ids=lambda at: f"after-{at}s")
async def test_a_full_disk_under_the_journal_delays_a_pod_and_loses_nothing(
    from_s: int, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No step is taken that could not be written down; when there is room again the Pod goes on, its VM booted once."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        full = False
        write = KillableFiles.write

        def refuse_when_full(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
            if full and path.name == "entry.json":
                raise OSError(errno.ENOSPC, "No space left on device")
            write(files, path, data, mode)

        monkeypatch.setattr(KillableFiles, "write", refuse_when_full)
        await here.create(job(runs_s=300, code=0))
        await elapse(from_s)
        full = True
        await elapse(1800)
        full = False
        pod = await here.until_phase("job-1", SUCCEEDED, within_s=7200)
        assert terminated(pod).exit_code == 0
        assert len(here.mac.boots) == 1
