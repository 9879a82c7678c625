"""Frames between a client and an agent, both ways, until one of them ends.

Each side is read only as fast as the other takes it, so nothing piles up here. A client always learns how its command ended:
if the agent goes without a word, the word is said for it.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from aiohttp import WSCloseCode, WSMessage, WSMsgType

from applecart.embedded.relay.frames import ERROR, FROM_AGENT, FROM_CLIENT, channel_of, lost_frame

LOST = "the connection to the node agent ended before the command did"
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
    ending = _Ending()
    to_agent = asyncio.create_task(_copy(client, agent, FROM_CLIENT, lambda _: None))
    to_client = asyncio.create_task(_copy(agent, client, FROM_AGENT, ending.note))
    try:
        await asyncio.wait((to_agent, to_client), return_when=asyncio.FIRST_COMPLETED)
        if to_client.done() and not ending.is_told:
            with suppress(*_GONE):
                await client.send_bytes(lost_frame(LOST))
    finally:
        for task in (to_agent, to_client):
            task.cancel()
        await asyncio.gather(to_agent, to_client, return_exceptions=True)
        await asyncio.gather(_close(agent, client.close_code), _close(client, agent.close_code))


class _Ending:
    """Whether the agent has said how the command ended."""

    is_told = False

    def note(self, channel: int) -> None:
        self.is_told |= channel == ERROR


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
