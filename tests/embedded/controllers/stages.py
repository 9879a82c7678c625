"""The APIs that scenarios of the small controllers play on, with our controllers at work."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.controllers.controller_manager import add_controllers
from applecart.embedded.server.server import running_api
from applecart.kube.client import Client
from applecart.kube.manager import Manager
from tests.embedded.memory_log import MemoryLog

CA_PEM = b"-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n"


def new_keys() -> TokenKeys:
    return TokenKeys(ec.generate_private_key(ec.SECP256R1()))


async def run_alone(add: Callable[..., object], client: Client, *arguments: Any, **options: Any) -> None:
    """One controller and nothing else, until cancelled."""
    manager = Manager(client)
    add(manager, *arguments, **options)
    await manager.run()


@asynccontextmanager
async def our_controllers(client: Client, ca_pem: bytes, keys: TokenKeys) -> AsyncIterator[None]:
    """All but the scheduler, which has scenarios of its own."""
    task = asyncio.create_task(run_alone(add_controllers, client, ca_pem, keys, with_scheduler=False))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def api_in_memory(clock: Clock) -> AsyncIterator[tuple[Client, TokenKeys]]:
    """The embedded API on virtual time, and who signs for it."""
    keys = new_keys()
    async with running_api(MemoryLog(), clock, keys) as running:
        client = Client(running.transport(), clock)
        try:
            yield client, keys
        finally:
            await client.aclose()
