"""The API without a socket: the client's transport straight into the handlers, as one user.

It is how components in the same process talk to the API, and how a whole fleet runs on virtual time.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

from applecart.embedded.auth.user import User
from applecart.embedded.server.api import Api
from applecart.embedded.server.messages import Answer, ApiRequest, StreamAnswer
from applecart.errors import DeadlineExceeded, Unreachable
from applecart.kube.transport import Request, Response


class InProcessStream:
    """An open answer."""

    def __init__(self, answer: Answer | StreamAnswer, open_streams: "set[InProcessStream]") -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in answer.headers.items()}
        self._open_streams = open_streams
        self._chunks: AsyncIterator[bytes] = answer.chunks if isinstance(answer, StreamAnswer) else _one(answer.body)
        self._reading: asyncio.Task[bytes] | None = None
        self._is_cut = False
        open_streams.add(self)

    async def read(self) -> bytes:
        if self._is_cut:
            raise Unreachable("the API in this process was closed")
        self._reading = asyncio.ensure_future(self._next())
        try:
            return await self._reading
        except asyncio.CancelledError:
            if (self._is_cut and not (task := asyncio.current_task())) or (task and not task.cancelling()):
                raise Unreachable("the API in this process was closed") from None
            raise
        finally:
            self._reading = None

    async def aclose(self) -> None:
        self._open_streams.discard(self)
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            with suppress(RuntimeError):  # it is being read: whoever reads is told, and the generator ends with its task
                await close()

    def cut(self) -> None:
        """End it as a lost connection would."""
        self._is_cut = True
        if self._reading is not None:
            self._reading.cancel()

    async def _next(self) -> bytes:
        async for chunk in self._chunks:
            if chunk:
                return chunk
        return b""


class InProcessTransport:
    """A transport that ends in this process."""

    def __init__(self, api: Api, user: User, agent: str = "applecart") -> None:
        self._api = api
        self._user = user
        self._agent = agent
        self._is_closed = False
        self._streams: set[InProcessStream] = set()

    async def send(self, request: Request) -> Response:
        answer = await self._ask(request)
        body = answer.body if isinstance(answer, Answer) else b"".join([chunk async for chunk in answer.chunks])
        return Response(answer.status, body, {name.lower(): value for name, value in answer.headers.items()})

    async def open(self, request: Request) -> InProcessStream:
        return InProcessStream(await self._ask(request), self._streams)

    async def aclose(self) -> None:
        self._is_closed = True
        for stream in list(self._streams):
            stream.cut()

    async def _ask(self, request: Request) -> Answer | StreamAnswer:
        if self._is_closed:
            raise Unreachable(f"{request}: the API in this process was closed")
        headers = {"accept": request.accept, "content-type": request.content_type, "user-agent": self._agent}
        query: dict[str, str] = {}
        for name, value in request.query:
            query.setdefault(name, value)
        asked = ApiRequest(request.method, request.path, query, self._user, headers, request.body or b"")
        try:
            async with asyncio.timeout(request.deadline_s):
                return await self._api.handle(asked)
        except TimeoutError:
            raise DeadlineExceeded(f"{request}: no answer within {request.deadline_s:g} s") from None


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body
