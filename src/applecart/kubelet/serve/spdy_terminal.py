"""One remote command over SPDY/3.1, which API servers before 1.36 speak to their agents.

The client opens a stream for each of stdin, stdout, stderr, the size of its window, and the Status that ends it. Whatever else
it opens is refused. It has some seconds to open all that it asked for, and nothing is printed before.
"""

import asyncio
from contextlib import aclosing, suppress
from typing import Any

import msgspec
from aiohttp import web

from applecart.kubelet.serve.spdy_frames import (
    BadFrame,
    Data,
    Frame,
    Opened,
    Ping,
    Replies,
    Reset,
    data,
    ping,
    read_frames,
    refusal,
)
from applecart.kubelet.serve.terminal import CLOSE_S, Streams, Terminal, no_common_protocol

SPDY = "SPDY/3.1"
PROTOCOL = "v4.channel.k8s.io"
PROTOCOL_HEADER = "X-Stream-Protocol-Version"
STREAM_TYPE = "streamtype"
STDIN, STDOUT, STDERR, ERROR, RESIZE = "stdin", "stdout", "stderr", "error", "resize"
STREAMS_S = 30.0  # for the client to open its streams, as a kubelet gives it
UNREAD_BYTES = 64 << 10  # of what the client sent, before it must wait
SENT_BYTES = 1 << 20  # in one frame; it may have 16 MB
OUR_PING = 2  # a server's are even


class SpdyTerminal(Terminal):
    def __init__(self, response: web.StreamResponse, heard: asyncio.StreamReader, streams: Streams) -> None:
        super().__init__(streams)
        self._response = response
        self._heard = heard
        self._missing = expected(streams)
        self._streams: dict[str, int] = {}
        self._types: dict[int, str] = {}
        self._replies = Replies()
        self._ready = asyncio.Event()
        self._waiting = asyncio.timeout(STREAMS_S)
        self._is_over = False

    async def out(self, data: bytes) -> None:
        await self._print(STDOUT, data)

    async def err(self, data: bytes) -> None:
        await self._print(STDOUT if self._wanted.tty else STDERR, data)

    async def listen(self) -> None:
        with suppress(BadFrame, TimeoutError):  # a client without SPDY or without streams cannot be told in its own words
            async with self._waiting, aclosing(read_frames(self._heard)) as frames:
                async for frame in frames:
                    await self._take(frame)

    async def close(self) -> web.StreamResponse:
        if self._is_over:
            # A connection closed under a client that still sends is reset, and takes with it what was on its way there.
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(CLOSE_S):
                    while await self._heard.read(UNREAD_BYTES):
                        pass
        return self._response

    async def _end(self, status: dict[str, Any]) -> None:
        await self._ready.wait()
        for kind in (STDOUT, STDERR):
            await self._send(kind, b"", is_last=True)
        await self._send(ERROR, msgspec.json.encode(status), is_last=True)
        self._is_over = True

    async def _ask(self) -> None:
        await self._response.write(ping(OUR_PING))

    async def _print(self, kind: str, printed: bytes) -> None:
        await self._ready.wait()
        for start in range(0, len(printed), SENT_BYTES):
            await self._send(kind, printed[start : start + SENT_BYTES])

    async def _send(self, kind: str, sent: bytes, *, is_last: bool = False) -> None:
        stream = self._streams.get(kind)
        if stream is not None:
            await self._response.write(data(stream, sent, is_last=is_last))

    async def _take(self, frame: Frame) -> None:
        match frame:
            case Opened(stream, headers):
                await self._open(stream, headers.get(STREAM_TYPE, ""))
            case Ping(number):
                if number % 2:
                    await self._response.write(ping(number))
                return
            case Data(stream, typed):
                if self._types.get(stream) == STDIN and typed:
                    await self._type(typed)
                elif self._types.get(stream) == RESIZE:
                    self._resize(typed)
            case _:  # a stream that the client gave up takes no more
                self._streams.pop(self._types.get(frame.stream, ""), None)
        if (isinstance(frame, Reset) or frame.is_last) and self._types.get(frame.stream) == STDIN:
            await self._type(b"")

    async def _open(self, stream: int, kind: str) -> None:
        if kind not in self._missing:
            await self._response.write(refusal(stream))
            return
        self._missing.discard(kind)
        self._streams[kind], self._types[stream] = stream, kind
        await self._response.write(self._replies.to(stream))
        if not self._missing:
            self._waiting.reschedule(None)
            self._ready.set()


class _Heard:
    """What aiohttp hands the bytes of an upgraded connection to."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._stream.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._stream.feed_eof()


def expected(streams: Streams) -> set[str]:
    """What a client that asked for these will open. A terminal has one stream for all that is printed."""
    asked = {STDIN: streams.stdin, STDOUT: streams.stdout, STDERR: streams.stderr and not streams.tty, RESIZE: streams.tty}
    return {ERROR} | {kind for kind, is_asked in asked.items() if is_asked}


def negotiate(request: web.Request) -> None:
    """Raises the refusal of a client that does not speak our protocol."""
    offered = [word.strip() for line in request.headers.getall(PROTOCOL_HEADER, ()) for word in line.split(",")]
    if PROTOCOL not in offered:
        raise no_common_protocol(offered, [PROTOCOL])


async def accept(request: web.Request, streams: Streams) -> SpdyTerminal:
    headers = {"Connection": "Upgrade", "Upgrade": SPDY, PROTOCOL_HEADER: PROTOCOL}
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    heard = asyncio.StreamReader(UNREAD_BYTES)
    assert request.transport is not None
    heard.set_transport(request.transport)  # which waits when too much is unread
    request.protocol.set_parser(_Heard(heard))  # type: ignore[arg-type]  # it asks for no more than these two
    await response.prepare(request)
    return SpdyTerminal(response, heard, streams)
