"""The port on which viewers come: sockets become connections with a source address. Decides nothing."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from applecart.tart.mac import Connection
from applecart.tart.stream_connection import StreamConnection

Accept = Callable[[Connection, str], None]


class Listening(Protocol):
    @property
    def port(self) -> int: ...

    async def aclose(self) -> None:
        """No new connections; those there are belong to whoever accepted them."""


class Listen(Protocol):
    """Listen on an address; port 0 takes any. The seam to sockets. Raises OSError."""

    async def __call__(self, host: str, port: int, accept: Accept) -> Listening: ...


class ViewerPort:
    def __init__(self, server: asyncio.Server) -> None:
        self._server = server

    @property
    def port(self) -> int:
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        self._server.close()


async def listen_viewers(host: str, port: int, accept: Accept) -> ViewerPort:
    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        accept(StreamConnection(reader, writer, "the viewer"), str(peer[0]) if peer else "")

    return ViewerPort(await asyncio.start_server(connected, host, port))
