"""How a client wants its remote command carried: over WebSocket or over SPDY, with the streams that its query names."""

from typing import Self

import msgspec
from aiohttp import web

from applecart.kubelet.serve import channel_terminal, spdy_terminal
from applecart.kubelet.serve.terminal import Streams, Terminal

WEBSOCKET = "websocket"
NO_UPGRADE = "a remote command needs a connection that can be upgraded to WebSocket or SPDY/3.1; use kubectl"


class Upgrade(msgspec.Struct, frozen=True):
    """Look first whether it is to be refused, before anything is started for it."""

    request: web.Request
    streams: Streams
    is_spdy: bool

    @classmethod
    def asked(cls, request: web.Request) -> Self:
        """Raises the refusal of a request that cannot be carried."""
        stdin, stdout, stderr, tty = (request.query.get(name) == "1" for name in ("input", "output", "error", "tty"))
        if not (stdin or stdout or stderr):
            raise web.HTTPBadRequest(text="you must specify at least 1 of stdin, stdout, stderr")
        way = request.headers.get("Upgrade", "").lower()
        if way not in (WEBSOCKET, spdy_terminal.SPDY.lower()):
            raise web.HTTPBadRequest(text=NO_UPGRADE)
        return cls(request, Streams(stdin, stdout, stderr, tty), is_spdy=way != WEBSOCKET)

    def negotiate(self) -> None:
        """Raises the refusal of a client that speaks none of our protocols."""
        (spdy_terminal if self.is_spdy else channel_terminal).negotiate(self.request)

    async def accept(self) -> Terminal:
        if self.is_spdy:
            return await spdy_terminal.accept(self.request, self.streams)
        return await channel_terminal.accept(self.request, self.streams)
