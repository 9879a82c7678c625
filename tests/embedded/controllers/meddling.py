"""A network on which something happens at the worst moment: between a decision and the request that carries it out."""

from collections.abc import Awaitable, Callable

from applecart.kube.transport import Request, Response, Stream, Transport

Meddle = Callable[[Request], Awaitable[None]]


class Meddler:
    """Does something once, right before the first request that matches goes through."""

    def __init__(self, inner: Transport, when: Callable[[Request], bool], meddle: Meddle) -> None:
        self.has_meddled = False
        self._inner = inner
        self._when = when
        self._meddle = meddle

    async def send(self, request: Request) -> Response:
        if not self.has_meddled and self._when(request):
            self.has_meddled = True
            await self._meddle(request)
        return await self._inner.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._inner.open(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
