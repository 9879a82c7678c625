"""Half a VM: how one comes about, and what Tart says of it.

Tart removes a VM file by file, so whoever ends a `delete` in the middle (a deadline, a crash, a power cut) leaves what was not
removed yet. Such a folder is no VM for `list`, and every other command has words for it that do not say "does not exist".
"""

import asyncio
import signal
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.errors import DeadlineExceeded
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.store import CONFIG, DISK, NVRAM
from applecart.tart.driver import Tart
from applecart.tart.failures import TartFailed, VmMissing
from applecart.tart.mac import Ended
from applecart.tart.marks import MARK_FILE
from tests.sim.tart.sim_tart import SimTart, in_process
from tests.virtual_time import elapse

MISSING_FILES = b"VM is missing some of its files (config.json, disk.img or nvram.bin)\n"
REMOVED_IN_TURN = [MARK_FILE, CONFIG, DISK, NVRAM]


@pytest.fixture
async def tart(tmp_path: Path, clock: Clock) -> SimTart:
    tart = in_process(tmp_path, clock)
    await tart.out("create", "v")
    (tart.home / "vms" / "v" / MARK_FILE).write_text("mark")
    return tart


@pytest.fixture
async def mac(tart: SimTart) -> SimulatedMac:
    assert isinstance(tart.mac, SimulatedMac)
    return tart.mac


def left(tart: SimTart) -> list[str]:
    folder = tart.home / "vms" / "v"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def test_a_delete_goes_file_by_file_and_the_mark_goes_first(tart: SimTart) -> None:
    deleting = asyncio.create_task(tart.run("delete", "v"))
    seen = [left(tart)]
    while not deleting.done():
        await elapse(0.01)
        if left(tart) != seen[-1]:
            seen.append(left(tart))
    assert seen == [REMOVED_IN_TURN[number:] for number in range(5)]
    assert deleting.result() == Ended(0)


async def test_a_power_cut_in_the_middle_of_a_delete_leaves_half_a_vm(tart: SimTart, mac: SimulatedMac) -> None:
    deleting = asyncio.create_task(tart.run("delete", "v"))
    while left(tart) != [DISK, NVRAM]:
        await elapse(0.01)
    await mac.reboot()
    assert (await deleting).code == 128 + signal.SIGKILL
    await elapse(60)
    assert left(tart) == [DISK, NVRAM]


@pytest.mark.parametrize("kind", ["crash", "fail", "hang"])
async def test_a_fault_during_a_delete_leaves_half_a_vm(kind: str, tart: SimTart) -> None:
    tart.faults({"on": "delete", "vm": "v", "kind": kind, "when": "during"})
    if kind == "hang":
        with pytest.raises(DeadlineExceeded):
            await tart.run("delete", "v", deadline_s=300)
    else:
        assert (await tart.run("delete", "v")).code == {"crash": 128 + signal.SIGTRAP, "fail": 1}[kind]
    assert left(tart) == [CONFIG, DISK, NVRAM]


async def test_a_vm_that_is_being_deleted_cannot_be_started(tart: SimTart) -> None:
    tart.faults({"on": "delete", "kind": "slow", "seconds": 100, "when": "during"})
    deleting = asyncio.create_task(tart.run("delete", "v"))
    await elapse(10)
    assert (await tart.run("run", "v")).err == b'VM "v" is already running!\n'
    assert (await deleting).code == 0


@pytest.mark.parametrize("file", [CONFIG, DISK, NVRAM])
async def test_every_command_says_that_files_are_missing(file: str, tart: SimTart) -> None:
    (tart.home / "vms" / "v" / file).unlink()
    for argv in (
        ["get", "v"],
        ["stop", "v"],
        ["exec", "v", "true"],
        ["ip", "v"],
        ["clone", "v", "w"],
        ["set", "v"],
        ["suspend", "v"],
    ):
        assert await tart.run(*argv) == Ended(1, err=MISSING_FILES), argv
    assert await tart.run("run", "v") == Ended(1, err=b"Error: " + MISSING_FILES)
    assert await tart.out("list", "-q") == ""


@pytest.mark.parametrize(("file", "is_deleted"), [(CONFIG, False), (DISK, True), (NVRAM, True)])
async def test_a_delete_asks_for_the_configuration_only(file: str, is_deleted: bool, tart: SimTart) -> None:
    """Without it there is nothing to lock, and the rest stays for ever."""
    (tart.home / "vms" / "v" / file).unlink()
    ended = await tart.run("delete", "v")
    assert (left(tart) == []) is is_deleted
    assert ended == (Ended(0) if is_deleted else Ended(2, err=b'the specified VM "v" does not exist\n'))


@pytest.mark.parametrize("file", [CONFIG, DISK, NVRAM])
async def test_the_driver_does_not_take_half_a_vm_for_a_missing_one(
    file: str, tart: SimTart, mac: SimulatedMac, clock: Clock
) -> None:
    """A clone would replace it, and a mark could be written where no VM is."""
    (tart.home / "vms" / "v" / file).unlink()
    driver = Tart(mac, "/usr/local/bin/tart", tart.home, clock)
    for command in (driver.get("v"), driver.ip("v"), driver.set("v", cpu=4), driver.clone("v", "w")):
        with pytest.raises(TartFailed, match="missing some of its files") as caught:
            await command
        assert not isinstance(caught.value, VmMissing)
    driver.close()
