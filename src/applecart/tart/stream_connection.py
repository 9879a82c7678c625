"""A TCP connection, of whichever side: pieces in, pieces out, and an end that nobody can hold up.

An error is `Unreachable` when it may be the peer's doing. What this host has run out of is `Transient` only: whoever judges a
guest by its connections must not hold a fault of the host against it (I12).
"""

import asyncio
import errno
from contextlib import suppress

from applecart.errors import Transient, Unreachable

HOST_HAS_NONE_LEFT = frozenset(  # of descriptors, memory, or ports of its own
    {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN, errno.EADDRNOTAVAIL}
)
PIECE_BYTES = 64 << 10
CLOSE_S = 1.0  # for what was written last, such as the reason of a refusal


class StreamConnection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str) -> None:
        """`peer` is who is at the other end, for people."""
        self._reader = reader
        self._writer = writer
        self._peer = peer

    async def read(self) -> bytes:
        try:
            return await self._reader.read(PIECE_BYTES)
        except OSError as error:
            raise self._closed(error) from None

    async def write(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise self._closed(error) from None

    async def aclose(self) -> None:
        """A peer that does not read gets a moment; then the connection is cut, whatever was still to be sent."""
        self._writer.close()
        try:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._writer.wait_closed()
        finally:
            self._writer.transport.abort()

    def _closed(self, error: OSError) -> Transient:
        said = error.strerror or error
        if error.errno in HOST_HAS_NONE_LEFT:
            return Transient(f"this host cannot keep the connection to {self._peer}: {said}")
        return Unreachable(f"{self._peer} closed the connection: {said}")
