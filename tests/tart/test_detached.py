import asyncio
import errno
import gc
import os
import shutil
import signal
import stat
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from applecart.errors import BadInput, Transient
from applecart.tart import detached
from applecart.tart.failures import AlreadyStarted
from applecart.tart.known_processes import KnownProcesses
from applecart.tart.mac import Mac, RunEnd, Session
from applecart.tart.this_mac import ThisMac
from tests.tart.real_processes import until, written

pytestmark = pytest.mark.real_time

# Its folder may go before it looks again: then its test has ended, and so does it.
WAITS = 'echo "$$ runs" ; while [ -d "${1%/*}" ] && [ ! -e "$1" ]; do sleep 0.02; done; exit "$2"'


FAILING_PS = ["kill -KILL $$", "echo 'ps: out of memory' >&2; exit 1", "exit 0", "exit 3"]


class Place:
    """A run folder, its log, and a program in it that waits to be let go."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "run 1"  # names hold blanks on a Mac
        self.log = root / "vm.log"
        self.gate = root / "it's $HOME; `gate`"
        self.mac: Mac = ThisMac()

    def waits(self, code: int = 0) -> list[str]:
        return ["/bin/sh", "-c", WAITS, "sh", str(self.gate), str(code)]

    def open_gate(self) -> None:
        self.gate.touch()

    async def pid(self) -> int:
        return int(await written(self.folder / "pid"))

    async def logged(self, text: str) -> None:
        await until(lambda: self.log.exists() and text in self.log.read_text())

    def has_ended(self) -> bool:
        return (self.folder / "exit").exists()


def with_ps(folder: Path, does: str) -> dict[str, str]:
    """A PATH on which `ps` is a script of ours."""
    folder.mkdir(exist_ok=True)
    (folder / "ps").write_text(f"#!/bin/sh\n{does}\n")
    (folder / "ps").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


async def read_pid_of(session: Session) -> str:
    """Of a program that says `<pid> runs`."""
    said = b""
    while b" runs" not in said:
        said += await session.read_out()
    return said.decode().split()[0]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path)
    yield place
    place.open_gate()


async def test_a_detached_program_has_a_session_of_its_own_and_no_nohup(place: Place) -> None:
    """Incidents 17 and 18: VMs died with the agent's process group, and `nohup` fails where there is no terminal."""
    run = await place.mac.start(place.waits(), folder=place.folder, log=place.log)
    pid = await place.pid()
    assert run.pid == pid
    assert os.getsid(pid) not in (os.getsid(0), pid)  # the supervisor's
    assert os.getpgid(pid) != os.getpgid(0)
    ps = (await place.mac.run(["ps", "-o", "tty=,command=", "-p", str(pid)], deadline_s=30)).out.decode()
    assert ps.split()[0].startswith("?")
    assert "nohup" not in ps


async def test_its_end_and_the_time_of_it_are_known_at_once_to_the_agent_that_started_it(place: Place) -> None:
    run = await place.mac.start(place.waits(5), folder=place.folder, log=place.log)
    place.open_gate()
    end = await run.wait()
    assert end.code == 5
    assert end.at
    assert abs(datetime.now(UTC) - end.at) < timedelta(minutes=1)
    assert await run.wait() == end


async def test_it_outlives_the_agent_and_its_end_is_recorded_when_nobody_looks(place: Place) -> None:
    """Weakness 9: a VM that ended while the agent was away was run again, or its crash was called a success."""
    await place.mac.start(place.waits(9), folder=place.folder, log=place.log)
    pid = await place.pid()
    place.mac = ThisMac()  # the agent is gone with all it knew
    gc.collect()
    os.kill(pid, 0)
    place.open_gate()
    await until(place.has_ended)
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    assert (await adopted.wait()).code == 9


async def test_an_adopted_program_that_runs_is_watched_to_its_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.02)
    await place.mac.start(place.waits(3), folder=place.folder, log=place.log)
    pid = await place.pid()
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    assert adopted.pid == pid
    end = asyncio.create_task(adopted.wait())
    await place.logged("runs")
    assert not end.done()
    place.open_gate()
    assert (await end).code == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGUSR2])
async def test_a_signal_reaches_the_program_and_is_recorded_as_128_and_its_number(place: Place, number: int) -> None:
    """`tart stop` sends SIGINT: a shell that puts its program in the background would make it deaf to that."""
    run = await place.mac.start(place.waits(), folder=place.folder, log=place.log)
    await place.logged("runs")
    assert await run.signal(number)
    assert (await run.wait()).code == 128 + number
    assert not await run.signal(number)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
async def test_a_supervisor_outlives_what_a_shutdown_sends_to_everybody(
    place: Place, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """It must live to record how its program took it."""
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.02)
    await place.mac.start(place.waits(4), folder=place.folder, log=place.log)
    await place.logged("runs")
    os.kill(int((place.folder / "started" / "supervisor").read_text()), number)
    place.open_gate()
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    assert (await adopted.wait()).code == 4


async def test_a_program_is_recognised_by_an_agent_that_lives_in_another_time_zone(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice a year every host is in another zone than before: its VMs would read as gone."""
    monkeypatch.setenv("TZ", "EAST-11")
    await place.mac.start(place.waits(), folder=place.folder, log=place.log)
    await place.pid()
    monkeypatch.setenv("TZ", "WEST+7")
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    assert await adopted.signal(0)


async def test_a_folder_starts_one_program_ever(place: Place) -> None:
    run = await place.mac.start(["/bin/sh", "-c", "echo once"], folder=place.folder, log=place.log)
    assert (await run.wait()).code == 0
    with pytest.raises(AlreadyStarted):
        await place.mac.start(["/bin/sh", "-c", "echo twice"], folder=place.folder, log=place.log)
    assert place.log.read_text() == "once\n"


async def test_of_many_that_start_at_once_exactly_one_does(place: Place) -> None:
    starts = [place.mac.start(["/bin/sh", "-c", "echo once"], folder=place.folder, log=place.log) for _ in range(8)]
    results = await asyncio.gather(*starts, return_exceptions=True)
    runs = [it for it in results if not isinstance(it, BaseException)]
    assert len(runs) == 1
    assert all(isinstance(it, AlreadyStarted) for it in results if it is not runs[0])
    await runs[0].wait()
    assert place.log.read_text() == "once\n"


async def test_starting_and_adopting_at_once_agree_whether_it_runs(tmp_path: Path) -> None:
    """A start that the agent did not live to see may come late; whoever adopted the folder first has decided."""
    for round in range(12):
        place = Place(tmp_path)
        place.folder, place.log = tmp_path / str(round), tmp_path / f"{round}.log"
        start = asyncio.create_task(place.mac.start(["/bin/sh", "-c", "echo ran"], folder=place.folder, log=place.log))
        for _ in range(round % 6):
            await asyncio.sleep(0.002)
        adopted = await ThisMac().adopt(place.folder)
        [started] = await asyncio.gather(start, return_exceptions=True)
        if adopted:
            assert await adopted.wait() == await started.wait()  # type: ignore[union-attr]
            assert place.log.read_text() == "ran\n"
        else:
            if not isinstance(started, BaseException):  # its supervisor came first, and its program found the pid taken
                await started.wait()
            assert place.log.read_text() == ""


async def test_adopting_an_untouched_folder_makes_sure_that_nothing_ever_starts_in_it(place: Place) -> None:
    assert await place.mac.adopt(place.folder) is None
    with pytest.raises(AlreadyStarted):
        await place.mac.start(["/bin/sh", "-c", "echo late"], folder=place.folder, log=place.log)
    assert await ThisMac().adopt(place.folder) is None
    assert place.log.read_text() == ""


async def test_a_program_that_was_told_to_have_ended_does_not_start_afterwards(place: Place) -> None:
    """I4: its supervisor was killed before the program had said its pid."""
    slow = place.folder.parent / "slow"
    gate = f"touch '{slow}/asked'; while [ ! -e '{slow}/gate' ]; do sleep 0.02; done"
    env = with_ps(slow, f"{gate}; echo Mon Jan 5 04:05:06 2026")
    run = await place.mac.start(["/bin/sh", "-c", "echo ran"], folder=place.folder, log=place.log, env=env)
    await until((slow / "asked").exists)
    os.kill(int((place.folder / "started" / "supervisor").read_text()), signal.SIGKILL)
    assert await run.wait() == RunEnd(None, None)
    (slow / "gate").touch()
    while any(str(place.folder) in it.command for it in await place.mac.processes()):  # noqa: ASYNC110 (it is a process)
        await asyncio.sleep(0.01)
    assert "ran" not in place.log.read_text()


async def test_a_program_whose_folder_is_gone_has_ended(place: Place) -> None:
    run = await place.mac.start(["/bin/sh", "-c", "exit 0"], folder=place.folder, log=place.log)
    await until(place.has_ended)
    shutil.rmtree(place.folder)
    assert await run.wait() == RunEnd(None, None)


async def test_a_program_whose_supervisor_was_too_slow_never_runs(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent that adopted the folder was told that nothing runs, and may have deleted the VM since."""
    monkeypatch.setattr(detached, "PID_WITHIN_S", 0.05)
    slow = place.folder.parent / "slow"
    slow.mkdir()
    env = with_ps(slow, f"while [ ! -e '{slow}/gate' ]; do sleep 0.02; done; echo Mon Jan 5 04:05:06 2026")
    run = await place.mac.start(["/bin/sh", "-c", "echo ran"], folder=place.folder, log=place.log, env=env)
    assert await ThisMac().adopt(place.folder) is None
    (slow / "gate").touch()
    assert (await run.wait()).code == detached.NOT_OURS
    assert place.log.read_text() == ""
    assert await ThisMac().adopt(place.folder) is None


async def test_a_supervisor_that_died_before_its_program_started_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "PID_WITHIN_S", 0.05)
    (place.folder / "started").mkdir(parents=True)
    assert await place.mac.adopt(place.folder) is None


async def test_a_program_that_outlives_its_supervisor_decides_by_its_pid(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.02)
    run = await place.mac.start(place.waits(), folder=place.folder, log=place.log)
    await place.logged("runs")
    supervisor = int((place.folder / "started" / "supervisor").read_text())
    os.kill(supervisor, signal.SIGKILL)
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    ends = [asyncio.create_task(it.wait()) for it in (run, adopted)]
    done, _ = await asyncio.wait(ends, timeout=0.3)
    assert not done
    place.open_gate()
    assert await asyncio.gather(*ends) == [RunEnd(None, None)] * 2


async def test_a_pid_that_belongs_to_another_process_by_now_is_an_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.02)
    place.folder.mkdir()
    (place.folder / "started").mkdir()
    (place.folder / "pid").write_text(f"{os.getpid()}\n")
    (place.folder / "began").write_text("Mon Jan  5 04:05:06 2009\n")
    adopted = await place.mac.adopt(place.folder)
    assert adopted
    assert await adopted.wait() == RunEnd(None, None)


async def test_whoever_has_the_pid_of_a_dead_program_is_never_signalled(place: Place) -> None:
    """I7: after a power cut the pid of a dead VM was the agent's own, or another job's VM, and got the VM's power button."""
    bystander = await place.mac.open(place.waits())
    pid = await read_pid_of(bystander)
    for began in ("Mon Jan  5 04:05:06 2009\n", ""):  # before the cut; or the cut tore the file
        place.folder.mkdir(exist_ok=True)
        (place.folder / "pid").write_text(pid)
        (place.folder / "began").write_text(began)
        adopted = await place.mac.adopt(place.folder)
        assert adopted
        assert not await adopted.signal(signal.SIGUSR2)
        assert await adopted.wait() == RunEnd(None, None)
    place.open_gate()
    assert await bystander.wait() == 0
    await bystander.kill()


@pytest.mark.parametrize("does", FAILING_PS)
async def test_a_look_that_fails_is_no_end(place: Place, monkeypatch: pytest.MonkeyPatch, does: str) -> None:
    """I7: a ps that the kernel killed for memory read as the death of a VM, which was torn down under its job."""
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(detached, "EXIT_WRITTEN_WITHIN_S", 0.1)
    await place.mac.start(place.waits(6), folder=place.folder, log=place.log)
    await place.logged("runs")
    asked = place.log.with_name("asked")
    before = os.environ["PATH"]
    monkeypatch.setenv("PATH", with_ps(place.log.parent / "bad", f"echo >>'{asked}'; {does}")["PATH"])
    adopted = await ThisMac().adopt(place.folder)
    assert adopted
    end = asyncio.create_task(adopted.wait())
    await until(lambda: end.done() or (asked.exists() and asked.stat().st_size > 2))
    assert not end.done()
    with pytest.raises(Transient, match="cannot be seen"):
        await adopted.signal(signal.SIGUSR2)
    monkeypatch.setenv("PATH", before)
    place.open_gate()
    assert (await end).code == 6


async def test_a_folder_that_cannot_be_read_says_nothing(place: Place) -> None:
    """An agent out of file handles must not take its VMs for dead."""
    (place.folder / "exit").mkdir(parents=True)  # EISDIR stands for every error but "there is none"
    (place.folder / "pid").write_text("2147483646\n")
    adopted = await place.mac.adopt(place.folder)
    assert adopted
    end = asyncio.create_task(adopted.wait())
    with pytest.raises(Transient, match="cannot be read"):
        await adopted.signal(signal.SIGUSR2)
    assert not end.done()
    end.cancel()


@pytest.mark.parametrize("does", ["exit 1", "exit 0", "kill -KILL $$"])
async def test_a_program_whose_start_cannot_be_recorded_does_not_run(place: Place, does: str) -> None:
    """Without it any process that gets its pid after a reboot would count as the VM."""
    env = with_ps(place.log.parent / "bad", does)
    run = await place.mac.start(["/bin/sh", "-c", "echo ran"], folder=place.folder, log=place.log, env=env)
    assert (await run.wait()).code == detached.NOT_STARTED
    assert "ran\n" not in place.log.read_text()
    assert "its start cannot be recorded" in place.log.read_text()


async def test_nothing_is_remembered_of_a_program_that_has_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.02)
    known = KnownProcesses()
    await place.mac.start(place.waits(), folder=place.folder, log=place.log)
    await place.pid()
    adopted = await detached.adopt(place.folder, known)
    assert adopted
    end = asyncio.create_task(adopted.wait())
    await until(lambda: known.recognised)
    place.open_gate()
    await end
    assert not known.recognised


@pytest.mark.parametrize("text", ["", "x", "0x10", "\0", "9" * 5000, "é"])
async def test_a_torn_exit_or_pid_file_is_no_number(place: Place, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(detached, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(detached, "PID_WITHIN_S", 0.02)
    (place.folder / "started").mkdir(parents=True)
    (place.folder / "pid").write_text(text)
    (place.folder / "exit").write_text(text)
    adopted = await place.mac.adopt(place.folder)
    assert adopted
    assert await adopted.wait() == RunEnd(None, None)


async def test_the_log_is_appended_to_and_only_the_agent_can_read_it(place: Place) -> None:
    for number in (1, 2):
        run = await place.mac.start(
            ["/bin/sh", "-c", "echo out; echo err >&2"], folder=place.folder / str(number), log=place.log
        )
        await run.wait()
    assert place.log.read_text() == "out\nerr\n" * 2
    assert stat.S_IMODE(place.log.stat().st_mode) == 0o600


async def test_what_cannot_be_started_is_a_sentence_and_takes_nothing(place: Place) -> None:
    with pytest.raises(BadInput, match="/no/such/tart cannot be started"):
        await place.mac.start(["/no/such/tart"], folder=place.folder, log=place.log)
    with pytest.raises(Transient, match=r"the log .* cannot be opened"):
        await place.mac.start(["/bin/sh", "-c", ":"], folder=place.folder, log=place.folder / "no" / "vm.log")
    assert await place.mac.adopt(place.folder) is None


async def test_a_run_is_found_again_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I5: a VM that filled the disk could not be ended, because finding it wrote a file."""
    (tmp_path / "started").mkdir()
    (tmp_path / "pid").write_text("4242\n")

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert await detached.adopt(tmp_path, KnownProcesses()) is not None
