"""A connection read in measured pieces: so many bytes, a line, or whatever is there.

What came with one piece and belongs to the next is kept: a viewer may send its token and its first words at once. A peer that
ends too early is `Unreachable`; nothing here waits without the caller's deadline, and nothing grows beyond what was asked for.
"""

from applecart.errors import Transient, Unreachable
from applecart.tart.mac import Connection


class WrongWords(Transient):
    """A peer does not speak the protocol, or says no. The text is ours, never the peer's password or token."""


class Wire:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._held = bytearray()

    async def exactly(self, count: int) -> bytes:
        while len(self._held) < count:
            await self._more()
        return self._take(count)

    async def line(self, longest_bytes: int) -> bytes:
        """Without its end."""
        while (end := self._held.find(b"\n", 0, longest_bytes)) < 0:
            if len(self._held) >= longest_bytes:
                raise WrongWords(f"the first line is longer than {longest_bytes} bytes")
            await self._more()
        return self._take(end + 1)[:-1]

    async def piece(self) -> bytes:
        """What is there next; empty at the end."""
        return self._take(len(self._held)) if self._held else await self._connection.read()

    async def write(self, data: bytes) -> None:
        await self._connection.write(data)

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def _more(self) -> None:
        data = await self._connection.read()
        if not data:
            raise Unreachable("the connection ended in the middle of the greeting")
        self._held += data

    def _take(self, count: int) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken
