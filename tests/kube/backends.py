"""What every API under test offers to a test."""

from abc import ABC, abstractmethod

from applecart.kube.client import Client

ANCIENT_REVISION = "1"  # older than anything that a running API server remembers


class Backend(ABC):
    """A connected client, a namespace of the test's own, and the powers over the server that a test needs."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    @abstractmethod
    async def compact(self) -> None:
        """Make the server forget every older revision: continue tokens of before expire."""

    @abstractmethod
    async def stranger(self) -> Client:
        """A client that may do nothing."""
