"""What the agent holds of a simulated program: a session with its streams, or one that outlives the agent."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from applecart.sim.mac_streams import Held
from applecart.sim.tart.processes import ProcessTable, SimulatedProcess
from applecart.tart.detached import NOBODY, read_pid, read_text, recorded_end
from applecart.tart.mac import RunEnd

PS_S = 0.05  # to look whose a pid is takes longer than anybody waits for a program that had ended before


class SimulatedSession:
    def __init__(self, table: ProcessTable, process: SimulatedProcess, streams: Held, is_dead: Callable[[], bool]) -> None:
        self._table = table
        self._process = process
        self._streams = streams
        self._is_dead = is_dead  # the agent: a dead one does nothing

    async def read_out(self) -> bytes:
        return await self._streams.stdout.read()

    async def read_err(self) -> bytes:
        return await self._streams.stderr.read()

    async def write(self, data: bytes) -> None:
        with suppress(BrokenPipeError):
            await self._streams.stdin.write(data)

    async def close_stdin(self) -> None:
        self._streams.stdin.end()

    def resize(self, columns: int, rows: int) -> None:
        self._streams.sizes.put_nowait((columns, rows))

    async def wait(self) -> int:
        return await self._process.wait()

    async def kill(self) -> None:
        if not self._is_dead():
            self._table.signal(-self._process.group, signal.SIGKILL)
            self._streams.break_off()
            await self._process.wait()


class SimulatedDetached:
    """The folder is the truth, as on a real Mac; only waiting is done without looking every second."""

    def __init__(self, table: ProcessTable, folder: Path, signal: Callable[[int, int], bool]) -> None:
        self._table = table
        self._folder = folder
        self._signal = signal  # of the agent's Mac, which knows whether the agent lives

    @property
    def pid(self) -> int | None:
        return read_pid(self._folder) or None

    async def wait(self) -> RunEnd:
        if program := self._program():
            await _ended(program)
        elif not recorded_end(self._folder):
            await asyncio.sleep(PS_S)
        if supervisor := self._supervisor():  # about to say how it ended
            await _ended(supervisor)
        return recorded_end(self._folder) or RunEnd(None, None)

    async def signal(self, number: int) -> bool:
        await asyncio.sleep(PS_S)
        program = self._program()
        return program is not None and self._signal(program.pid, number)

    def _program(self) -> SimulatedProcess | None:
        found = self._table.get(read_pid(self._folder) or NOBODY)
        return found if found and found.shown().began == read_text(self._folder / "began") else None

    def _supervisor(self) -> SimulatedProcess | None:
        text = read_text(self._folder / "started" / "supervisor")
        found = self._table.get(int(text)) if text.isdecimal() else None
        # A Mac that was started anew gives out the same pids again.
        return found if found and str(self._folder) in found.shown().command else None


def record(folder: Path, process: SimulatedProcess) -> None:
    (folder / "began").write_text(f"{process.shown().began}\n")
    (folder / "pid").write_text(f"{process.pid}\n")


async def _ended(process: SimulatedProcess) -> None:
    with suppress(Exception):  # the end of a program is in the folder, not in its task
        await process.wait()
