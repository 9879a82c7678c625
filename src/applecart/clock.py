"""Time and randomness, injected.

Only this module tells the time and draws random numbers; everything else is handed a `Clock`. Waiting is done with asyncio's
own `sleep` and `timeout`, which follow the event loop: on a `VirtualLoop` the loop's time jumps to the next timer as soon as
nothing else can run, so an hour passes in milliseconds and the same seed gives the same run (D9).

A virtual loop has no real I/O: sockets, pipes and child processes are refused, and work for a thread is done at once. When
every task waits for something that can never happen it says so instead of hanging.
"""

import asyncio
import itertools
import math
import random
import selectors
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time starts; any fixed instant would do
NAMED_WAITERS = 10  # tasks that a deadlock names; a fleet has thousands and the first few tell the story


class Clock(Protocol):
    """What a component may know of time and chance."""

    random: random.Random

    def now(self) -> datetime:
        """The wall clock, UTC. It may jump; never measure a duration with it."""

    def monotonic(self) -> float:
        """Seconds since some fixed point; never goes back."""


class SystemClock:
    """The machine's clock."""

    def __init__(self) -> None:
        self.random = random.Random()

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class VirtualClock:
    """The clock of a `VirtualLoop`, with its own seeded randomness."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seed: int = 0, start: datetime = EPOCH) -> None:
        self.random = random.Random(seed)
        self._loop = loop
        self._start = start
        self._skew = timedelta()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time()) + self._skew

    def monotonic(self) -> float:
        return self._loop.time()

    def jump(self, by: timedelta) -> None:
        """Step the wall clock, as an NTP correction does; durations are not affected."""
        self._skew += by


class AllTasksWait(RuntimeError):
    """Nothing is ready, no timer is set, and virtual time has no outside world that could wake anybody."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks: where the real loop would wait for I/O, the virtual one moves its clock."""

    loop: "VirtualLoop"

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        if self.get_map():  # the first is the loop's own wakeup pipe
            raise RuntimeError("virtual time has no sockets, pipes or processes; what needs them runs on a real loop")
        key: selectors.SelectorKey = super().register(fileobj, events, data)
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not ready and timeout is None:
            raise AllTasksWait(f"every task waits for something that can never happen: {_describe_tasks(self.loop)}")
        if not ready and timeout is not None and timeout > 0:
            self.loop.advance(timeout)
        return ready


class _Numbered:
    """Hashes by order of creation: asyncio keeps tasks in sets, and memory addresses would decide who is cancelled first."""

    number: int

    def __hash__(self) -> int:
        return self.number


class _VirtualTask(_Numbered, asyncio.Task[Any]):
    def __init__(self, number: int, coro: Any, **options: Any) -> None:
        self.number = number
        super().__init__(coro, **options)

    def set_name(self, value: object) -> None:
        if value is not None:  # Python 3.13.0 renames every unnamed task to "None"
            super().set_name(value)


class _VirtualFuture(_Numbered, asyncio.Future[Any]):
    def __init__(self, number: int, loop: asyncio.AbstractEventLoop) -> None:
        self.number = number
        super().__init__(loop=loop)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a number it moves itself."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self._virtual_s = 0.0
        self._numbers = itertools.count(1)
        super().__init__(selector)
        self.advance(0)
        self.set_task_factory(_new_task)

    def time(self) -> float:
        return self._virtual_s

    def advance(self, seconds: float) -> None:
        self._virtual_s += seconds
        # asyncio runs timers before time + resolution. With its fixed 1 ns, which a float after 97 days cannot add, a timer
        # that is due would never run; one step of the float makes it "due means run" at any age.
        self._clock_resolution = math.ulp(self._virtual_s)

    def next_number(self) -> int:
        return next(self._numbers)

    def create_future(self) -> asyncio.Future[Any]:
        return _VirtualFuture(self.next_number(), self)

    def run_in_executor(self, executor: Any, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Do a thread's work here and now: a thread would run in real time, while virtual time passes it by."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _new_task(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
    assert isinstance(loop, VirtualLoop)
    number = loop.next_number()
    # asyncio counts unnamed tasks per process, so their names would differ from run to run.
    return _VirtualTask(number, coro, loop=loop, **{**options, "name": options.get("name") or f"task-{number}"})


def _describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    more = f", and {len(tasks) - NAMED_WAITERS} more" if len(tasks) > NAMED_WAITERS else ""
    return ", ".join(map(_describe_task, tasks[:NAMED_WAITERS])) + more


def _describe_task(task: asyncio.Task[Any]) -> str:
    """Which of our functions waits: the innermost one outside asyncio itself."""
    place = ""
    coro: Any = task.get_coro()
    while frame := getattr(coro, "cr_frame", None):
        path = Path(frame.f_code.co_filename)
        if path.parent.name != "asyncio":
            place = f" in {frame.f_code.co_name} ({path.name}:{frame.f_lineno})"
        coro = getattr(coro, "cr_await", None)
    return task.get_name() + place


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
