"""The real machine, for the executable: real pids, real signals, real streams.

A killed agent is the process in `sim/agent.pid`, and nobody else: whoever started us may be a person's shell.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from applecart.sim.tart.refusals import OTHER, Refused

POLL_S = 0.1
PIECE_BYTES = 64 << 10
STDIN, STDOUT, STDERR = 0, 1, 2


class ThisKernel:
    def __init__(self, home: Path) -> None:
        self._home = home

    @property
    def pid(self) -> int:
        return os.getpid()

    def catch(self, *numbers: int) -> "asyncio.Queue[int]":
        queue: asyncio.Queue[int] = asyncio.Queue()
        for number in numbers:
            asyncio.get_running_loop().add_signal_handler(number, queue.put_nowait, number)
        return queue

    def signal(self, pid: int, number: int) -> bool:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def gone(self, pid: int) -> None:
        while True:
            if not self.signal(pid, 0):
                return
            await asyncio.sleep(POLL_S)

    async def die(self, number: int) -> NoReturn:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL takes no handler
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError):
            os.kill(os.getpid(), number)
        os._exit(128 + number % 128)

    def leave_grandchild(self) -> None:
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "3600"])

    def kill_agent(self) -> None:
        pid = 0
        with contextlib.suppress(OSError, ValueError):
            pid = int((self._home / "sim" / "agent.pid").read_text())
        if pid <= 1:
            raise Refused(
                OTHER,
                "simulated Tart: kill-agent kills the process whose pid is in sim/agent.pid, which has none; "
                "let whoever starts the agent write it there",
            )
        with contextlib.suppress(OSError, OverflowError):
            os.kill(pid, signal.SIGKILL)


class TheseStreams:
    """This process's own. A write blocks when nobody reads, as it does in Tart."""

    async def read(self) -> bytes:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, os.read, STDIN, PIECE_BYTES)
        except OSError:
            return b""

    async def out(self, data: bytes) -> None:
        _write(STDOUT, data)

    async def err(self, data: bytes) -> None:
        _write(STDERR, data)

    async def size(self) -> tuple[int, int]:
        changed = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGWINCH, changed.set)
        await changed.wait()
        try:
            size = os.get_terminal_size(STDIN)
        except OSError:
            return 80, 24
        return size.columns, size.lines


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def home_of(env: Mapping[str, str]) -> Path:
    """Never a person's own `~/.tart`: what is simulated needs a place of its own."""
    home = Path(env.get("TART_HOME", "")).absolute()
    if not env.get("TART_HOME") or home.resolve() == Path("~/.tart").expanduser().resolve():
        raise Refused(OTHER, "simulated Tart: set TART_HOME to a folder of its own; it never uses ~/.tart")
    return home
