"""A transport that lets writes through only while we lead.

A process can stand still for a minute (a paused VM, a swapped-out host) and wake up with work in its hands that another has
taken over. No timer of ours can fire before that work takes its next step, so the step itself is checked: every write asks the
clock first. A write that left before the pause can still arrive late; revisions and preconditions are what guard those (I1).
"""

from collections.abc import Callable

from applecart.errors import Transient
from applecart.kube.transport import READS, Request, Response, Stream, Transport


class NotLeading(Transient):
    """The write was not sent, because this process no longer leads."""


class FencedTransport:
    def __init__(self, inner: Transport, is_leader: Callable[[], bool]) -> None:
        self._inner = inner
        self._is_leader = is_leader

    async def send(self, request: Request) -> Response:
        self._check(request)
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        self._check(request)
        return await self._inner.open(request)

    async def aclose(self) -> None:
        """Nothing: the transport belongs to whoever gave it, and standbys keep reading through it."""

    def _check(self, request: Request) -> None:
        if request.method not in READS and not self._is_leader():
            raise NotLeading(f"{request}: not sent, this process does not lead (any more)")
