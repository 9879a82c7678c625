"""A scheduler at work on the API in memory, with a network between them that a test may break."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from applecart.api.meta import Key
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.scheduler.scheduler import Scheduler
from applecart.embedded.server.server import RunningApi
from applecart.kube.client import Client
from applecart.kube.transport import Transport
from tests.embedded.controllers.scheduler.stage import Stage
from tests.embedded.controllers.stages import run_alone
from tests.kube.embedded_api import serving
from tests.kube.faults import FaultyTransport


class Play:
    """The stage has a connection of its own: what strikes the scheduler does not strike the test."""

    def __init__(self, running: RunningApi, clock: Clock, *, wire: Transport | None = None) -> None:
        self.network = FaultyTransport(wire or running.transport())
        self.client = Client(running.transport(), clock)
        self.stage = Stage(self.client, "test")
        self._clock = clock
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [asyncio.create_task(informer.run()) for informer in (self.stage.pods, self.stage.events)]
        await self.stage.pods.following()
        await self.stage.events.following()
        self.start_scheduler()

    def start_scheduler(self) -> None:
        client = Client(self.network, self._clock)
        self._scheduler = asyncio.create_task(run_alone(Scheduler, client))

    async def stop_scheduler(self) -> None:
        self._scheduler.cancel()
        await asyncio.wait([self._scheduler])

    async def stop(self) -> None:
        await self.stop_scheduler()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    def bindings(self) -> list[str]:
        """The bindings that the scheduler asked for, by the Pod's name."""
        asked = [call.path.split("/") for call in self.network.calls if call.method == "POST"]
        return [parts[-2] for parts in asked if parts[-1] == "binding"]

    def writes_to(self, name: str) -> int:
        return sum(call.method == "PATCH" and f"/pods/{name}/status" in call.path for call in self.network.calls)

    async def stored(self, name: str) -> Pod:
        return await self.client.get(Pod, Key("test", name))


@pytest.fixture
async def running(clock: Clock) -> AsyncIterator[RunningApi]:
    """The embedded API in memory, with the namespace `test`."""
    async with serving(clock, ["test"]) as running:
        yield running


@pytest.fixture
async def play(running: RunningApi, clock: Clock) -> AsyncIterator[Play]:
    started = Play(running, clock)
    await started.start()
    yield started
    await started.stop()
