"""The API without a socket: the client's transport straight into the handlers, as one user.

It is how components in the same process talk to the API, and how a whole fleet runs on virtual time. It behaves like a network
that loses nothing: others get a turn while a call and its answer are on their way, a call ends at its deadline, and closing
the transport ends what is under way as a lost connection would. What the server has taken is done, whoever still waits for it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote

from applecart.embedded.auth.user import User
from applecart.embedded.refusals import too_large
from applecart.embedded.server.api import Api, refused
from applecart.embedded.server.bodies import BODY_LIMIT_BYTES
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, in_one_piece
from applecart.errors import DeadlineExceeded, Unreachable
from applecart.kube.transport import Request, Response

_CLOSED = "the connection to the API in this process was closed"


class InProcessStream:
    """An open answer. A read that is given up loses nothing: the next one goes on where it was."""

    def __init__(self, answer: Answer | StreamAnswer, open_streams: "dict[InProcessStream, None]") -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = headers_of(answer)
        self._open_streams = open_streams
        self._chunks: AsyncIterator[bytes] = answer.chunks if isinstance(answer, StreamAnswer) else in_one_piece(answer.body)
        self._coming: asyncio.Task[bytes] | None = None
        self._is_cut = False
        self._is_at_end = False
        open_streams[self] = None

    async def read(self) -> bytes:
        if self._is_cut:
            raise Unreachable(_CLOSED)
        if self._is_at_end:
            return b""
        if self._coming is None:
            self._coming = asyncio.create_task(_next(self._chunks))
        await asyncio.wait((self._coming,))
        if self._is_cut or self._coming.cancelled():
            raise Unreachable(_CLOSED)
        chunk, self._coming = self._coming.result(), None
        if not chunk:
            self._is_at_end = True
            self._open_streams.pop(self, None)
        return chunk

    async def aclose(self) -> None:
        self.cut()
        if self._coming is not None:
            await asyncio.wait((self._coming,))
        if (close := getattr(self._chunks, "aclose", None)) is not None:
            await close()

    def cut(self) -> None:
        """End it as a lost connection would; whoever reads is told."""
        self._is_cut = True
        self._open_streams.pop(self, None)
        if self._coming is not None:
            self._coming.cancel()


class InProcessTransport:
    """A transport that ends in this process."""

    def __init__(self, api: Api, user: User, agent: str = "applecart") -> None:
        self._api = api
        self._user = user
        self._agent = agent
        self._is_closed = False
        # Both in the order in which they began: what a close ends first must not depend on addresses in memory.
        self._calls: dict[asyncio.Timeout, None] = {}
        self._streams: dict[InProcessStream, None] = {}

    async def send(self, request: Request) -> Response:
        async with self._under_way(request):
            answer = await self._ask(request)
            body = answer.body if isinstance(answer, Answer) else b"".join([chunk async for chunk in answer.chunks])
            await asyncio.sleep(0)
        return Response(answer.status, body, headers_of(answer))

    async def open(self, request: Request) -> InProcessStream:
        async with self._under_way(request):
            answer = await self._ask(request)
            await asyncio.sleep(0)
        return InProcessStream(answer, self._streams)

    async def aclose(self) -> None:
        self.refuse()
        for stream in list(self._streams):
            stream.cut()

    def refuse(self) -> None:
        """No more calls, and those under way end; streams may come to their own end."""
        self._is_closed = True
        now_s = asyncio.get_running_loop().time()
        for call in self._calls:
            if not call.expired():
                call.reschedule(now_s)

    @asynccontextmanager
    async def _under_way(self, request: Request) -> AsyncIterator[None]:
        """Bounds a call by its deadline, and by the life of this transport."""
        if self._is_closed:
            raise Unreachable(f"{request}: {_CLOSED}")
        try:
            async with asyncio.timeout(request.deadline_s) as call:
                self._calls[call] = None
                try:
                    yield
                finally:
                    del self._calls[call]
        except TimeoutError:
            if self._is_closed:
                raise Unreachable(f"{request}: {_CLOSED}") from None
            raise DeadlineExceeded(f"{request}: no answer within {request.patience}") from None

    async def _ask(self, request: Request) -> Answer | StreamAnswer:
        await asyncio.sleep(0)
        body = request.body or b""
        if len(body) > BODY_LIMIT_BYTES:
            return refused(too_large(BODY_LIMIT_BYTES))
        headers = {"accept": request.accept, "content-type": request.content_type, "user-agent": self._agent}
        query: dict[str, str] = {}
        for name, value in request.query:
            query.setdefault(name, value)
        return await self._api.handle(ApiRequest(request.method, unquote(request.path), query, self._user, headers, body))


def headers_of(answer: Answer | StreamAnswer) -> dict[str, str]:
    """As a client of HTTP reads them: names in lower case, what occurs twice in one line."""
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if answer.content_type:
        headers["content-type"] = answer.content_type
    if answer.warnings:
        headers["warning"] = ", ".join(answer.warnings)
    return headers


async def _next(chunks: AsyncIterator[bytes]) -> bytes:
    async for chunk in chunks:
        if chunk:
            return chunk
    return b""
