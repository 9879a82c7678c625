"""The first entry of a Pod: when it cannot be written, and when there was one that is lost."""

import errno
import shutil
from pathlib import Path

import pytest

from applecart.api.conditions import DISK_PRESSURE
from applecart.api.pods import FAILED, RUNNING
from applecart.clock import Clock
from applecart.kubelet.metrics import Wait
from applecart.kubelet.node.registration import WRITE_TEST
from tests.kubelet.incidents.scene import delete, events, node_condition, scene, terminated, told, waiting_reason
from tests.kubelet.killing import KillableFiles
from tests.kubelet.world import World, vm_pod
from tests.virtual_time import elapse


class Disk:
    """Of the agent's own folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fault: int | None = None
        write = KillableFiles.write

        def refuse(files: KillableFiles, path: Path, data: bytes, mode: int = 0o600) -> None:
            if path.name in ("entry.json", WRITE_TEST) and self.fault is not None:
                raise OSError(self.fault, "it cannot be written", str(path))
            write(files, path, data, mode)

        monkeypatch.setattr(KillableFiles, "write", refuse)


def journal_waits(here: World) -> list[float]:
    assert here.agent is not None
    return [waiting.age_s for waiting in here.agent.host.metrics.ages.oldest(5, Wait.JOURNAL)]


@pytest.mark.parametrize(("fault", "reason"), [(errno.ENOSPC, "HostDiskFull"), (errno.EROFS, "TartCreateFailed")])
async def test_a_pod_whose_first_entry_cannot_be_written_says_so_and_goes_on_when_it_can(
    fault: int, reason: str, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I10: on a full disk new Pods were tried again for ever, with no status, no event and no age, on a Node that was Ready."""
    async with scene(tmp_path, clock) as here:
        disk = Disk(monkeypatch)
        disk.fault = fault
        here.start_agent()
        await here.create(vm_pod())
        await elapse(5)
        pod = await here.pod("job-1")
        assert pod is not None
        assert waiting_reason(pod) == reason
        assert "cannot be written down" in pod.status.message
        assert (await events(here))[reason].message == pod.status.message
        await elapse(3600)
        assert 3500 < journal_waits(here)[0] < 3700
        assert 10 < told((await events(here))[reason]) < 60  # not every moment
        disk.fault = None
        await here.until_phase("job-1", RUNNING, within_s=420)
        assert journal_waits(here) == []
        assert len(here.mac.boots) == 1


async def test_a_pod_that_was_never_accepted_can_be_deleted_and_waits_no_longer(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, clock) as here:
        Disk(monkeypatch).fault = errno.ENOSPC
        here.start_agent()
        await here.create(vm_pod())
        await elapse(600)
        await delete(here)
        await here.until_gone("job-1", within_s=60)
        assert journal_waits(here) == []


async def test_a_full_disk_under_the_first_entry_is_cleared_of_what_nobody_wants(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, clock) as here:
        disk = Disk(monkeypatch)
        here.start_agent()
        await elapse(5)
        assert here.agent is not None
        asked = []

        async def reclaim(reason: str) -> None:
            asked.append(reason)
            disk.fault = None

        here.agent.host.goldens.reclaim = reclaim
        disk.fault = errno.ENOSPC
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING, within_s=120)
        assert len(asked) == 1


@pytest.mark.parametrize("is_deleted", [False, True], ids=["alive", "deleted"])
async def test_a_pod_that_ran_on_a_host_that_was_made_anew_ends_and_never_runs_again(
    is_deleted: bool, tmp_path: Path, clock: Clock
) -> None:
    """I4: a Mac that was set up again under its old name booted every Pod that the API still called Running, a second time."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        before = await here.until_phase("job-1", RUNNING)
        await here.kill_agent()
        await here.mac.reboot()
        shutil.rmtree(tmp_path / "state")
        shutil.rmtree(here.mac.home / "vms" / "ci-job-1")
        if is_deleted:
            await delete(here)
        here.start_agent()
        if is_deleted:
            await here.until_gone("job-1", within_s=60)
        else:
            pod = await here.until_phase("job-1", FAILED, within_s=60)
            assert (pod.status.reason, terminated(pod).exit_code) == ("TartRunExited", 255)
            assert "how its job went is unknown" in pod.status.message
            state = before.status.container_statuses[0].state
            assert state is not None
            assert state.running is not None
            assert terminated(pod).started_at == state.running.started_at
        await elapse(600)
        assert len(here.mac.boots) == 1
        assert here.mac.running() == []


async def test_a_node_whose_agent_cannot_write_its_memory_says_so_until_it_can(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, clock) as here:
        disk = Disk(monkeypatch)
        here.start_agent()
        await elapse(60)
        assert (await node_condition(here, DISK_PRESSURE)).status == "False"
        disk.fault = errno.EROFS
        await elapse(60)
        pressure = await node_condition(here, DISK_PRESSURE)
        assert (pressure.status, pressure.reason) == ("True", "TartKubeletStateNotWritable")
        assert "it cannot be written" in pressure.message
        disk.fault = None
        await elapse(60)
        assert (await node_condition(here, DISK_PRESSURE)).status == "False"
