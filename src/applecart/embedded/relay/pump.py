"""Frames between a client and an agent, both ways, until one of them ends.

A frame is a byte that names the channel, then bytes. Channels go one way each: what a side may not send, and frames that name
no channel, are dropped. Each side is read only as fast as the other takes it, so nothing piles up here. A client always learns
how its command ended: if the agent goes without a word, the word is said for it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec
from aiohttp import WSCloseCode, WSMessage, WSMsgType

V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
PROTOCOLS = (V5, V4)  # the newer one closes one stream of several, which stdin that ends needs

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
FROM_CLIENT = frozenset({STDIN, RESIZE, CLOSE})
FROM_AGENT = frozenset({STDOUT, STDERR, ERROR, CLOSE})


def channel_of(frame: bytes | str) -> int | None:
    """The channel of a frame, which may come as text; None when it names none."""
    if not frame:
        return None
    return ord(frame[0]) if isinstance(frame, str) else frame[0]


def offered_protocols(headers: list[str]) -> tuple[str, ...]:
    """Those that a client offers and that are spoken here, in the client's order."""
    offered = [name.strip() for header in headers for name in header.split(",")]
    return tuple(dict.fromkeys(name for name in offered if name in PROTOCOLS))


def lost_frame(why: str) -> bytes:
    """The end of a command of which nobody knows how it ended: a Status on the error channel, as every end."""
    return bytes((ERROR,)) + msgspec.json.encode(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {why}",
            "reason": "InternalError",
            "details": {"causes": [{"message": why}]},
            "code": 500,
        }
    )


LOST = "the connection to the node agent ended before the command did"
LAST_WORDS_S = 2.0  # for what is still to be told when one side has gone
_UNSAYABLE = (1005, 1006, 1015)  # codes that describe an end and may not be sent
_GONE = (ConnectionError, RuntimeError)  # a peer that is closed, or closing


class End(Protocol):
    """One side: a server's or a client's WebSocket."""

    @property
    def close_code(self) -> int | None: ...
    async def receive(self) -> WSMessage: ...
    async def send_bytes(self, data: bytes) -> None: ...
    async def send_str(self, data: str) -> None: ...
    async def close(self, *, code: int = ..., message: bytes = ...) -> object: ...


async def pump(client: End, agent: End) -> None:
    """Returns when both sides are closed."""
    is_told = False  # by the agent, how the command ended

    def note(channel: int) -> None:
        nonlocal is_told
        is_told |= channel == ERROR

    to_agent = asyncio.create_task(_copy(client, agent, FROM_CLIENT, lambda _: None))
    to_client = asyncio.create_task(_copy(agent, client, FROM_AGENT, note))
    try:
        await asyncio.wait((to_agent, to_client), return_when=asyncio.FIRST_COMPLETED)
        if client.close_code is None:  # it is there: what the agent said before it went is on its way
            await asyncio.wait((to_client,), timeout=LAST_WORDS_S)
            to_client.cancel()
        if not is_told:
            with suppress(*_GONE, TimeoutError):
                async with asyncio.timeout(LAST_WORDS_S):
                    await client.send_bytes(lost_frame(LOST))
    finally:
        for task in (to_agent, to_client):
            task.cancel()
        ends = await asyncio.gather(to_agent, to_client, return_exceptions=True)
        await asyncio.gather(_close(agent, client.close_code), _close(client, agent.close_code))
    for end in ends:
        if isinstance(end, Exception):
            raise end  # a bug of ours; both sides are closed, and one was told


async def _copy(source: End, sink: End, channels: frozenset[int], note: Callable[[int], None]) -> None:
    """Until the source ends or the sink takes no more."""
    while True:
        message = await source.receive()
        if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
            return
        channel = channel_of(message.data)
        if channel is None or channel not in channels:
            continue
        try:
            if message.type is WSMsgType.BINARY:
                await sink.send_bytes(message.data)
            else:
                await sink.send_str(message.data)
        except _GONE:
            return
        note(channel)


async def _close(end: End, code: int | None) -> None:
    if code is None:
        code = WSCloseCode.OK
    elif code in _UNSAYABLE or not 1000 <= code < 5000:
        code = WSCloseCode.INTERNAL_ERROR
    with suppress(*_GONE):
        await end.close(code=code)
