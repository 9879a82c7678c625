"""The process table of a simulated Mac: simulated programs as tasks, with pids, groups and signals.

A process ends by itself or by a signal, never because whoever started it is gone. A killed one runs no further: its task is
cancelled, and what its program wanted to do next does not happen.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NoReturn

from applecart.clock import Clock
from applecart.sim.tart.kernel import Kernel
from applecart.sim.tart.refusals import BROKEN_PIPE
from applecart.tart.mac import Process
from applecart.tart.ps import STARTED

FIRST_PID = 500  # what a Mac has started before anybody logs in
HARMLESS = frozenset({signal.SIGCHLD, signal.SIGCONT, signal.SIGWINCH, signal.SIGURG})

Program = Callable[[Kernel], Awaitable[int]]


def _nothing() -> None:
    return


class SimulatedProcess:
    """One process, and the machine as its program sees it (`Kernel`)."""

    def __init__(
        self,
        table: "ProcessTable",
        pid: int,
        group: int,
        argv: Sequence[str],
        began: datetime,
        on_end: Callable[[], None] = _nothing,
    ) -> None:
        self._table = table
        self._on_end = on_end
        self.pid = pid
        self.group = group
        self.argv = tuple(argv)
        self.began = began
        self.code: int | None = None
        self.error: BaseException | None = None  # of the simulation itself; never of a program that failed
        self._caught: dict[int, asyncio.Queue[int]] = {}
        self._killed_by: int | None = None
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, program: Program) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(program), name=f"{self.argv[0]} ({self.pid})")
        self._task.add_done_callback(self._killed_unborn)

    async def _run(self, program: Program) -> None:
        try:
            self.code = await program(self)
        except BrokenPipeError:
            self.code = BROKEN_PIPE
        except asyncio.CancelledError:
            self.code = 128 + (self._killed_by or signal.SIGKILL)
        except Exception as error:
            self.error, self.code = error, 1
        self._finish()

    def _killed_unborn(self, _: "asyncio.Task[None]") -> None:
        """A task that is cancelled before its first step takes none, so it cannot say that it has ended."""
        if not self._ended.is_set():
            self._finish()

    def _finish(self) -> None:
        if self._killed_by is not None:
            self.code = 128 + self._killed_by
        self._table.forget(self)
        self._on_end()
        self._ended.set()

    async def wait(self) -> int:
        await self._ended.wait()
        if self.error is not None:
            raise self.error
        assert self.code is not None
        return self.code

    def shown(self) -> Process:
        return Process(self.pid, self.began.strftime(STARTED), " ".join(self.argv))

    def deliver(self, number: int) -> None:
        if number in self._caught and number != signal.SIGKILL:
            self._caught[number].put_nowait(number)
        elif number not in HARMLESS and number != 0 and self._killed_by is None:
            self._killed_by = number
            if self._task is not None:
                self._task.cancel()

    # The kernel, for the program itself.
    def catch(self, *numbers: int) -> "asyncio.Queue[int]":
        queue: asyncio.Queue[int] = asyncio.Queue()
        self._caught |= dict.fromkeys(numbers, queue)
        return queue

    def signal(self, pid: int, number: int) -> bool:
        return self._table.signal(pid, number)

    async def gone(self, pid: int) -> None:
        if process := self._table.get(pid):
            with suppress(Exception):
                await process.wait()

    async def die(self, number: int) -> NoReturn:
        self._caught.pop(number, None)
        self.deliver(number)
        await asyncio.Event().wait()
        raise AssertionError("a dead process ran on")

    def leave_grandchild(self) -> None:
        self._table.spawn(["/bin/sleep", "86400"], _forever, group=self.group)

    def kill_agent(self) -> None:
        self._table.on_kill_agent()


class ProcessTable:
    def __init__(self, clock: Clock, on_kill_agent: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._processes: dict[int, SimulatedProcess] = {}
        self.next_pid = FIRST_PID
        self.on_kill_agent = on_kill_agent

    def spawn(
        self, argv: Sequence[str], program: Program, *, group: int | None = None, on_end: Callable[[], None] = _nothing
    ) -> SimulatedProcess:
        """`on_end` is what the system does when a process is gone, however early it was killed."""
        pid, self.next_pid = self.next_pid, self.next_pid + 1
        process = SimulatedProcess(self, pid, pid if group is None else group, argv, self._clock.now(), on_end)
        self._processes[pid] = process
        process.start(program)
        return process

    def get(self, pid: int) -> SimulatedProcess | None:
        return self._processes.get(pid)

    def all(self) -> list[SimulatedProcess]:
        return list(self._processes.values())

    def signal(self, pid: int, number: int) -> bool:
        """A negative pid is a group."""
        found = [process for process in self.all() if process.pid == pid or process.group == -pid]
        for process in found:
            process.deliver(number)
        return bool(found)

    def forget(self, process: SimulatedProcess) -> None:
        if self._processes.get(process.pid) is process:
            del self._processes[process.pid]

    async def kill_all(self) -> None:
        """Power off."""
        found = self.all()
        for process in found:
            process.deliver(signal.SIGKILL)
        for process in found:
            with suppress(Exception):
                await process.wait()


async def _forever(kernel: Kernel) -> int:
    await asyncio.Event().wait()
    return 0
