"""A simulated Mac: the verbs of a Mac on virtual time, and an agent that dies while its programs live on."""

import asyncio
import signal
from pathlib import Path

import pytest

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded, Unreachable
from applecart.sim.mac import Call, SimulatedMac
from applecart.sim.tart.disk_image import GB
from applecart.sim.tart.json_file import save
from applecart.tart.failures import AlreadyStarted
from applecart.tart.mac import Ended, Mac
from applecart.tart.running import running_vms
from tests.virtual_time import elapse

TART = "/usr/local/bin/tart"
SESSION = ["sudo", "-n", "launchctl", "print", "gui/501"]
KICK = ["sudo", "-n", "launchctl", "kickstart", "-k", "system/com.apple.loginwindow"]


@pytest.fixture
async def mac(tmp_path: Path, clock: Clock) -> SimulatedMac:
    mac = SimulatedMac(tmp_path / "tart", clock)
    await mac.run([TART, "create", "v"], deadline_s=60)
    mac.calls.clear()
    return mac


async def tart(mac: Mac, *argv: str, deadline_s: float | None = None) -> Ended:
    return await mac.run([TART, *argv], deadline_s=deadline_s)


async def has_session(mac: Mac) -> bool:
    return b"session = Aqua" in (await mac.run(SESSION, deadline_s=10)).out


async def test_it_is_a_mac(mac: SimulatedMac) -> None:
    seen: Mac = mac
    assert (await seen.run(["/usr/bin/sw_vers", "-productVersion"], deadline_s=10)).out == b"15.5\n"
    with pytest.raises(BadInput, match="no such program"):
        await seen.run(["/usr/bin/nothing"], deadline_s=10)
    with pytest.raises(BadInput):
        await seen.run([], deadline_s=10)


async def test_a_run_that_is_cancelled_or_late_is_killed(mac: SimulatedMac) -> None:
    with pytest.raises(DeadlineExceeded, match="did not end within 5 s"):
        await tart(mac, "pull", "ghcr.io/a/b:1", deadline_s=5)
    assert mac.table.all() == []
    pulling = asyncio.create_task(tart(mac, "pull", "ghcr.io/a/b:1"))
    await elapse(5)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert mac.table.all() == []


async def test_a_power_cut_right_after_a_start_ends_what_was_started(mac: SimulatedMac, tmp_path: Path) -> None:
    async def cut(call: Call) -> None:
        if call.verb == "start":
            await mac.reboot()

    mac.after_call = cut
    async with asyncio.timeout(60):
        run = await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
        assert (await run.wait()).code is None
    assert mac.table.all() == []


async def test_a_session_that_is_killed_at_once_has_ended_and_so_have_its_streams(mac: SimulatedMac) -> None:
    killed, cut_off = await mac.open([TART, "list"]), await mac.open([TART, "list"])
    async with asyncio.timeout(60):
        await killed.kill()
        await mac.reboot()
        assert await cut_off.read_out() == b""
        assert await cut_off.wait() == 137
    assert mac.table.all() == []


async def test_something_starts_once_per_folder_and_is_found_again(mac: SimulatedMac, tmp_path: Path, clock: Clock) -> None:
    folder, log = tmp_path / "run", tmp_path / "log"
    started = await mac.start([TART, "run", "v"], folder=folder, log=log)
    with pytest.raises(AlreadyStarted):
        await mac.start([TART, "run", "v"], folder=folder, log=log)
    assert running_vms(await mac.processes(), "tart").keys() == {"v"}
    again = await mac.adopt(folder)
    assert again is not None
    assert again.pid == started.pid is not None
    await elapse(30)
    stopped_at = clock.now()
    await tart(mac, "stop", "v")
    end = await again.wait()
    assert (end, end.code) == (await started.wait(), 0)
    assert end.at is not None
    assert 0 <= (end.at - stopped_at).total_seconds() < 1  # the file's own time is virtual too
    assert len(mac.boots) == 1


async def test_a_folder_that_was_adopted_empty_never_starts_anything(mac: SimulatedMac, tmp_path: Path) -> None:
    assert await mac.adopt(tmp_path / "run") is None
    with pytest.raises(AlreadyStarted):
        await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    assert mac.boots == []


async def test_an_end_that_nobody_recorded_reads_as_unknown(mac: SimulatedMac, tmp_path: Path) -> None:
    run = await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    await elapse(10)
    supervisor = int((tmp_path / "run" / "started" / "supervisor").read_text())
    assert mac.signal(supervisor, signal.SIGKILL)
    await elapse(10)
    assert mac.running() == ["v"]  # its program lives on
    await mac.reboot()
    assert mac.running() == []
    end = await run.wait()
    assert (end.code, end.at) == (None, None)
    found = await mac.adopt(tmp_path / "run")
    assert found is not None
    assert await found.wait() == end


async def test_every_boot_of_a_disk_is_counted(mac: SimulatedMac, tmp_path: Path) -> None:
    for number in (1, 2):
        await mac.start([TART, "run", "v"], folder=tmp_path / f"run-{number}", log=tmp_path / "log")
        await elapse(10)
        await tart(mac, "stop", "v")
    first, second = mac.boots
    assert (first.vm, first.disk, first.times) == ("v", second.disk, 1)
    assert second.times == 2


async def test_calls_are_kept_and_hooks_see_them(mac: SimulatedMac) -> None:
    seen: list[str] = []

    async def before(call: Call) -> None:
        seen.append(f"before {call.tart or call.verb}")

    async def after(call: Call) -> None:
        seen.append(f"after {call.tart or call.verb}")

    mac.before_call, mac.after_call = before, after
    await tart(mac, "list")
    await mac.processes()
    mac.signal(1, 0)
    assert seen == ["before list", "after list", "before processes", "after processes"]
    assert [call.verb for call in mac.calls] == ["run", "processes", "signal"]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_agent_killed_at_a_call_does_nothing_more(mac: SimulatedMac, moment: str) -> None:
    """What its `finally` blocks still try has no effect, as after `kill -9`."""

    async def kill(call: Call) -> None:
        mac.kill_agent()

    async def agent() -> None:
        try:
            await tart(mac, "clone", "v", "copy")
        finally:
            mac.signal(next((it.pid for it in mac.table.all()), 0), signal.SIGKILL)
            await tart(mac, "delete", "v")

    mac.before_call, mac.after_call = (kill, None) if moment == "before" else (None, kill)
    living = asyncio.create_task(agent())
    await elapse(10)
    living.cancel()
    await elapse(10)
    living.cancel()
    with pytest.raises(asyncio.CancelledError):
        await living
    assert mac.vms() == (["v"] if moment == "before" else ["copy", "v"])
    mac.before_call = mac.after_call = None
    mac.start_agent()
    assert (await tart(mac, "list", "-q")).out.split() == [name.encode() for name in mac.vms()]


async def test_programs_of_a_dead_agent_live_on_until_they_talk_to_it(mac: SimulatedMac, tmp_path: Path) -> None:
    run = await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    tasks = [asyncio.create_task(tart(mac, *argv)) for argv in (["clone", "v", "copy"], ["pull", "ghcr.io/a/b:1"])]
    session = await mac.open([TART, "exec", "v", "sleep", "5"])
    await elapse(0.1)
    mac.kill_agent()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await session.kill()
    await elapse(30)
    assert mac.vms() == ["copy", "v"]  # a clone says nothing, so it came to its end
    assert mac.running() == ["v"]
    assert [process.argv[1] for process in mac.table.all()] == ["-c", "run"]  # the pull had something to say
    mac.start_agent()
    await tart(mac, "stop", "v")
    assert (await run.wait()).code == 0


async def test_a_session_on_the_screen_comes_back_by_a_kick_unless_auto_login_is_sealed(mac: SimulatedMac) -> None:
    """Incident 39: a dead loginwindow cannot be signalled by name, and a sealed password logs nobody in."""
    assert await has_session(mac)
    mac.lose_gui_session()
    mac.loginwindow_is_dead = True
    assert not await has_session(mac)
    assert (await mac.run(["sudo", "-n", "killall", "-HUP", "loginwindow"], deadline_s=10)).code == 1
    assert (await mac.run(KICK, deadline_s=10)).code == 0
    await elapse(10)
    assert await has_session(mac)
    mac.seal_auto_login()
    await mac.run(KICK, deadline_s=10)
    await elapse(60)
    assert not await has_session(mac)


async def test_a_kick_ends_the_vms_of_the_session(mac: SimulatedMac, tmp_path: Path) -> None:
    run = await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    await elapse(10)
    await mac.run(KICK, deadline_s=10)
    assert (await run.wait()).code == 137


async def test_the_disk_is_the_simulated_one(mac: SimulatedMac) -> None:
    disk = mac.disk(Path("/"))
    assert disk.total_bytes == 494 * GB
    assert disk.free_bytes == 494 * GB - 60 * GB - GB
    mac.fill_disk(5 * GB)
    assert mac.disk(Path("/")).free_bytes == 5 * GB


async def test_a_guest_serves_its_ports_while_it_runs(mac: SimulatedMac, tmp_path: Path) -> None:
    save(mac.store.sim / "guests.json", [{"serves": {"8080": "ok"}}])
    await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    address = (await tart(mac, "ip", "v", "--wait", "60")).out.decode().strip()
    for port, body in ((9091, b"guest_up"), (8080, b"ok")):
        connection = await mac.connect(address, port, deadline_s=5)
        await connection.write(b"GET /metrics HTTP/1.1\r\nHost: guest\r\n\r\n")
        answer = b""
        while piece := await connection.read():
            answer += piece
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body in answer
        await connection.aclose()
    with pytest.raises(Unreachable):
        await mac.connect(address, 22, deadline_s=5)
    await tart(mac, "stop", "v")
    with pytest.raises(DeadlineExceeded):
        await mac.connect(address, 9091, deadline_s=5)


async def test_a_guest_whose_network_is_dead_has_an_address_and_answers_nobody(mac: SimulatedMac, tmp_path: Path) -> None:
    """Incident 41: Ready, with an address, and cut off for hours."""
    save(mac.store.sim / "guests.json", [{"network_is_dead": True}])
    await mac.start([TART, "run", "v"], folder=tmp_path / "run", log=tmp_path / "log")
    address = (await tart(mac, "ip", "v", "--wait", "60")).out.decode().strip()
    with pytest.raises(DeadlineExceeded):
        await mac.connect(address, 9091, deadline_s=5)


async def test_two_macs_share_a_registry_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    env = {"APPLECART_SIM_REGISTRY": str(tmp_path / "registry.json")}
    one, two = (SimulatedMac(tmp_path / name, clock, name=name, env=env) for name in ("one", "two"))
    digest = one.registry.move("ghcr.io/a/b:1")
    for mac in (one, two):
        await tart(mac, "pull", "ghcr.io/a/b:1")
        assert digest in (await tart(mac, "fqn", "ghcr.io/a/b:1")).out.decode()
    await tart(one, "create", "v")
    assert (one.vms(), two.vms()) == (["v"], [])
