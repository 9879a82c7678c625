"""One remote command over a WebSocket: a frame is a byte that names the channel, then bytes.

What a client may not send, and frames that name no channel, are dropped.
"""

from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from applecart.kubelet.serve.terminal import CLOSE_S, Streams, Terminal, no_common_protocol

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PIECE_BYTES = 64 << 10  # so that those that wait for a program to read them are little
MESSAGE_LIMIT_BYTES = 32 << 20  # of one frame, as a kubelet takes it


class ChannelTerminal(Terminal):
    def __init__(self, socket: web.WebSocketResponse, streams: Streams) -> None:
        super().__init__(streams)
        self._socket = socket

    async def out(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes((STDOUT,)) + data)

    async def err(self, data: bytes) -> None:
        await self._socket.send_bytes(bytes((STDOUT if self._wanted.tty else STDERR,)) + data)

    async def listen(self) -> None:
        while True:
            message = await self._socket.receive()
            if message.type is WSMsgType.BINARY:
                data: bytes = message.data
            elif message.type is WSMsgType.TEXT:
                data = message.data.encode("utf-8", "replace")
            else:
                return
            if data:
                await self._take(data[0], data[1:])

    async def close(self) -> web.StreamResponse:
        await self._socket.close()
        return self._socket

    async def _end(self, status: dict[str, Any]) -> None:
        await self._socket.send_bytes(bytes((ERROR,)) + msgspec.json.encode(status))

    async def _ask(self) -> None:
        await self._socket.ping()

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data:
            for start in range(0, len(data), PIECE_BYTES):
                await self._type(data[start : start + PIECE_BYTES])
        elif channel == CLOSE and data[:1] == bytes((STDIN,)):
            await self._type(b"")
        elif channel == RESIZE:
            self._resize(data)


def negotiate(request: web.Request) -> None:
    """Raises the refusal of a handshake that is none, or of a client that speaks none of our protocols."""
    ready = _socket().can_prepare(request)
    if not ready.ok:
        raise web.HTTPBadRequest(text="the WebSocket handshake is not one: its version, key or headers are wrong")
    if ready.protocol is None:
        raise no_common_protocol(request.headers.getall("Sec-WebSocket-Protocol", ()), PROTOCOLS)


async def accept(request: web.Request, streams: Streams) -> ChannelTerminal:
    socket = _socket()
    await socket.prepare(request)
    return ChannelTerminal(socket, streams)


def _socket() -> web.WebSocketResponse:
    return web.WebSocketResponse(protocols=PROTOCOLS, compress=False, timeout=CLOSE_S, max_msg_size=MESSAGE_LIMIT_BYTES)
