"""What every API under test offers to a test, and the one in memory."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from applecart.clock import Clock
from applecart.kube.client import Client
from tests.kube.memory_api import MemoryApi

ANCIENT_REVISION = "1"  # older than anything that a running API server remembers


class Backend(ABC):
    """A connected client, a namespace of the test's own, and the powers over the server that a test needs."""

    serves_all_patches = True

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    @abstractmethod
    async def compact(self) -> None:
        """Make the server forget every older revision: continue tokens of before expire."""

    @abstractmethod
    async def stranger(self) -> Client | None:
        """A client that may do nothing, or None where everybody may do everything."""


class MemoryBackend(Backend):
    serves_all_patches = False

    def __init__(self, server: MemoryApi, clock: Clock) -> None:
        super().__init__(Client(server, clock), "test")
        self.server = server

    @classmethod
    async def connected(cls, clock: Clock) -> AsyncIterator["MemoryBackend"]:
        backend = cls(MemoryApi(clock), clock)
        yield backend
        await backend.client.aclose()

    async def compact(self) -> None:
        self.server.compact()

    async def stranger(self) -> Client | None:
        return None
