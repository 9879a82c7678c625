"""A server on loopback that authenticates as an API server does, and misbehaves when told to.

It knows which tokens and which client certificates it accepts, and remembers what was asked of it. Sockets and TLS are real,
so a test that uses it is marked `real_time`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from aiohttp import web

from applecart.embedded.trust.pki import Authority, Pair, write_pair

STATUS = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}


class Seen(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, list[str]]
    body: bytes
    client: str  # common name of the client certificate, or ""
    connection: int  # the same number for calls that shared a connection


class ApiStandIn:
    def __init__(self) -> None:
        self.url = ""
        self.tokens: set[str] | None = None  # None: everybody may call
        self.seen: list[Seen] = []
        self.chunks: asyncio.Queue[bytes | None] = asyncio.Queue()  # of the stream; None breaks it off
        self.arrived = asyncio.Event()  # a call that is never answered has come
        self._connections: dict[int, int] = {}

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["ApiStandIn"]:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, shutdown_timeout=0.0, handler_cancellation=True, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(await self._seen(request))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and token not in self.tokens and not self.seen[-1].client:
            return web.json_response({**STATUS, "reason": "Unauthorized", "message": "Unauthorized", "code": 401}, status=401)
        match request.path.rsplit("/", 1)[-1]:
            case "version":
                return web.json_response({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
            case "selfsubjectreviews":
                user = {"username": self.seen[-1].client or "robot", "groups": ["system:authenticated"]}
                return web.json_response({"status": {"userInfo": user}}, status=201)
            case "silence":
                self.arrived.set()
                await asyncio.Event().wait()
            case "stream":
                return await self._stream(request)
            case "gzipped":
                answer = web.Response(body=b"x" * 100_000)
                answer.enable_compression(web.ContentCoding.gzip)
                return answer
            case "big":
                return web.Response(body=bytes(int(request.query["bytes"])))
            case "away":
                return web.Response(status=302, headers={"Location": "https://elsewhere.test/"})
            case "hangup":
                assert request.transport is not None
                request.transport.abort()
        return web.json_response({**STATUS, "reason": "NotFound", "code": 404}, status=404, headers={"Retry-After": "7"})

    async def _seen(self, request: web.Request) -> Seen:
        transport = request.transport
        assert transport is not None
        certificate = transport.get_extra_info("peercert") or {}
        names = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
        return Seen(
            request.method,
            request.raw_path.partition("?")[0],
            tuple(request.query.items()),
            {name.lower(): request.headers.getall(name) for name in request.headers},
            await request.read(),
            names[0] if names else "",
            self._connections.setdefault(id(transport), len(self._connections)),
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            chunk = await self.chunks.get()
            if chunk is None:
                assert request.transport is not None
                request.transport.abort()
                return answer
            if not chunk:
                return answer
            await answer.write(chunk)


class Certificates:
    """An authority and what it issued, as files that ssl can load."""

    def __init__(self, folder: Path, name: str = "fleet-ca") -> None:
        self._folder = folder
        self.now = datetime.now(UTC)
        self.authority = Authority.create(name, self.now)
        self.ca_pem = self.authority.certificate_pem.decode()

    def server_context(
        self, *names: str, at: datetime | None = None, asks_client: ssl.VerifyMode = ssl.CERT_OPTIONAL
    ) -> ssl.SSLContext:
        """What a server speaks TLS with. `at` is when its certificate was issued."""
        pair = self.authority.issue_server(names or ("127.0.0.1",), at or self.now)
        files = write_pair(self._folder, "server", pair)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(cadata=self.ca_pem)
        context.verify_mode = asks_client
        return context

    def client(self, user: str, at: datetime | None = None) -> Pair:
        return self.authority.issue_client(user, [], at or self.now)
