"""One remote command as its client sees it: what is typed, what is printed, the size of a window, and the Status that ends it.

The two ways to carry it are `channel_terminal.py` (WebSocket) and `spdy_terminal.py`. stdin is bounded: a program that does
not read stops its client, however much that has to say.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import web

from applecart.observe.logs import logger

PIECES_WAITING = 16  # of stdin, before the client must wait
STALLED_S = 5.0  # until a client whose typing nobody reads is asked whether it is still there
CLOSE_S = 1.0  # for the client's goodbye; its command has ended already

log = logger(__name__)

SUCCESS = {"metadata": {}, "status": "Success"}


class _Window(msgspec.Struct):
    Width: int = 0
    Height: int = 0


class Streams(msgspec.Struct, frozen=True):
    """Which of them the client asked for."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class Terminal(ABC):
    """The streams of a command, on a connection of its client."""

    def __init__(self, streams: Streams) -> None:
        self._wanted = streams
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(PIECES_WAITING)
        self._sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue(PIECES_WAITING)

    # For the command

    async def read(self) -> bytes:
        """What was typed; empty when no more will be."""
        return await self._typed.get() if self._wanted.stdin else b""

    async def size(self) -> tuple[int, int]:
        """The next size of the client's window, columns and rows."""
        return await self._sizes.get()

    @abstractmethod
    async def out(self, data: bytes) -> None: ...

    @abstractmethod
    async def err(self, data: bytes) -> None:
        """A terminal has one stream for both."""

    async def finish(self, code: int) -> None:
        await self._end(exit_status(code))

    async def fail(self, why: str) -> None:
        """The command could not be run, or nobody knows how it ended."""
        await self._end(failure_status(why))

    # For the connection

    @abstractmethod
    async def listen(self) -> None:
        """Takes what the client sends, until it goes."""

    @abstractmethod
    async def close(self) -> web.StreamResponse:
        """Says goodbye; the answer to the client's request, which is over."""

    @abstractmethod
    async def _end(self, status: dict[str, Any]) -> None: ...

    @abstractmethod
    async def _ask(self) -> None:
        """Write something that a client which is still there does not mind."""

    async def _type(self, data: bytes) -> None:
        """Empty: no more will come."""
        while self._wanted.stdin:
            try:
                async with asyncio.timeout(STALLED_S):
                    await self._typed.put(data)
                return
            except TimeoutError:
                # Nothing is read from a client that must wait, so its leaving is noticed only by writing to it.
                await self._ask()

    def _resize(self, data: bytes) -> None:
        try:
            window = msgspec.json.decode(data, type=_Window)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if self._sizes.full():
            self._sizes.get_nowait()  # nobody looks at sizes without a terminal, and only the last one counts
        self._sizes.put_nowait((window.Width, window.Height))


def no_common_protocol(offered: Iterable[str], ours: Iterable[str]) -> web.HTTPForbidden:
    """In a kubelet's words, by which the embedded API knows that nothing else stands in the way."""
    said = f"client supports [{' '.join(offered)}], server accepts [{' '.join(ours)}]"
    return web.HTTPForbidden(text=f"unable to upgrade: unable to negotiate protocol: {said}")


async def run_while_heard(terminal: Terminal, program: Coroutine[Any, Any, None]) -> web.StreamResponse:
    """The program until it ends and its client was told, or until its client goes: then it is cancelled."""
    running = asyncio.create_task(_told(terminal, program))
    listening = asyncio.create_task(terminal.listen())
    try:
        await asyncio.wait((running, listening), return_when=asyncio.FIRST_COMPLETED)
    finally:
        was_running = not running.done()
        for task in (running, listening):
            task.cancel()
        _, heard = await asyncio.gather(running, listening, return_exceptions=True)
        if was_running and isinstance(heard, Exception) and not isinstance(heard, ConnectionError):
            await _lost(terminal, heard)
        answer = await terminal.close()
    return answer


async def _told(terminal: Terminal, program: Coroutine[Any, Any, None]) -> None:
    try:
        await program
    except ConnectionError:
        pass  # the client went away
    except Exception as error:
        await _lost(terminal, error)


async def _lost(terminal: Terminal, error: Exception) -> None:
    log.error("a remote command broke", exc_info=error)
    with suppress(ConnectionError, TimeoutError):  # a client whose streams never came cannot be told
        async with asyncio.timeout(CLOSE_S):
            await terminal.fail("the agent lost the command; its log says why")


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
