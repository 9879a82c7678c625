"""A fleet on the embedded API in memory, on virtual time, with networks that a test may break."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.node_lifecycle.heartbeats import Timing
from applecart.embedded.controllers.node_lifecycle.monitor import add_node_lifecycle
from applecart.embedded.server.server import running_api
from applecart.kube.client import Client
from applecart.kube.transport import Request, Response, Stream, Transport
from tests.embedded.controllers.node_lifecycle.fleet import Fleet
from tests.embedded.controllers.stages import run_alone
from tests.embedded.memory_log import MemoryLog
from tests.kube.faults import FaultyTransport

KEYS = TokenKeys(ec.generate_private_key(ec.SECP256R1()))
WITHIN_S = 900.0  # of virtual time: longer than anything here should take


class Wire:
    """Where an API answers; another one may take its place, as after a restart."""

    api: Transport

    async def send(self, request: Request) -> Response:
        return await self.api.send(request)

    async def open(self, request: Request) -> Stream:
        return await self.api.open(request)

    async def aclose(self) -> None:
        pass


class World:
    """The API, the controllers' network and the agents' network."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.log = MemoryLog()
        self.wire = Wire()
        self.controllers = FaultyTransport(self.wire)
        self.agents = FaultyTransport(self.wire)
        client, agents = Client(self.wire, clock), Client(self.agents, clock, deadline_s=5.0)
        self.fleet = Fleet(client, agents, clock, "default", Timing(), WITHIN_S)
        self._api = AsyncExitStack()
        self._controller: asyncio.Task[None] | None = None

    async def start_api(self) -> None:
        running = await self._api.enter_async_context(running_api(self.log, self.clock, KEYS))
        self.wire.api = running.transport()

    async def stop_api(self) -> None:
        await self.wire.api.aclose()
        await self._api.aclose()

    def start_controller(self) -> None:
        self._controller = asyncio.create_task(run_alone(add_node_lifecycle, Client(self.controllers, self.clock)))

    async def stop_controller(self) -> None:
        if self._controller is not None:
            self._controller.cancel()
            await asyncio.wait([self._controller])


@pytest.fixture
async def world(clock: Clock) -> AsyncIterator[World]:
    made = World(clock)
    await made.start_api()
    made.start_controller()
    async with made.fleet:
        yield made
    await made.stop_controller()
    await made.stop_api()
