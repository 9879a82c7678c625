"""The network between a client and an API server, as bad as a plan says (D8).

A TCP proxy on loopback that reads request lines and lets a plan strike: connections refused, reset, half closed or stalled at
any byte of an answer, answers replaced, lost or partly repeated. Plain HTTP to the client, TLS or plain to the server, one
connection per request, so that every request meets its own fate. Keeps a list of what it did, for whoever reads a failed test.

Whoever reaches the proxy speaks with the identity of its TLS context: it is for tests and simulations and listens on loopback
only. It logs methods and paths, never headers or bodies (I9).
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from applecart.errors import BadInput
from applecart.sim.wire_exchange import CHUNK_BYTES, Exchange, reset
from applecart.sim.wire_faults import Fault, Plan, RequestLine
from applecart.sim.wire_http import read_body, read_head

LOOPBACK = "127.0.0.1"


class ChaosProxy:
    """Use as an async context manager; change `plan` at any time, it rules the requests that come after."""

    def __init__(self, upstream: str, *, context: ssl.SSLContext | None = None, plan: Plan | None = None) -> None:
        parts = urlsplit(upstream)
        if not parts.hostname or parts.scheme not in ("http", "https"):
            raise BadInput(f"{upstream!r} is no address of a server; write it like https://127.0.0.1:6443")
        self.plan = plan
        self.facts: list[str] = []
        self.counts: Counter[str] = Counter()
        self._host = parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._context = (context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._place: socket.socket | None = None
        self._own_port = 0
        self._listener: socket.socket | None = None
        self._released = asyncio.Event()
        self._noted = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._unhandled: dict[asyncio.Task[None], socket.socket] = {}  # connections whose task has not begun
        self._exchanges: set[Exchange] = set()
        self._requests = 0

    async def __aenter__(self) -> Self:
        # Bound and never listening: it keeps the port ours while an outage closes the socket that listens.
        self._place = _bound_socket(0)
        self._own_port = self._place.getsockname()[1]
        self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_listening()
        await self._end_connections()
        if self._place is not None:
            self._place.close()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._own_port}"

    async def begin_outage(self) -> None:
        """Refuse connections and reset those that are open."""
        self._note("outage begins", "outages")
        self._stop_listening()
        await self._end_connections()

    def end_outage(self) -> None:
        if self._listener is None:
            self._note("outage ends")
            self._listen()

    def release(self) -> None:
        """Let everything go on that is delayed or stalled now."""
        self._released.set()
        self._released = asyncio.Event()

    async def until_noted(self, count: int) -> None:
        """Wait until this many facts are on the list."""
        while len(self.facts) < count:
            await self._noted.wait()

    def heal(self) -> None:
        """No more faults: not in the plan, not in an outage, not in what is under way. What was broken stays broken."""
        self._note("healed")
        self.plan = None
        for exchange in self._exchanges:
            exchange.forgive()
        self.release()
        self.end_outage()

    # Connections

    # Not asyncio's server: closing that one while a connection arrives leaks the connection, and outages do just that.

    def _listen(self) -> None:
        self._listener = _bound_socket(self._own_port)
        self._listener.listen(socket.SOMAXCONN)
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    def _stop_listening(self) -> None:
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # it may have gone again
            arrived, _ = listener.accept()
            task = asyncio.ensure_future(self._handle(arrived))
            self._tasks.add(task)
            self._unhandled[task] = arrived
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if (arrived := self._unhandled.pop(task, None)) is not None:
            arrived.close()  # the task was cancelled before it began

    async def _end_connections(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle(self, arrived: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        del self._unhandled[task]
        self.counts["connections"] += 1
        arrived.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=arrived, limit=CHUNK_BYTES)
        try:
            await self._serve(reader, writer)
            writer.close()
            await writer.wait_closed()  # a slow client still gets the rest
        except (asyncio.CancelledError, asyncio.IncompleteReadError, OSError):
            reset(writer)  # an outage, or a side went away by itself
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_head(reader)
        if head is None:
            return
        body = await read_body(reader, head)
        self._requests += 1
        line = RequestLine(self._requests, head.method, head.target)
        exchange = Exchange(line, self.plan(line) if self.plan else None, reader, writer, self)
        self._exchanges.add(exchange)
        try:
            await exchange.carry_out(head, body)
        finally:
            self._exchanges.discard(exchange)
            await exchange.aclose()

    # What an exchange asks of its proxy

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self._host, self._port, ssl=self._context, limit=CHUNK_BYTES)

    def released(self) -> Coroutine[Any, Any, bool]:
        return self._released.wait()

    def struck(self, line: RequestLine, fault: Fault) -> None:
        self._note(f"{line}: {fault}", type(fault).__name__)

    @property
    def address(self) -> str:
        return f"{self._host}:{self._port}"

    def _note(self, fact: str, count: str = "") -> None:
        self.facts.append(fact)
        if count:
            self.counts[count] += 1
        self._noted.set()
        self._noted = asyncio.Event()


def _bound_socket(port: int) -> socket.socket:
    """Shares its port with the proxy's other sockets, and with nobody else's."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((LOOPBACK, port))
    return bound
