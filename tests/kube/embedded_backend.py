"""The embedded API server as the API under test: in memory without a socket, and on disk behind HTTPS.

The one on disk runs on a loop in a thread of its own for the whole session, as a server process would; each test connects
from its own loop and works in a namespace of its own.
"""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from applecart.api.core import Namespace
from applecart.api.meta import ObjectMeta
from applecart.clock import Clock, SystemClock
from applecart.embedded.auth.user import AUTHENTICATED, User
from applecart.embedded.server.server import EmbeddedServer, RunningApi
from applecart.embedded.trust.pki import write_kubeconfig
from applecart.kube.client import Client
from applecart.kube.connect import connect
from tests.kube.backends import Backend
from tests.kube.embedded_api import serving

STARTS_WITHIN_S = 60.0  # it takes a fraction of one, on a machine that is not busy
STRANGER = "stranger"

T = TypeVar("T")
_strangers = itertools.count(1)


class InMemoryBackend(Backend):
    def __init__(self, running: RunningApi, clock: Clock) -> None:
        super().__init__(Client(running.transport(), clock), "test")
        self.running = running

    @classmethod
    async def connected(cls, clock: Clock) -> AsyncIterator["InMemoryBackend"]:
        async with serving(clock, ["test"]) as running:
            backend = cls(running, clock)
            yield backend
            await backend.client.aclose()

    async def compact(self) -> None:
        await self.running.store.compact(self.running.store.revision)

    async def stranger(self) -> Client:
        return Client(self.running.transport(User(STRANGER, (AUTHENTICATED,))), self.client.clock)


class ServerThread:
    """A server on a data folder, in a thread with a loop of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: EmbeddedServer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded API server", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self.server = EmbeddedServer(self.folder, SystemClock())
        self.do(self.server.__aenter__())

    def stop(self) -> None:
        self.do(self.server.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Carry something out on the server's loop, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(STARTS_WITHIN_S)

    async def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """The same, without holding up the loop of whoever asks."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


class HttpsBackend(Backend):
    def __init__(self, client: Client, namespace: str, thread: ServerThread) -> None:
        super().__init__(client, namespace)
        self.thread = thread

    @classmethod
    async def connected(cls, clock: Clock, thread: ServerThread, namespace: str) -> AsyncIterator["HttpsBackend"]:
        client = Client(connect(str(thread.server.folder.admin_kubeconfig), None, clock, environ={}), clock)
        try:
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            yield cls(client, namespace, thread)
        finally:
            await client.aclose()

    async def compact(self) -> None:
        store = self.thread.server.running.store
        await self.thread.wait_for(store.compact(store.revision))

    async def stranger(self) -> Client:
        clock, server = self.client.clock, self.thread.server
        pair = server.authority.issue_client(STRANGER, (), clock.now())
        file = self.thread.folder / f"{STRANGER}-{next(_strangers)}.kubeconfig"
        write_kubeconfig(file, server.url, server.authority.certificate_pem, pair)
        return Client(connect(str(file), None, clock, environ={}), clock)
