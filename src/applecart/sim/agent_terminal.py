"""One remote command over a WebSocket, as the agent sees it: channels in and out, and the Status that ends it.

stdin is bounded: a program that does not read stops its client, however much that has to say.
"""

import asyncio
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PIECES_WAITING = 16  # of stdin, before the client must wait

SUCCESS = {"metadata": {}, "status": "Success"}


class _Window(msgspec.Struct):
    Width: int = 0
    Height: int = 0


class ChannelTerminal:
    """The streams of a command, on the channels of a connection."""

    def __init__(self, socket: web.WebSocketResponse, *, has_stdin: bool, has_tty: bool) -> None:
        self._socket = socket
        self._has_stdin = has_stdin
        self._has_tty = has_tty
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(PIECES_WAITING)
        self._sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue(PIECES_WAITING)

    async def read(self) -> bytes:
        return await self._typed.get() if self._has_stdin else b""

    async def out(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes((STDOUT,)) + data)

    async def err(self, data: bytes) -> None:
        """A terminal has one stream for both."""
        await self._socket.send_bytes(bytes((STDOUT if self._has_tty else STDERR,)) + data)

    async def size(self) -> tuple[int, int]:
        return await self._sizes.get()

    async def finish(self, code: int) -> None:
        await self._socket.send_bytes(bytes((ERROR,)) + msgspec.json.encode(exit_status(code)))

    async def listen(self) -> None:
        """Takes what the client sends, until it goes."""
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                data: bytes = message.data
            elif message.type is WSMsgType.TEXT:
                data = message.data.encode()
            else:
                return
            if data:
                await self._take(data[0], data[1:])

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data:
            await self._typed.put(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)):
            await self._typed.put(b"")
        elif channel == RESIZE:
            try:
                window = msgspec.json.decode(data, type=_Window)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return
            await self._sizes.put((window.Width, window.Height))


def exit_status(code: int) -> dict[str, Any]:
    if code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
