"""One request on its way through the chaos proxy, and what its fault does to it.

Relays bytes and understands none of an answer. Ends when the answer ended, the fault ended it, or the client went away; the
server never waits for a client that is gone.
"""

import asyncio
import socket
import struct
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from applecart.sim.wire_faults import (
    Answer,
    AnswerFault,
    Cut,
    Delay,
    Fault,
    HalfClose,
    LoseAnswer,
    Passage,
    RequestLine,
    Stall,
)
from applecart.sim.wire_http import Head, canned_answer

T = TypeVar("T")

CHUNK_BYTES = 1 << 16
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for zero seconds: close sends RST


class Surroundings(Protocol):
    """What an exchange needs of its proxy."""

    @property
    def address(self) -> str:
        """Host and port of the server."""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A new connection to the server."""

    def released(self) -> Coroutine[Any, Any, bool]:
        """Ends, with True, at the first release after this call: not after the first look, which may come later."""

    def struck(self, line: RequestLine, fault: Fault) -> None:
        """Write down that a fault did its work."""


class Exchange:
    def __init__(
        self,
        line: RequestLine,
        fault: Fault | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        surroundings: Surroundings,
    ) -> None:
        self._line = line
        self._fault = fault
        self._passage = Passage(fault if isinstance(fault, AnswerFault) else None)
        self._writer = writer
        self._around = surroundings
        # The client has said all it has to say: what ends this is its going away.
        self._gone = asyncio.ensure_future(reader.read(1))

    def forgive(self) -> None:
        """A fault that did not strike yet never will."""
        self._fault = None
        self._passage.forgive()

    async def aclose(self) -> None:
        self._gone.cancel()
        with suppress(asyncio.CancelledError, OSError):
            await self._gone

    async def carry_out(self, head: Head, body: bytes) -> None:
        if isinstance(self._fault, Answer):
            self._around.struck(self._line, self._fault)
            self._writer.write(canned_answer(self._fault.status, self._fault.retry_after_s))
            await self._writer.drain()
            return
        if isinstance(self._fault, Delay):
            self._around.struck(self._line, self._fault)
            if not await self._unless_gone(self._around.released()):
                return
        from_server, to_server = await self._around.connect()
        try:
            to_server.write(head.for_upstream(self._around.address) + body)
            await to_server.drain()
            await self._relay(from_server)
        finally:
            to_server.transport.abort()

    async def _relay(self, from_server: asyncio.StreamReader) -> None:
        """Hand the answer on until it ends or something ends it."""
        while chunk := await self._unless_gone(from_server.read(CHUNK_BYTES)):
            if isinstance(self._fault, LoseAnswer):
                self._around.struck(self._line, self._fault)
                reset(self._writer)
                return
            was_struck = self._passage.struck
            self._writer.write(self._passage.let_through(chunk))
            await self._writer.drain()
            if self._passage.struck and not was_struck and not await self._strike():
                return

    async def _strike(self) -> bool:
        """Do what the fault says; whether the answer goes on after it."""
        fault = self._passage.fault
        if fault is None:
            return True
        self._around.struck(self._line, fault)
        if isinstance(fault, Cut):
            reset(self._writer)
            return False
        if isinstance(fault, HalfClose):
            self._writer.write_eof()
            await self._gone
            return False
        if isinstance(fault, Stall):
            if not await self._unless_gone(self._around.released()):
                return False
            self._writer.write(self._passage.held_back)
        return True

    async def _unless_gone(self, wanted: Coroutine[Any, Any, T]) -> T | None:
        """The result, or None when the client went away before there was one."""
        task = asyncio.ensure_future(wanted)
        try:
            await asyncio.wait((task, self._gone), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            task.cancel()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection at once, for the other side to see."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    writer.transport.abort()
