"""The VNC server of a simulated VM: a small screen of one colour that a real viewer can look at.

It settles the password as Tart's does, in any of the three published versions of RFB, remembers what viewers sent, and answers
every request for an update with the asked-for part of the screen. It serves whatever has `read` and `write`: an end of `pair()`
on virtual time, or a socket.
"""

import asyncio
import struct
from collections.abc import Sequence
from random import Random

from applecart.errors import Unreachable
from applecart.kubelet.screen.rfb import (
    CHALLENGE_BYTES,
    NO_PASSWORD,
    PASSWORD,
    VERSION_BYTES,
    Version,
    password_answer,
    read_version,
)
from applecart.kubelet.screen.wire import Wire, WrongWords
from applecart.secrets import Secret
from applecart.sim.mac_streams import Pipe
from applecart.tart.mac import Connection

WIDTH, HEIGHT = 64, 48
PIXEL = bytes([0x40, 0x80, 0xC0, 0])
PIXEL_FORMAT = struct.pack(">BBBBHHHBBB3x", 32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
SET_ENCODINGS, UPDATE_REQUEST, CUT_TEXT = 2, 3, 6
MESSAGE_BYTES = {0: 20, SET_ENCODINGS: 4, UPDATE_REQUEST: 10, 4: 8, 5: 6, CUT_TEXT: 8}  # what comes first of each kind


class End:
    """One end of a connection in this process."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    async def read(self) -> bytes:
        return await self._incoming.read()

    async def write(self, data: bytes) -> None:
        try:
            await self._outgoing.write(data)
        except BrokenPipeError:
            raise Unreachable("the other end is closed") from None

    async def aclose(self) -> None:
        self._outgoing.end()
        self._incoming.break_off()


def pair() -> tuple[End, End]:
    there, back = Pipe(), Pipe()
    return End(there, back), End(back, there)


class SimulatedScreen:
    def __init__(
        self,
        password: Secret,
        random: Random,
        *,
        name: str = "guest",
        version: bytes = b"RFB 003.008\n",
        security: Sequence[int] = (PASSWORD,),
    ) -> None:
        self.received = b""  # all that viewers sent once they were in
        self.viewers = 0  # that were let in, ever
        self.is_shared: list[bool] = []
        self._password = password
        self._random = random
        self._name = name.encode()
        self._version = version
        self._security = bytes(security)
        self._serving: set[asyncio.Task[None]] = set()

    def dial(self) -> Connection:
        """A connection within this process."""
        ours, theirs = pair()
        task = asyncio.create_task(self.serve(ours))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return theirs

    def halt(self) -> None:
        """Its VM is gone, and every connection with it."""
        for task in self._serving:
            task.cancel()

    async def serve(self, connection: Connection) -> None:
        wire = Wire(connection)
        try:
            if await self._let_in(wire):
                self.viewers += 1
                self.is_shared.append(await wire.exactly(1) != b"\0")
                sizes = struct.pack(">HH", WIDTH, HEIGHT)
                await wire.write(sizes + PIXEL_FORMAT + len(self._name).to_bytes(4) + self._name)
                while True:
                    await self._answer(wire)
        except (Unreachable, WrongWords):
            pass  # the viewer has gone, or is none
        finally:
            await wire.aclose()

    async def _let_in(self, wire: Wire) -> bool:
        await wire.write(self._version)
        version = read_version(await wire.exactly(VERSION_BYTES))
        if version is Version.V3_3:
            kind = self._security[0]
            await wire.write(kind.to_bytes(4))
        else:
            await wire.write(bytes([len(self._security)]) + self._security)
            kind = (await wire.exactly(1))[0]
        if kind not in self._security or kind not in (NO_PASSWORD, PASSWORD):
            return False
        is_right = kind == NO_PASSWORD or await self._knows_password(wire)
        if kind == PASSWORD or version is Version.V3_8:
            why = b"" if is_right or version is not Version.V3_8 else len(b"wrong password").to_bytes(4) + b"wrong password"
            await wire.write((not is_right).to_bytes(4) + why)
        return is_right

    async def _knows_password(self, wire: Wire) -> bool:
        challenge = self._random.randbytes(CHALLENGE_BYTES)
        await wire.write(challenge)
        return await wire.exactly(CHALLENGE_BYTES) == password_answer(challenge, self._password)

    async def _answer(self, wire: Wire) -> None:
        kind = await wire.exactly(1)
        if kind[0] not in MESSAGE_BYTES:
            raise WrongWords(f"message {kind[0]} is none of a viewer's")
        message = kind + await wire.exactly(MESSAGE_BYTES[kind[0]] - 1)
        if kind[0] == SET_ENCODINGS:
            message += await wire.exactly(4 * int.from_bytes(message[2:4]))
        elif kind[0] == CUT_TEXT:
            message += await wire.exactly(int.from_bytes(message[4:8]))
        self.received += message
        if kind[0] == UPDATE_REQUEST:
            await wire.write(_update(*struct.unpack(">HHHH", message[2:10])))


def _update(x: int, y: int, width: int, height: int) -> bytes:
    """That part of the screen, as far as there is one, in plain pixels."""
    x, y = min(x, WIDTH), min(y, HEIGHT)
    width, height = min(width, WIDTH - x), min(height, HEIGHT - y)
    return struct.pack(">BxHHHHHi", 0, 1, x, y, width, height, 0) + PIXEL * (width * height)
