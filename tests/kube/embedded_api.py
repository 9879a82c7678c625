"""The embedded API in memory, for tests on virtual time, and the powers over it that only a test has.

`serving` gives a server with the namespaces that tests write to. What happens to its past (`forget`) and to its objects behind
everybody's back (`lose`) is done to the store itself, because no client could.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec

from applecart.api.core import Namespace
from applecart.api.crd import Definition, custom_resource_definition
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.clock import Clock
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.server.server import RunningApi, running_api
from applecart.kube.client import Client
from applecart.kube.errors import AlreadyExists, NotFound
from tests.embedded.memory_log import MemoryLog

NAMESPACES = ("ci", "test")
SERVED_WITHIN_S = 30.0  # a real server needs a moment, the embedded one none
LOOK_EVERY_S = 0.1


@cache
def token_keys() -> TokenKeys:
    """One pair for all servers of a test run: making one takes as long as starting a server."""
    return TokenKeys(ec.generate_private_key(ec.SECP256R1()))


@asynccontextmanager
async def serving(clock: Clock, namespaces: Iterable[str] = NAMESPACES) -> AsyncIterator[RunningApi]:
    """A server of its own until the block ends."""
    async with running_api(MemoryLog(), clock, token_keys()) as running:
        client = Client(running.transport(), clock)
        for name in namespaces:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
        yield running


async def define(client: Client, *definitions: Definition) -> None:
    """Teach any server these kinds; it serves them when this returns."""
    for definition in definitions:
        with suppress(AlreadyExists):
            await client.create(custom_resource_definition(definition))
        async with asyncio.timeout(SERVED_WITHIN_S):
            while not await _is_served(client, definition.kind):  # noqa: ASYNC110 (a real server, nothing to wait on)
                await asyncio.sleep(LOOK_EVERY_S)


async def _is_served(client: Client, kind: type[Object]) -> bool:
    try:
        await client.list(kind)
    except NotFound:
        return False
    return True


async def forget(running: RunningApi) -> None:
    """Forget every older revision, for lists and for watches: both must begin again."""
    store = running.store
    await store.compact(store.revision)
    for table in store._tables.values():
        table._ring.clear()  # as after more changes than it holds
        table.floor = store.revision


def lose(running: RunningApi, label: str, key: Key) -> None:
    """An object is gone and nobody was told, as after a restore of the database."""
    table = running.store.table(label)
    del table._committed[key]
    table._keys.remove(key)
