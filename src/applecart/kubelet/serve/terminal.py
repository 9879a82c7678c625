"""One remote command over a WebSocket, as an agent sees it: channels in and out, and the Status that ends it.

A frame is a byte that names the channel, then bytes. stdin is bounded: a program that does not read stops its client, however
much that has to say. What a client may not send, and frames that name no channel, are dropped. SPDY is not spoken.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PIECES_WAITING = 16  # of stdin, before the client must wait
STALLED_S = 5.0  # until a client whose typing nobody reads is asked whether it is still there
MESSAGE_LIMIT_BYTES = 32 << 20  # of one frame, as a kubelet takes it
CLOSE_S = 1.0  # for the client's goodbye; its command has ended already
ONLY_WEBSOCKET = (
    "this agent streams over WebSocket only: use kubectl 1.30 or newer, or KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true with 1.29"
)

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
        await self._end(exit_status(code))

    async def fail(self, why: str) -> None:
        """The command could not be run, or nobody knows how it ended."""
        await self._end(failure_status(why))

    async def listen(self) -> None:
        """Takes what the client sends, until it goes."""
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

    async def _end(self, status: dict[str, Any]) -> None:
        await self._socket.send_bytes(bytes((ERROR,)) + msgspec.json.encode(status))

    async def _take(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and self._has_stdin:
            await self._put(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)) and self._has_stdin:
            await self._put(b"")
        elif channel == RESIZE:
            try:
                window = msgspec.json.decode(data, type=_Window)
            except (msgspec.DecodeError, UnicodeDecodeError):
                return
            if self._sizes.full():
                self._sizes.get_nowait()  # nobody looks at sizes without a terminal, and only the last one counts
            self._sizes.put_nowait((window.Width, window.Height))

    async def _put(self, data: bytes) -> None:
        while True:
            try:
                async with asyncio.timeout(STALLED_S):
                    return await self._typed.put(data)
            except TimeoutError:
                # Nothing is read from a client that must wait, so its leaving is noticed only by writing to it.
                await self._socket.ping()


def refuse_other_upgrades(request: web.Request) -> None:
    """Raises the refusal of a request that is no WebSocket, or speaks none of our protocols."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise web.HTTPBadRequest(text=ONLY_WEBSOCKET)
    ready = _socket().can_prepare(request)
    if not ready.ok or ready.protocol is None:
        raise web.HTTPBadRequest(text=f"a remote command needs one of the WebSocket protocols {', '.join(PROTOCOLS)}")


async def accept(request: web.Request) -> web.WebSocketResponse:
    """The upgraded connection. Look first whether it is to be refused, before anything is started for it."""
    socket = _socket()
    await socket.prepare(request)
    return socket


def _socket() -> web.WebSocketResponse:
    return web.WebSocketResponse(protocols=PROTOCOLS, compress=False, timeout=CLOSE_S, max_msg_size=MESSAGE_LIMIT_BYTES)


async def run_while_heard(socket: web.WebSocketResponse, terminal: ChannelTerminal, program: Coroutine[Any, Any, None]) -> None:
    """The program until it ends, or until its client goes: then it is cancelled."""
    running = asyncio.ensure_future(program)
    listening = asyncio.create_task(terminal.listen())
    try:
        await asyncio.wait((running, listening), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            with suppress(ConnectionError):
                running.result()
    finally:
        for task in (running, listening):
            task.cancel()
        await asyncio.gather(running, listening, return_exceptions=True)
        await socket.close()


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


def failure_status(why: str) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {why}",
        "reason": "InternalError",
        "details": {"causes": [{"message": why}]},
        "code": 500,
    }
