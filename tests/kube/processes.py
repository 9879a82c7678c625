"""Several processes on one time: each has an event loop, clocks and a connection of its own, and can be paused or killed.

A paused process keeps its state and does not run; when it goes on, time has passed and all its timers are late, as after
SIGSTOP or the pause of a VM. Clocks may be off and run at different rates. The loops never wait: the world moves its time to
whatever happens next in any process that runs.
"""

import asyncio
import math
import random
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

from applecart.clock import EPOCH
from applecart.embedded.server.server import RunningApi
from applecart.errors import DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.transport import Request, Response, Stream, Transport
from tests.virtual_time import elapse

MOST_STEPS = 2_000_000  # a loop that never rests is a bug, and a test must say so instead of hanging


class ProcessLoop(asyncio.SelectorEventLoop):
    """Its time is the world's, at the rate of its own clock."""

    def __init__(self, world: "World", rate: float) -> None:
        self._world = world
        self._rate = rate
        super().__init__()

    def time(self) -> float:
        return self._world.now_s * self._rate

    def next_s(self) -> float:
        """When, in the world's time, this loop has something to do; infinity for never."""
        if self._ready:  # type: ignore[attr-defined]
            return self._world.now_s
        due = min((handle.when() for handle in self._scheduled if not handle.cancelled()), default=math.inf)  # type: ignore[attr-defined]
        return max(self._world.now_s, due / self._rate)

    def step(self) -> None:
        """One turn: what is ready or due now."""
        self.call_soon(self.stop)
        self.run_forever()


class ProcessClock:
    def __init__(self, loop: ProcessLoop, seed: int, skew: timedelta) -> None:
        self.random = random.Random(seed)
        self.skew = skew
        self._loop = loop

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time()) + self.skew

    def monotonic(self) -> float:
        return self._loop.time()


class Process:
    def __init__(self, world: "World", name: str, *, rate: float = 1.0, skew: timedelta = timedelta()) -> None:
        self.name = name
        self.world = world
        self.loop = ProcessLoop(world, rate)
        self.clock = ProcessClock(self.loop, world.chance.getrandbits(32), skew)
        self.is_killed = False
        self.paused_until_s = 0.0
        self.pauses = 0
        world.processes.append(self)

    @property
    def runs(self) -> bool:
        return not self.is_killed and self.world.now_s >= self.paused_until_s

    def start(self, main: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self.loop.create_task(main)

    def cancel(self, task: asyncio.Task[None]) -> None:
        self.loop.call_soon(task.cancel)

    def pause(self, seconds: float) -> None:
        self.paused_until_s = max(self.paused_until_s, self.world.now_s + seconds)
        self.pauses += 1

    def kill(self) -> None:
        self.is_killed = not self.world.is_closing


class Served:
    """An API that runs in a process of its own. Whoever calls does so from another loop: calls and answers cross over."""

    def __init__(self, process: Process, serving: AbstractAsyncContextManager[RunningApi]) -> None:
        self._process = process
        self._transport: asyncio.Future[Transport] = process.loop.create_future()
        self._task = process.start(self._serve(serving))  # asyncio keeps no task alive that nobody else holds

    async def send(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response] = loop.create_future()

        def deliver(done: asyncio.Task[Response]) -> None:
            if not answer.done():  # who asked may be gone
                failure = Unreachable(f"{request}: the server was stopped") if done.cancelled() else done.exception()
                answer.set_exception(failure) if failure else answer.set_result(done.result())

        def ask() -> None:
            task = self._process.loop.create_task(self._answer(request))
            task.add_done_callback(lambda done: loop.call_soon(deliver, done))

        self._process.loop.call_soon(ask)
        return await answer

    async def open(self, request: Request) -> Stream:
        raise NotImplementedError("no test of several processes watches")

    async def aclose(self) -> None:
        """The API is everybody's."""

    async def _answer(self, request: Request) -> Response:
        return await (await self._transport).send(request)

    async def _serve(self, serving: AbstractAsyncContextManager[RunningApi]) -> None:
        async with serving as running:
            self._transport.set_result(running.transport())
            await asyncio.get_running_loop().create_future()


class Weather:
    """What all processes suffer on their way to the API."""

    def __init__(self) -> None:
        self.is_down = False  # connections are refused
        self.hangs = False  # nothing is answered
        self.latency_s = 0.0
        self.answers_to_lose = 0
        self.links: list[Link] = []

    def heal(self) -> None:
        self.is_down = self.hangs = False
        self.latency_s = 0.0
        self.answers_to_lose = 0
        for link in self.links:
            link.is_cut, link.latency_s = False, 0.0


class Link:
    """The connection of one process to the API; it can be cut for this process alone."""

    def __init__(self, weather: Weather, api: Transport) -> None:
        self.is_cut = False
        self.latency_s = 0.0  # on top of everybody's
        self._weather = weather
        self._api = api
        weather.links.append(self)

    async def send(self, request: Request) -> Response:
        weather = self._weather
        if weather.is_down:
            raise NeverSent(f"{request}: connection refused")
        if weather.hangs or self.is_cut:
            await elapse(request.deadline_s)  # also when the weather clears: this connection is dead
            raise DeadlineExceeded(f"{request}: no answer")
        await elapse((weather.latency_s + self.latency_s) / 2)
        response = await self._api.send(request)
        await elapse((weather.latency_s + self.latency_s) / 2)
        if weather.answers_to_lose and request.method != "GET":
            weather.answers_to_lose -= 1
            raise Unreachable(f"{request}: connection reset while waiting for the answer")
        return response

    async def open(self, request: Request) -> Stream:
        return await self._api.open(request)

    async def aclose(self) -> None:
        await self._api.aclose()


class World:
    def __init__(self, seed: int = 0) -> None:
        self.now_s = 0.0
        self.is_closing = False
        self.chance = random.Random(seed)
        self.processes: list[Process] = []

    def run(self, seconds: float) -> None:
        """Let this much time pass."""
        until_s = self.now_s + seconds
        for _ in range(MOST_STEPS):
            upcoming = [(self._next_s(process), number) for number, process in enumerate(self.processes)]
            at_s, number = min(upcoming)
            if at_s > until_s:
                self.now_s = until_s
                return
            self.now_s = max(self.now_s, at_s)
            self.processes[number].loop.step()
        raise AssertionError(f"the processes never rest at {self.now_s} s")

    def run_until(self, holds: Callable[[], bool], at_most_s: float, step_s: float = 0.25) -> float:
        """Let time pass until the sentence holds; how long that took."""
        began_s = self.now_s
        while not holds():
            assert self.now_s - began_s <= at_most_s, f"not within {at_most_s} s"
            self.run(step_s)
        return self.now_s - began_s

    def close(self) -> None:
        """End every process, also the killed ones, so that no task is left behind."""
        self.is_closing = True
        for process in self.processes:
            process.is_killed, process.paused_until_s = False, 0.0
            for task in asyncio.all_tasks(process.loop):
                process.loop.call_soon(task.cancel)
        self.run(3600)
        for process in self.processes:
            assert not asyncio.all_tasks(process.loop)
            process.loop.close()

    def _next_s(self, process: Process) -> float:
        if process.is_killed:
            return math.inf
        return max(process.loop.next_s(), process.paused_until_s)
