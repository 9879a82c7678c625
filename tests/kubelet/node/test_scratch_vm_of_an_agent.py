"""A whole agent with `--scratch-vm-image`: the check says the truth about the host, and its VM never outlives its use.

The agent is killed before and after every call of the scratch VM's life, and during every command of Tart; the calls are
counted in a run that nobody disturbs. What the check itself finds out is held in `test_scratch_vm.py`.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import pytest

from applecart.api.conditions import HOST_BUSY, READY
from applecart.api.nodes import NodeCondition
from applecart.api.pods import RUNNING, SUCCEEDED
from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.kube.errors import NotFound
from applecart.kubelet.node.conditions import CheckState
from applecart.sim.mac import Call
from applecart.sim.tart.faults import Fault
from applecart.sim.tart.guest_rules import Rule
from tests.kubelet.incidents.scene import GB, TART, go_wrong, guests, image_bytes, job, node_condition, scene
from tests.kubelet.killing import Kill, Moment
from tests.kubelet.world import IMAGE, World, vm_pod
from tests.soak import sample
from tests.virtual_time import elapse

FLAG = f"--scratch-vm-image={IMAGE}"
VM = "applecart-scratch-mac-1"
RESTART_AFTER_S = 10.0  # what launchd waits before it starts the agent again
SOON_S = 1200.0  # a check, and one more after a retry
GOLDEN_PREFIX = "tuist-golden-"


async def until(holds: Callable[[], bool], within_s: float = SOON_S) -> None:
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 (as a person does)
            await asyncio.sleep(0.5)


async def until_ready_says(here: World, status: str, reason: str, within_s: float = 2 * 3600.0) -> NodeCondition:
    async with asyncio.timeout(within_s):
        while True:
            await asyncio.sleep(1)
            try:
                ready = await node_condition(here, READY)
            except NotFound:
                continue  # not registered yet
            if (ready.status, ready.reason) == (status, reason):
                return ready


def outcome(here: World) -> CheckState:
    assert here.agent is not None
    assert here.agent.registration is not None
    return next(each for each in here.agent.registration.health.outcomes if each.name == "scratch-vm")


def was_well(here: World) -> bool:
    return here.agent is not None and here.agent.registration is not None and outcome(here).was_well


def has_fault(here: World) -> bool:
    return here.agent is not None and here.agent.registration is not None and bool(outcome(here).fault)


def is_gone(here: World) -> bool:
    files = [file for file in (here.folder / "state" / "scratch").rglob("*") if file.is_file()]
    return not here.mac.running() and not files and VM not in here.mac.vms()


async def _lived(folder: Path, kill: Kill) -> None:
    """An agent that may die once in the life of its scratch VM, and the next one; the host is as if nothing had been."""
    clock = VirtualClock(asyncio.get_running_loop())
    async with scene(folder, clock, FLAG) as here:
        here.start_agent(kill)
        await until(lambda: kill.is_dead or was_well(here))
        if kill.is_dead:
            await here.agent_died()
            await elapse(RESTART_AFTER_S)
            here.start_agent()
            await until(lambda: was_well(here))
        await until(lambda: is_gone(here))
        assert all(vm.startswith(GOLDEN_PREFIX) for vm in here.mac.vms())
        await elapse(31)  # one more look at the host
        assert (await node_condition(here, READY)).status == "True"
        assert (await node_condition(here, HOST_BUSY)).status == "False"


def _life_of_the_vm(calls: list[str], moment: Moment) -> list[int]:
    """The numbers of the calls from its intent to its end, without those that only repeat the one before."""
    first, last = calls.index("write intent.json") + 1, calls.index("remove intent.json") + 1
    fresh = [number for number in range(first, last + 1) if calls[number - 1] != calls[number - 2]]
    return [number for number in fresh if moment != "during" or calls[number - 1].startswith(TART)]


@pytest.mark.parametrize("moment", get_args(Moment))
def test_an_agent_that_is_killed_anywhere_in_the_life_of_its_scratch_vm_leaves_none(moment: Moment, tmp_path: Path) -> None:
    """A VM that was left took one of the host's two places for ever: it kept the host from being idle, and so from the check
    that would have removed it."""

    def lived(folder: Path, kill: Callable[[], Kill]) -> list[str]:
        async def run() -> list[str]:
            one = kill()
            await _lived(folder, one)
            return one.calls

        return run_virtual(run())

    prepared = tmp_path / "prepared"
    lived(prepared, Kill)  # with the golden on the host
    calls = lived(_copy(prepared, tmp_path / "undisturbed"), Kill)
    points = _life_of_the_vm(calls, moment)
    assert len(points) > (3 if moment == "during" else 10), calls
    for number in sample(points, 5, offset=len(moment)):
        try:
            lived(_copy(prepared, tmp_path / str(number)), lambda: Kill(number, moment))  # noqa: B023
        except BaseException as error:
            raise AssertionError(f"killed {moment} call {number} of {len(calls)}, {calls[number - 1]!r}") from error


def _copy(prepared: Path, folder: Path) -> Path:
    shutil.copytree(prepared, folder, symlinks=True)
    return folder


async def test_an_agent_that_is_told_to_end_takes_its_scratch_vm_with_it(tmp_path: Path, clock: Clock) -> None:
    """Nobody may come after it: an agent is also stopped to be taken off its host."""
    async with scene(tmp_path, clock, FLAG) as here:
        guests(here, Rule(vm=VM, boot_s=300.0))
        here.start_agent()
        await until(lambda: VM in here.mac.running())
        await here.stop_agent()
        assert is_gone(here)


async def test_an_agent_that_is_told_to_end_does_not_wait_for_a_tart_that_hangs(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock, FLAG) as here:
        guests(here, Rule(vm=VM, boot_s=300.0))
        here.start_agent()
        await until(lambda: VM in here.mac.running())
        go_wrong(here, Fault(on="stop", kind="hang", times=None))
        began_s = clock.monotonic()
        await here.stop_agent()
        assert clock.monotonic() - began_s < 20  # launchd kills it then
        go_wrong(here)
        here.flags.clear()
        here.start_agent()
        await until(lambda: is_gone(here))


async def test_a_scratch_vm_that_runs_into_its_deadline_goes(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock, FLAG) as here:
        guests(here, Rule(vm=VM, never_gets_ip=True))
        slow_clone = Fault(on="clone", kind="slow", seconds=295.0, vm=VM, times=1)
        go_wrong(here, slow_clone, Fault(on="ip", kind="slow", seconds=4.0, vm=VM, times=None))
        here.start_agent()
        await until(lambda: VM in here.mac.running())
        await until(lambda: is_gone(here))
        await until_ready_says(here, "False", "ScratchVmFailed")


async def test_a_scratch_vm_that_could_not_be_removed_goes_later_although_a_pod_has_come(tmp_path: Path, clock: Clock) -> None:
    """Pods need both of the host's places."""
    async with scene(tmp_path, clock, FLAG) as here:
        go_wrong(here, Fault(on="delete", kind="fail", text="the disk is sleepy", vm=VM, times=None))
        here.start_agent()
        await until(lambda: has_fault(here))
        await here.create(vm_pod())
        await here.until_phase("job-1", RUNNING)
        assert VM in here.mac.vms()
        go_wrong(here)
        await until(lambda: VM not in here.mac.vms())
        assert here.mac.running() == ["ci-job-1"]


async def test_a_host_on_which_only_a_scratch_vm_runs_may_be_rebooted(tmp_path: Path, clock: Clock) -> None:
    """One that cannot be ended would otherwise forbid what cures it."""
    async with scene(tmp_path, clock, FLAG) as here:
        guests(here, Rule(vm=VM, boot_s=300.0))
        here.start_agent()
        await until(lambda: VM in here.mac.running())
        await elapse(61)
        assert here.mac.running() == [VM]
        assert (await node_condition(here, HOST_BUSY)).status == "False"


async def test_a_slow_pull_of_the_scratch_image_is_not_the_hosts_fault(tmp_path: Path, clock: Clock) -> None:
    """40 GB at 80 Mbit/s take more than an hour: healthy hosts were out of service after 35 minutes, and each attempt began
    anew."""
    async with scene(tmp_path, clock, FLAG) as here:
        image_bytes(here, 40 * GB)
        go_wrong(here, Fault(on="pull", kind="slow", bytes_per_s=10**7, times=None))
        here.start_agent()
        await until(lambda: was_well(here) or has_fault(here), within_s=2 * 3600)
        assert was_well(here)
        assert len([call for call in here.mac.calls if call.tart == "pull"]) == 1


async def test_the_pull_of_the_scratch_image_makes_way_for_a_pod_and_goes_on_later(tmp_path: Path, clock: Clock) -> None:
    """Tart pulls one image at a time from a registry: a Pod waited for hours behind an image that nobody works with."""
    scratch_image = "ghcr.io/acme/scratch:1"
    async with scene(tmp_path, clock, f"--scratch-vm-image={scratch_image}") as here:
        image_bytes(here, 40 * GB)
        go_wrong(here, Fault(on="pull", kind="slow", bytes_per_s=10**7, vm=scratch_image, times=None))
        here.start_agent()
        await elapse(600)
        assert [call.argv[-1] for call in here.mac.calls if call.tart == "pull"] == [scratch_image]
        await here.create(job(runs_s=60))
        async with asyncio.timeout(900):
            await here.until_phase("job-1", SUCCEEDED)
        await until(lambda: was_well(here) or has_fault(here), within_s=2 * 3600)
        assert was_well(here)


async def test_a_clone_that_outlives_its_agent_leaves_no_scratch_vm(tmp_path: Path, clock: Clock) -> None:
    """It landed after the next agent had looked, and was taken for somebody's VM until a person deleted it."""
    async with scene(tmp_path, clock, FLAG) as here:
        go_wrong(here, Fault(on="clone", kind="slow", seconds=120.0, vm=VM, times=1))
        cloning = asyncio.Event()

        async def look(call: Call) -> None:
            if call.tart == "clone" and VM in call.argv:
                cloning.set()

        here.mac.before_call = look
        here.start_agent()
        await asyncio.wait_for(cloning.wait(), SOON_S)
        await elapse(30)
        await here.kill_agent()
        here.start_agent()
        await until(lambda: was_well(here))
        await elapse(300)
        assert is_gone(here)


async def _registry_is_out(here: World) -> None:
    go_wrong(here, Fault(on="pull", kind="fail", text="Error: 503 service unavailable", times=None))


async def _a_pod_comes_during_a_check(here: World) -> None:
    await until(lambda: VM in here.mac.running())
    await here.create(vm_pod())


@pytest.mark.parametrize("happens", [_registry_is_out, _a_pod_comes_during_a_check])
async def test_a_host_that_cannot_boot_vms_stays_unready_while_nothing_can_be_found_out(
    happens: Callable[[World], Awaitable[None]], tmp_path: Path, clock: Clock
) -> None:
    """I11: no answer was taken for a good one, so the host was Ready five minutes after a registry failed."""
    async with scene(tmp_path, clock, "--scratch-vm-image=ghcr.io/acme/runner:latest") as here:
        guests(here, Rule(never_gets_ip=True))
        here.start_agent()
        await until_ready_says(here, "False", "ScratchVmFailed")
        await happens(here)
        for _ in range(15):
            await elapse(100)
            ready = await node_condition(here, READY)
            assert (ready.status, ready.reason) == ("False", "ScratchVmFailed")


async def test_a_host_that_cannot_boot_vms_stays_unready_over_a_restart_of_its_agent(tmp_path: Path, clock: Clock) -> None:
    """I11: a check every hour, and two failures needed, made Ready of a broken host for half an hour after every restart."""
    async with scene(tmp_path, clock, FLAG) as here:
        guests(here, Rule(never_gets_ip=True))
        here.start_agent()
        await until_ready_says(here, "False", "ScratchVmFailed")
        await here.kill_agent()
        here.start_agent()
        for _ in range(20):
            await elapse(60)
            assert (await node_condition(here, READY)).reason == "ScratchVmFailed"
        guests(here)
        await until_ready_says(here, "True", "TartKubeletReady")


async def test_the_golden_of_a_scratch_vm_is_kept_from_the_collector_while_it_is_cloned(tmp_path: Path, clock: Clock) -> None:
    async with scene(tmp_path, clock, FLAG) as here:
        busy: list[frozenset[str]] = []

        async def look(call: Call) -> None:
            if call.tart == "clone" and VM in call.argv:
                assert here.agent is not None
                busy.append(here.agent.host.goldens.busy.vms)

        here.mac.before_call = look
        here.start_agent()
        await until(lambda: bool(busy))
        (vms,) = busy
        assert [vm for vm in vms if vm.startswith(GOLDEN_PREFIX)]
