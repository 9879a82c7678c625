"""What stands before a page that strangers can reach: only so many at a time, for so long, and a log without their words.

A connection costs a file, and a process that has none left can start no program. So a listener lets only so many in, counting
those that still shake hands, and closes the rest unread, or others in their place. A request that cannot be read is answered by
aiohttp and not logged: its text may hold a credential, and anybody could fill a disk with it.
"""

import asyncio
import logging
import ssl
import weakref
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from applecart.observe.logs import logger

if TYPE_CHECKING:
    from aiohttp import web

CONNECTIONS = 128  # an API server, a metrics server, a few people: tens at the most
HANDSHAKE_S = 5.0
NO_FILES = "socket.accept() out of system resource"  # as asyncio logs it, for each connection that waits
NO_FILES_TOLD = "no file is free for a new connection; raise the limit of open files"
TOLD_AGAIN_S = 60.0
IDLE_S = 120.0  # of a connection without a request; API servers let go of theirs after 90 s, and should be the first

log = logger(__name__)


class _OnlyOurFaults(logging.Filter):
    """Drops what aiohttp says about requests that cannot be read."""

    def filter(self, record: logging.LogRecord) -> bool:
        from aiohttp.http_exceptions import HttpProcessingError

        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        return not isinstance(error, HttpProcessingError)


def server_log(name: str) -> logging.Logger:
    """For aiohttp's servers."""
    found = logging.getLogger(name)
    if not any(isinstance(each, _OnlyOurFaults) for each in found.filters):
        found.addFilter(_OnlyOurFaults())
    return found


class _OutOfFiles(logging.Filter):
    """One line a minute instead of asyncio's trace for each attempt: it wrote 125,951 of them in two minutes."""

    told_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.getMessage().startswith(NO_FILES):
            return True
        if record.created - self.told_s < TOLD_AGAIN_S:
            return False
        self.told_s = record.created
        record.msg, record.args, record.exc_info = NO_FILES_TOLD, (), None
        return True


_once_a_minute = _OutOfFiles()


class _Closed(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class _Arrival(asyncio.Protocol):
    """Where a connection is until it is let in. asyncio's own servers shake hands first, also with those to be closed."""

    def __init__(self, listener: "LimitedListener", context: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._context = context

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        try:
            inside = self._listener.enter(transport)
            if self._context is not None and not isinstance(inside, _Closed):
                loop = asyncio.get_running_loop()
                # Nobody waits for the handshake, so there is no future for it; typeshed wants one, and whole seconds.
                inside = SSLProtocol(loop, inside, self._context, None, server_side=True, ssl_handshake_timeout=HANDSHAKE_S)  # type: ignore[arg-type]
            transport.set_protocol(inside)
            inside.connection_made(transport)
        except Exception:  # asyncio would tell it and keep the connection, on which nobody speaks
            log.exception("a connection could not be let in")
            transport.abort()


ThoseToGo = Callable[[Sequence[asyncio.Transport]], Sequence[asyncio.Transport]]


class LimitedListener:
    """Listens for a server of aiohttp's; `open` it. When it is full, `those_to_go` names who makes room, or nobody."""

    def __init__(self, server: "web.Server", most: int, those_to_go: ThoseToGo = lambda _: ()) -> None:
        self._server = server
        self._most = most
        self._those_to_go = those_to_go
        self._inside: weakref.WeakKeyDictionary[asyncio.Transport, None] = weakref.WeakKeyDictionary()  # oldest first
        self._is_shut = False
        self._listening: asyncio.Server | None = None

    @classmethod
    async def open(
        cls,
        server: "web.Server",
        host: str | None,
        port: int,
        *,
        context: ssl.SSLContext | None = None,
        most: int = CONNECTIONS,
        those_to_go: ThoseToGo = lambda _: (),
    ) -> Self:
        """Raises OSError, and OverflowError for a port that is none."""
        listener = cls(server, most, those_to_go)
        logging.getLogger("asyncio").addFilter(_once_a_minute)
        loop = asyncio.get_running_loop()
        listener._listening = await loop.create_server(lambda: _Arrival(listener, context), host, port)
        return listener

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of everything that is listened on."""
        return [bound.getsockname()[:2] for bound in self._listening.sockets] if self._listening else []

    def close(self) -> None:
        """Nobody new comes in."""
        if self._listening is not None:
            self._listening.close()

    def enter(self, transport: asyncio.Transport) -> asyncio.BaseProtocol:
        """Who speaks with the one that just came."""
        if len(self._inside) >= self._most:
            for each in [each for each in self._inside if each.is_closing()]:
                del self._inside[each]
        is_full = len(self._inside) >= self._most
        if is_full and not self._is_shut:
            log.warning("too many connections, some are closed", most=self._most)
        self._is_shut = is_full
        if is_full:
            going = self._those_to_go(list(self._inside))
            for each in going:
                each.abort()
            if not going:
                return _Closed()
        self._inside[transport] = None
        return self._server()
