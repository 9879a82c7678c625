"""The port on which viewers come: sockets become connections with a source address. Decides nothing."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from applecart.errors import Unreachable
from applecart.tart.mac import Connection

PIECE_BYTES = 64 << 10
CLOSE_S = 1.0  # for what was written last, such as the reason of a refusal

Accept = Callable[[Connection, str], None]


class Listening(Protocol):
    @property
    def port(self) -> int: ...

    async def aclose(self) -> None:
        """No new connections; those there are belong to whoever accepted them."""


class Listen(Protocol):
    """Listen on an address; port 0 takes any. The seam to sockets. Raises OSError."""

    async def __call__(self, host: str, port: int, accept: Accept) -> Listening: ...


class ViewerConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(PIECE_BYTES)
        except OSError as error:
            raise Unreachable(f"the viewer closed the connection: {error.strerror or error}") from None

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise Unreachable(f"the viewer closed the connection: {error.strerror or error}") from None

    async def aclose(self) -> None:
        """A viewer that does not read gets a moment; then its connection is cut, whatever was still to be sent."""
        self._writer.close()
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._writer.wait_closed()
        finally:
            self._writer.transport.abort()


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
        accept(ViewerConnection(reader, writer), str(peer[0]) if peer else "")

    return ViewerPort(await asyncio.start_server(connected, host, port))
