"""The seam between the client and whatever answers it.

A transport carries one request and brings back bytes; it knows nothing of kinds, retries or watches. `applecart.kube.http`
speaks HTTP(S) to a real API server; the embedded API server plugs in here in-process, so that a whole fleet runs on virtual
time without a socket. A transport raises `Unreachable` or `DeadlineExceeded` when there was no answer, and never turns an HTTP
status into an exception: that is the client's work.

`FencedTransport` lets writes through only while we lead. A process can stand still for a minute (a paused VM, a swapped-out
host) and wake up with work in its hands that another has taken over; no timer of ours can fire before that work takes its next
step, so every write asks the clock first, and again once its connection stands (`FENCE`). A write that left before the pause
can still arrive late; revisions and preconditions are what guard those (I1).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

import msgspec

from applecart.errors import Transient

JSON = "application/json"
READS = frozenset({"GET", "HEAD", "OPTIONS"})


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str  # without query: "/api/v1/namespaces/ci/pods"
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    deadline_s: float = 30.0  # of the whole call; of a stream, until its headers have arrived
    given_s: float = 0.0  # the deadline of all attempts, when `deadline_s` is what is left of it

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def patience(self) -> str:
        """The deadline as whoever gave it knows it."""
        return f"{self.given_s or self.deadline_s:g} s"


class Response(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}  # names in lower case


class Stream(Protocol):
    """An open answer whose body arrives over time."""

    status: int
    headers: Mapping[str, str]  # names in lower case

    async def read(self) -> bytes:
        """Whatever has arrived, waiting for at least one byte; b"" when the server ended the body properly.

        The bytes are those that the server sent, in order. A body that breaks off raises `Unreachable`: the end of a stream
        and its loss are different things.
        """

    async def aclose(self) -> None:
        """Give the answer up; safe to call twice."""


class Transport(Protocol):
    async def send(self, request: Request) -> Response:
        """One call, its whole answer."""

    async def open(self, request: Request) -> Stream:
        """One call whose answer is read as it comes. The caller closes it."""

    async def aclose(self) -> None:
        """Release connections; calls under way end with `Unreachable`."""


class NotLeading(Transient):
    """The write was not sent, because this process no longer leads."""


# What refuses the call that is being made: a credential or a connection may have taken long to come.
FENCE: ContextVar[Callable[[], None] | None] = ContextVar("FENCE", default=None)


class FencedTransport:
    def __init__(self, inner: Transport, is_leader: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_leader = is_leader

    async def send(self, request: Request) -> Response:
        with self._fenced(request):
            return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        with self._fenced(request):
            return await self._inner.open(request)

    async def aclose(self) -> None:
        """Nothing: the transport belongs to whoever gave it, and standbys keep reading through it."""

    @contextmanager
    def _fenced(self, request: Request) -> Iterator[None]:
        def check() -> None:
            if request.method not in READS and not self._is_leader():
                raise NotLeading(f"{request}: not sent, this process does not lead (any more)")

        check()
        token = FENCE.set(check)
        try:
            yield
        finally:
            FENCE.reset(token)
