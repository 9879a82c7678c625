"""Tasks that go on until they are cancelled, whatever happens to them.

One that raises, ends, or is cancelled by something it awaited is started again after a while that grows, and the others never
notice. It is logged, counted (`applecart_task_restarts_total`) and told by `down`: nothing that runs here ends in silence. The
manager, the embedded API and the agent run what they run beside requests in one of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from contextvars import Context
from typing import TYPE_CHECKING, TypeVar

import msgspec

from applecart.clock import Clock
from applecart.errors import only_one
from applecart.kube.backoff import Backoff
from applecart.observe.ages import Ages
from applecart.observe.logs import logger

if TYPE_CHECKING:
    from prometheus_client import Counter

    from applecart.observe.metrics import Family, Metrics

T = TypeVar("T")
Work = Callable[[], Awaitable[object]]

RESTART = Backoff(first_s=1.0, longest_s=60.0)  # a task fails as a whole only by a bug of ours: it must not become load
WELL_AFTER_S = 300.0  # one that ran so long is taken for well again
TASK_DOWN = "task down"  # the class of waiting in `Ages`

log = logger(__name__)


class StrayCancellation(Exception):
    """Work ended as cancelled although nobody cancelled it: something it awaited was."""


def is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def uncancelled(work: Awaitable[T]) -> T:
    """Its result; a cancellation that comes from within is an error, because whoever sees a cancelled task takes that for its
    orderly end.

    It runs as a task of its own: before Python 3.13 a group in it that fails leaves its task counted as cancelled for ever.
    """
    try:
        return await asyncio.ensure_future(work)
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise
        raise StrayCancellation("it was cancelled from within") from error


class Task(msgspec.Struct):
    """Something that runs until it is cancelled."""

    name: str
    work: Work
    down_because: str = ""
    running: asyncio.Task[None] | None = None


class Background:
    def __init__(
        self,
        clock: Clock,
        metrics: Metrics | None = None,
        ages: Ages | None = None,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        """When `is_over`, a task that ends stays ended: whatever it worked for is gone, and that is told elsewhere."""
        self._clock = clock
        self._ages = ages
        self._is_over = is_over
        self._tasks: dict[str, Task] = {}
        self._group: asyncio.TaskGroup | None = None
        self._restarts: Family[Counter] | None = None
        if metrics is not None:
            self._restarts = metrics.counter("applecart_task_restarts_total", "Times a task failed or ended.", ["task"])

    @property
    def tasks(self) -> list[Task]:
        return list(self._tasks.values())

    def add(self, name: str, work: Work) -> None:
        """Run this until it is dropped; now, or with the others."""
        if name in self._tasks:
            raise ValueError(f"a task {name!r} runs already; give this one a name of its own")
        task = self._tasks[name] = Task(name, work)
        if self._group is not None:
            self._start(self._group, task)

    def drop(self, name: str) -> None:
        task = self._tasks.pop(name)
        if task.running is not None:
            task.running.cancel()
        if self._restarts is not None:
            self._restarts.forget(name)

    async def run(self) -> None:
        """All of them, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for task in self.tasks:
                    self._start(group, task)
                await asyncio.get_running_loop().create_future()  # one may be added at any time
        finally:
            self._group = None

    def down(self) -> str | None:
        """A sentence when one is down, for a readiness page."""
        down = [f"{one.name} is down and will be started again: {one.down_because}" for one in self.tasks if one.down_because]
        return down[0] if down else None

    def _start(self, group: asyncio.TaskGroup, task: Task) -> None:
        if self._restarts is not None:
            self._restarts.of(task.name)  # from the start, so that an alert sees the first one
        # In a context of its own: what it writes is no part of the reconcile that happened to start it.
        task.running = group.create_task(self._keep_running(task), name=task.name, context=Context())

    async def _keep_running(self, task: Task) -> None:
        failures = 0
        while True:
            began_s = self._clock.monotonic()
            problem: Exception | None = None
            try:
                await uncancelled(task.work())
            except Exception as error:
                problem = error
            if is_being_cancelled():  # it turned its end into something else; started again, it would run for ever
                if problem is not None:
                    log.error("a background task failed while it was stopped", task=task.name, exc_info=problem)
                return
            if self._is_over():
                return
            failures = 1 if self._clock.monotonic() - began_s > WELL_AFTER_S else failures + 1
            wait_s = RESTART.wait_s(failures, self._clock.random)
            if self._restarts is not None:
                self._restarts.of(task.name).inc()
            task.down_because = _told(problem) if problem is not None else "it ended by itself"
            about = log.bind(task=task.name, failures=failures, again_in_s=round(wait_s, 1))
            about.error("a background task ended, starting it again", exc_info=problem)
            try:
                with self._ages.during(TASK_DOWN, task.name) if self._ages else nullcontext():
                    await asyncio.sleep(wait_s)
            finally:
                task.down_because = ""


def _told(problem: Exception) -> str:
    inner = only_one(problem)
    return f"{type(inner).__name__}: {inner}"
