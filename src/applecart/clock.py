"""Time and randomness, injected.

Only this module tells the time and draws random numbers; everything else is handed a `Clock`. Waiting is done with asyncio's
own `sleep` and `timeout`, which follow the event loop: on a `VirtualLoop` the loop's time jumps to the next timer as soon as
nothing else can run, so an hour passes in milliseconds and the same seed gives the same run (D9).

A virtual loop has no real I/O: no sockets, threads or child processes. When every task waits for something that can never
happen it says so instead of hanging.
"""

import asyncio
import random
import selectors
import time
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  # where virtual time starts; any fixed instant would do


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

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not ready and timeout is None:
            raise AllTasksWait("every task waits for something that can never happen")
        if not ready and timeout is not None and timeout > 0:
            self.loop.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is a number it moves itself."""

    def __init__(self) -> None:
        selector = _JumpingSelector()
        selector.loop = self
        self._virtual_s = 0.0
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual_s

    def advance(self, seconds: float) -> None:
        self._virtual_s += seconds


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
