"""Programs that outlive the agent: started at most once per folder, and their end recorded when nobody looks.

A small shell supervisor in a session of its own (a `launchctl bootout` of the agent must not reach it, and no `nohup`, which
fails without a terminal) takes `started`, runs the program with its output in the log, and writes `exit`. The program's own
process writes `began` and takes `pid` before it becomes the program: whoever else takes `pid` first keeps it from ever running.
A program that the agent waits for is written down the same way when it holds something that others need (`run_recorded`).
Only paths and the argv are handed over, as words; nothing is pasted into the script.

The folder is the truth: an agent that comes later adopts what it finds there, and loses nothing by having been dead.
"""

import asyncio
import errno
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from applecart.errors import ApplecartError, Transient
from applecart.tart.failures import AlreadyStarted, NoSpace
from applecart.tart.known_processes import KnownProcesses, send
from applecart.tart.mac import Ended, RunEnd
from applecart.tart.programs import cannot_start, environment, expect_program, run_program

LOOK_EVERY_S = 1.0  # how late the end of a program is seen that another agent started
TAKEN_LOOK_S = 0.01  # a shell needs milliseconds to take the folder
TAKEN_WITHIN_S = 30.0  # of a host that swaps
PID_WITHIN_S = 5.0  # how long an adopting agent lets a supervisor get from `started` to `pid` before it takes `pid` itself
EXIT_LOOK_S = 0.1
EXIT_WRITTEN_WITHIN_S = 5.0  # a supervisor needs milliseconds from the end of the program to `exit`
REFUSED = 75  # the supervisor's own code when the folder is taken
NOT_OURS = 71  # the code of a program that found `pid` taken
NOT_STARTED = 72  # of one whose start could not be written down: later nobody could tell it from another with its pid
NOBODY = 0  # the pid of a program that was never started and never will be

# Signals that a shutdown sends to everybody are trapped, not ignored: an ignored one would be ignored by the program too. The
# program runs in the foreground of its shell for the same reason, and the shell keeps its own remarks out of the log.
_PROGRAM = (
    'f=$1; shift; TZ=UTC LC_ALL=C ps -o lstart= -p $$ >"$f/began" && [ -s "$f/began" ] || '
    f'{{ echo "not started: its start cannot be recorded (ps failed, or the disk is full)" >&2; exit {NOT_STARTED}; }}; '
    'echo $$ >"$f/.pid.$$" && ln "$f/.pid.$$" "$f/pid" 2>/dev/null; mine=$?; rm -f "$f/.pid.$$"; '
    f'[ $mine = 0 ] && exec "$@"; exit {NOT_OURS}'
)
_SUPERVISOR = (
    "trap : HUP INT TERM; umask 077; exec 3>&2 2>/dev/null; f=$1; p=$2; shift 2; "
    f'mkdir "$f/started" || exit {REFUSED}; echo $$ >"$f/started/supervisor"; '
    '/bin/sh -c "$p" run "$f" "$@" 2>&3 3>&-; echo $? >"$f/.exit" && mv -f "$f/.exit" "$f/exit"'
)

_DIGITS = re.compile(r"[0-9]{1,9}")


class DetachedRun:
    """What runs, or ran, in one folder."""

    def __init__(self, folder: Path, known: KnownProcesses, supervisor_ended: asyncio.Event | None = None) -> None:
        self._folder = folder
        self._known = known
        self._supervisor_ended = supervisor_ended or asyncio.Event()
        self._is_ours = supervisor_ended is not None

    @property
    def pid(self) -> int | None:
        return read_pid(self._folder) or None

    async def wait(self) -> RunEnd:
        while True:
            with suppress(ApplecartError):  # not seen is not gone
                if end := await self._end():
                    return end
            if self._supervisor_ended.is_set():  # killed, and the program lives
                await asyncio.sleep(LOOK_EVERY_S)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._supervisor_ended.wait()

    async def signal(self, number: int) -> bool:
        pid = None if recorded_end(self._folder) else self.pid
        return pid is not None and await self._known.signal(pid, self._began, number)

    @property
    def _began(self) -> str:
        return read_text(self._folder / "began")

    async def _end(self) -> RunEnd | None:
        pid = self.pid
        if end := recorded_end(self._folder):
            self._known.forget(pid or NOBODY, self._began)
            return end
        if pid is None and self._is_ours:
            if not self._supervisor_ended.is_set():
                return None  # on its way
            _take_pid(self._folder)  # a program that its dead supervisor left on its way finds it taken and does not run
            pid = self.pid
        if pid is not None and await self._known.is_alive(pid, self._began):
            return None
        # It is gone, and its supervisor may be about to say how.
        for _ in range(round(EXIT_WRITTEN_WITHIN_S / EXIT_LOOK_S)):
            if recorded_end(self._folder) or not self._has_supervisor():
                break
            await asyncio.sleep(EXIT_LOOK_S)
        return recorded_end(self._folder) or RunEnd(None, None)

    def _has_supervisor(self) -> bool:
        pid = _number(self._folder / "started" / "supervisor")
        return pid is not None and not self._supervisor_ended.is_set() and send(pid, 0)


async def start_detached(
    argv: Sequence[str], folder: Path, log: Path, env: Mapping[str, str] | None, known: KnownProcesses
) -> DetachedRun:
    supervisor = _spawn(argv, folder, log, environment(env))
    ended = _watch(supervisor)
    for _ in range(round(TAKEN_WITHIN_S / TAKEN_LOOK_S)):
        if read_text(folder / "started" / "supervisor") == str(supervisor.pid):
            return DetachedRun(folder, known, ended)
        if ended.is_set():
            break
        await asyncio.sleep(TAKEN_LOOK_S)
    if ended.is_set() and supervisor.returncode == REFUSED:
        raise AlreadyStarted(f"something was started in {folder} before; a run folder is used once")
    raise Transient(f"{argv[0]} was not started in {folder}: its supervisor ended or does not answer; see {log}")


async def adopt(folder: Path, known: KnownProcesses) -> DetachedRun | None:
    if not _take_start(folder):
        for _ in range(round(PID_WITHIN_S / TAKEN_LOOK_S)):
            if read_pid(folder) is not None or recorded_end(folder):
                break
            await asyncio.sleep(TAKEN_LOOK_S)
    _take_pid(folder)  # a supervisor that is this late finds it taken and starts nothing
    return None if read_pid(folder) == NOBODY else DetachedRun(folder, known)


async def run_recorded(
    argv: Sequence[str],
    folder: Path,
    *,
    deadline_s: float | None,
    env: Mapping[str, str] | None,
    on_output: Callable[[bytes], None] | None,
) -> Ended:
    """To its end, in a folder where `adopt` finds it if we do not live to see that."""
    expect_program(argv, environment(env))
    renew(folder)
    try:
        words = ["/bin/sh", "-c", _PROGRAM, "run", str(folder), *argv]
        return await run_program(words, deadline_s=deadline_s, env=env, on_output=on_output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def renew(folder: Path) -> None:
    """It is there and empty, whatever was in it."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise _cannot("be made", folder, error) from None


def recorded_end(folder: Path) -> RunEnd | None:
    code = _number(folder / "exit")
    with suppress(OSError):
        if code is not None:
            return RunEnd(code, datetime.fromtimestamp((folder / "exit").stat().st_mtime, UTC))
    return None


def read_pid(folder: Path) -> int | None:
    return _number(folder / "pid")


def _number(file: Path) -> int | None:
    """None when there is none, or a full disk or a lost power line tore it."""
    text = read_text(file)
    return int(text) if _DIGITS.fullmatch(text) else None


def read_text(file: Path) -> str:
    """Empty when there is nothing to read. A file that cannot be looked at says neither."""
    try:
        return " ".join(file.read_text("utf-8").split())
    except (FileNotFoundError, NotADirectoryError, UnicodeDecodeError):
        return ""
    except OSError as error:
        raise Transient(f"{file} cannot be read: {error.strerror}") from None


def _take_start(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "started").mkdir(mode=0o700)
    except FileExistsError:
        return False
    except OSError as error:
        raise _cannot("be taken", folder, error) from None
    return True


def _take_pid(folder: Path) -> None:
    if read_pid(folder) is not None:
        return  # and nothing is written: a VM that filled the disk must be ended without
    mine = folder / ".pid.agent"
    try:
        mine.write_text(f"{NOBODY}\n")
        with suppress(FileExistsError):
            os.link(mine, folder / "pid")
        mine.unlink()
    except FileNotFoundError:
        return  # in a folder that is gone nothing starts either
    except OSError as error:
        raise _cannot("be taken", folder, error) from None


def _cannot(what: str, folder: Path, error: OSError) -> Transient:
    kind = NoSpace if error.errno in (errno.ENOSPC, errno.EDQUOT) else Transient
    return kind(f"{folder} cannot {what}: {error.strerror or error}")


def _spawn(argv: Sequence[str], folder: Path, log: Path, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    expect_program(argv, environ)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Transient(f"the log {log} cannot be opened: {error.strerror}") from None
    words = ["/bin/sh", "-c", _SUPERVISOR, "supervise", str(folder), _PROGRAM, *argv]
    try:
        return subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environ, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise cannot_start(argv, error) from None
    finally:
        os.close(output)


def _watch(supervisor: subprocess.Popen[bytes]) -> asyncio.Event:
    """Set when our own child ends. A daemon thread, because asyncio kills the children of a loop that closes."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        supervisor.wait()
        with suppress(RuntimeError):  # the loop is gone, and so is whoever would look
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, name=f"supervisor-{supervisor.pid}", daemon=True).start()
    return ended
