"""The life of a guest, second by second, on virtual time."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.disk_image import GB
from applecart.sim.tart.guest_life import Running, read_running, running_file
from applecart.sim.tart.json_file import save
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.store import DISK
from applecart.tart.mac import Ended
from tests.sim.tart.sim_tart import SimTart, in_process
from tests.virtual_time import elapse


@pytest.fixture
async def tart(tmp_path: Path, clock: Clock) -> SimTart:
    tart = in_process(tmp_path, clock)
    await tart.out("create", "v")
    return tart


@pytest.fixture
async def mac(tart: SimTart) -> SimulatedMac:
    assert isinstance(tart.mac, SimulatedMac)
    return tart.mac


async def test_a_guest_says_that_it_lives_so_that_a_followed_log_moves(tart: SimTart, tmp_path: Path) -> None:
    log = tmp_path / "status" / "runner.log"
    log.parent.mkdir()
    tart.rules({"runs_s": 100, "log": ["hello"]})
    run, _, address = await tart.boot("v", "--dir", f"status:{log.parent}")
    assert log.read_text().splitlines() == [f"v is up at {address}", "hello"]
    await elapse(65)
    assert [line.split(" ", 1)[1] for line in log.read_text().splitlines()[2:]] == ["still working", "still working"]
    end = await run.wait()
    assert end.at is not None
    assert log.read_text().splitlines()[-1] == "the work is done"
    reported = (log.parent / "runner-rc").stat().st_mtime
    assert timedelta(seconds=end.at.timestamp() - reported) == timedelta(seconds=2)  # then it halts


async def test_a_guest_that_is_asked_to_stop_reports_no_exit_code(tart: SimTart, mac: SimulatedMac, tmp_path: Path) -> None:
    (tmp_path / "status").mkdir()
    run, log, _ = await tart.boot("v", "--dir", f"status:{tmp_path / 'status'}")
    assert run.pid is not None
    mac.signal(run.pid, signal.SIGUSR2)
    assert (await run.wait()).code == 0
    assert log.read_text() == "guest has stopped the virtual machine\n"
    assert not (tmp_path / "status" / "runner-rc").exists()


async def test_a_guest_can_be_stopped_while_it_boots_and_while_it_waits_for_an_address(tart: SimTart, clock: Clock) -> None:
    for name, value, after_s in (("boot_s", 300, 10), ("never_gets_ip", True, 100)):
        tart.rules({name: value})
        run, _ = await tart.start("v")
        await elapse(after_s)
        assert run.pid is not None
        tart.mac.signal(run.pid, signal.SIGUSR2)
        before = clock.monotonic()
        assert (await run.wait()).code == 0
        assert clock.monotonic() - before < 5


async def test_a_guest_that_boots_answers_nobody_yet(tart: SimTart) -> None:
    tart.rules({"boot_s": 300})
    await tart.start("v")
    await elapse(10)
    assert b"Guest Agent" in (await tart.run("exec", "v", "true")).err
    assert (await tart.run("ip", "v")).code == 1


async def test_a_booted_disk_is_a_used_one_with_blocks_of_its_own(tart: SimTart, mac: SimulatedMac) -> None:
    await tart.out("clone", "v", "copy")
    free = mac.disk(tart.home).free_bytes
    await tart.boot("copy")
    assert free - mac.disk(tart.home).free_bytes == 2 * GB
    assert [boot.vm for boot in mac.boots] == ["copy"]
    assert (mac.store.vms / "copy" / DISK).exists()


async def test_what_a_killed_run_left_behind_is_not_taken_for_the_next_one(tart: SimTart, mac: SimulatedMac) -> None:
    """A pid may be somebody else's by now, and `stop` would signal them."""
    save(running_file(mac.store, "v"), Running(pid=1, address="192.168.64.9", answers=True))
    assert (await tart.run("stop", "v")) == Ended(0)
    assert (await tart.run("exec", "v", "true")).code == 2
    run, _ = await tart.start("v")
    await elapse(1)
    found = read_running(mac.store, "v")
    assert found is not None
    assert (found.pid, found.answers) == (run.pid, False)


async def test_a_suspended_vm_does_not_run(tart: SimTart, mac: SimulatedMac) -> None:
    run, _, _ = await tart.boot("v")
    await tart.out("suspend", "v")
    assert (await run.wait()).code == 0
    assert mac.running() == []


async def test_a_vm_that_is_locked_never_has_the_pid_of_the_run_before(tart: SimTart, mac: SimulatedMac) -> None:
    """Whoever saw the lock of the new run and the pid of the old one signalled a stranger."""
    seen: list[Running | None] = []

    class Watched(Lock):
        def try_take(self) -> bool:
            taken = super().try_take()
            if taken and mac.store.is_running("v"):
                seen.append(read_running(mac.store, "v"))
            return taken

    save(running_file(mac.store, "v"), Running(pid=1, address="192.168.64.9", answers=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("applecart.sim.tart.running.Lock", Watched)
        await tart.start("v")
        await elapse(1)
    assert seen == [None]


@pytest.mark.parametrize("ends", ["halt", "kill"])
async def test_a_deleted_vm_leaves_nothing_of_its_run_behind(ends: str, tart: SimTart, mac: SimulatedMac) -> None:
    run, _, _ = await tart.boot("v")
    await tart.out("exec", "v", "/sbin/shutdown", "-h", "now")
    assert run.pid is not None
    if ends == "kill":
        mac.signal(run.pid, signal.SIGKILL)
    await run.wait()
    await tart.out("delete", "v")
    assert list((mac.store.sim / "running").iterdir()) == []


@pytest.mark.parametrize(
    ("ci", "option", "says"), [("1", "--graphics", True), ("", "--no-graphics", True), ("", "--graphics", False)]
)
async def test_the_address_of_a_screen_is_said_only_where_nobody_could_see_a_viewer(
    ci: str, option: str, says: bool, tart: SimTart, mac: SimulatedMac, tmp_path: Path
) -> None:
    """Tart opens a viewer on the host's screen instead, unless CI is set or there are no graphics."""
    words = ["/usr/local/bin/tart", "run", "v", "--vnc-experimental", option]
    await mac.start(words, folder=tmp_path / "vnc", log=tmp_path / "log", env={"CI": ci} if ci else {})
    await elapse(1)
    text = (tmp_path / "log").read_text()
    assert text.startswith("VNC server is running at vnc://:" if says else "Opening vnc://:")
    assert ("VNC server is running at" in text) is says
