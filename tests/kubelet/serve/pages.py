"""Guests that serve pages on virtual time: a Mac of which only the ports of guests are there.

`PagesMac` answers connections from scripts of bytes; `Ports` is the node's own address, on which two cannot listen at once.
"""

import asyncio
import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from applecart.errors import Unreachable
from applecart.kubelet.serve.scrape import ScrapeAnswer, ScrapeRequest
from applecart.tart.mac import Connection, Ended, Mac
from tests.tart.test_guest_connection import IFCONFIG

METRICS = b"up 1\n"


def page(body: bytes = METRICS, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (status.encode(), len(body), body)


class PageConnection:
    def __init__(self, answer: bytes, *, stays_open: bool) -> None:
        self._left = answer
        self._step = max(7, len(answer) // 100)
        self._stays_open = stays_open
        self.request = b""
        self.is_closed = False

    async def read(self) -> bytes:
        piece, self._left = self._left[: self._step], self._left[self._step :]
        if not piece and self._stays_open:
            await asyncio.Event().wait()
        return piece

    async def write(self, data: bytes) -> None:
        self.request += data

    async def aclose(self) -> None:
        self.is_closed = True


class PagesMac:
    """Guests by address and port; what is not there is unreachable."""

    def __init__(self) -> None:
        self.pages: dict[tuple[str, int], bytes] = {}
        self.stays_open = False
        self.connections: list[PageConnection] = []
        self.dialled: list[str] = []
        self.ifconfig: Ended | Exception = Ended(0, IFCONFIG.encode())
        self.ran: list[str] = []

    async def run(self, argv: Sequence[str], *, deadline_s: float) -> Ended:
        self.ran += argv
        if isinstance(self.ifconfig, Exception):
            raise self.ifconfig
        return self.ifconfig

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        self.dialled.append(address)
        if (address, port) not in self.pages:
            raise Unreachable(f"no route to {address}:{port}")
        connection = PageConnection(self.pages[address, port], stays_open=self.stays_open)
        self.connections.append(connection)
        return connection

    @property
    def as_mac(self) -> Mac:
        return cast(Mac, self)


class Listener:
    def __init__(self, ports: "Ports", port: int) -> None:
        self._ports = ports
        self._port = port

    async def aclose(self) -> None:
        self._ports.open.pop(self._port, None)
        await asyncio.sleep(self._ports.drain_s)


class Ports:
    """Who listens where."""

    def __init__(self) -> None:
        self.open: dict[int, Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]] = {}
        self.bound: list[tuple[str, int]] = []
        self.drain_s = 0.0

    async def __call__(self, host: str, port: int, answer: Callable[[ScrapeRequest], Awaitable[ScrapeAnswer]]) -> Listener:
        await asyncio.sleep(0)
        if port in self.open:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        self.open[port] = answer
        self.bound.append((host, port))
        return Listener(self, port)

    async def get(self, port: int, path: str = "/metrics", *, method: str = "GET", source: str = "10.0.0.9") -> ScrapeAnswer:
        return await self.open[port](ScrapeRequest(source, method, path))
