"""Ending VMs: the one that is meant, and no other process, whatever pid it has."""

import asyncio
from pathlib import Path

import pytest

from applecart.api.pods import FAILED, RUNNING
from applecart.clock import Clock
from applecart.errors import Transient
from applecart.kubelet.pods.stopping import POWER_BUTTON
from applecart.sim.mac_sessions import SimulatedDetached
from tests.kubelet.incidents.scene import TART, delete, person_runs, scene, vm_pid
from tests.kubelet.world import vm_pod
from tests.virtual_time import elapse


async def test_whoever_has_the_pid_of_a_vm_that_lost_power_is_not_asked_to_stop(tmp_path: Path, clock: Clock) -> None:
    """I7: after a power cut nobody recorded the VM's end, and its power button was pressed on the process that has its pid."""
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        pid = await vm_pid(here)
        await here.kill_agent()
        await here.mac.reboot()
        here.mac.start_agent()  # or nobody can do anything on this Mac
        golden = next(vm for vm in here.mac.vms() if vm != "ci-job-1")
        assert (await person_runs(here, "clone", golden, "theirs")).code == 0
        here.mac.table.next_pid = pid
        theirs = asyncio.create_task(here.mac.run([TART, "run", "theirs"], deadline_s=None))
        await elapse(30)
        assert await vm_pid(here, "theirs") == pid
        here.start_agent()
        await here.until_phase("job-1", FAILED, within_s=60)
        await elapse(300)
        assert "ci-job-1" not in here.mac.vms()
        assert not theirs.done()
        assert here.mac.running() == ["theirs"]


async def test_a_vm_ends_although_nobody_can_say_which_process_it_is(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I5: a `ps` that fails keeps the power button from being pressed, and must not keep the power from being cut."""

    async def fails(*_: object) -> bool:
        raise Transient("/bin/ps ended with code 137")

    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        monkeypatch.setattr(SimulatedDetached, "signal", fails)
        await delete(here)
        await here.until_gone("job-1", within_s=120)
        assert here.mac.running() == []


async def test_a_vm_whose_journal_is_lost_is_asked_by_the_process_that_runs_it_now(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock) as here:
        here.start_agent()
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        pid = await vm_pid(here)
        await here.kill_agent()
        for entry in (tmp_path / "state").rglob("*.json"):
            entry.unlink()
        here.start_agent()
        await elapse(60)
        await delete(here)
        await here.until_gone("job-1", within_s=120)
        assert here.mac.running() == []
        assert ("signal", (str(pid), str(int(POWER_BUTTON)))) in {(call.verb, call.argv) for call in here.mac.calls}
