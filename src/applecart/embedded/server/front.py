"""HTTPS in front of the API: connections, identities and bodies, and nothing that knows a kind.

TLS always. A client certificate is asked for and not required: tokens come in a header. Bodies are bounded, requests in flight
are bounded, a reader that does not read is cut off. Only HTTP/1.1, which every client speaks.
"""

import asyncio
import logging
import ssl
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from applecart.embedded.auth.authenticate import Authenticator
from applecart.embedded.auth.impersonation import PREFIX, impersonated
from applecart.embedded.auth.user import ANONYMOUS, User
from applecart.embedded.refusals import Refusal, bad_request, too_large, too_many_requests
from applecart.embedded.relay.relay import Relay
from applecart.embedded.relay.streams import STREAM_PATHS, is_stream_request
from applecart.embedded.server.api import Api, refused
from applecart.embedded.server.guard import Guard
from applecart.embedded.server.request import BODY_LIMIT_BYTES, Answer, ApiRequest, StreamAnswer, is_true
from applecart.embedded.server.request_log import RequestLog
from applecart.errors import BadInput

MOST_IN_FLIGHT = 400  # requests that are no watches; the real server's default for reads
RETRY_AFTER_S = 1
BEHIND_BYTES = 32 << 10  # what waits for a reader that takes its time; asyncio lets a writer wait at 64 kB
STALLED_S = 60.0  # a stream whose reader takes nothing for so long is cut
KEEPALIVE_S = 75.0  # also the time that the headers of a first request may take
BODY_S = 60.0  # from the last header to the last byte of the body; the real server ends whole requests then
STOP_GRACE_S = 2.0
SWITCHING_PROTOCOLS = 101

_quiet = logging.getLogger("applecart.embedded.http")  # what strangers send is answered, not logged with a trace
_quiet.setLevel(logging.CRITICAL)
_HEADERS = {"Cache-Control": "no-cache, private"}


class Front:
    """The listening server; use as an async context manager."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        guard: Guard,
        context: ssl.SSLContext,
        *,
        host: str,
        port: int,
        log: RequestLog,
        relay: Relay | None = None,
    ) -> None:
        self._api = api
        self._authenticator = authenticator
        self._guard = guard
        self._context = context
        self._host = host
        self._log = log
        self._relay = relay
        self.port = port
        self._certificates: weakref.WeakKeyDictionary[Any, bytes | None] = weakref.WeakKeyDictionary()
        self._in_flight = 0

    async def __aenter__(self) -> Self:
        server = web.Server(
            self._handle,
            request_factory=_request_factory,
            access_log=None,
            logger=_quiet,
            keepalive_timeout=KEEPALIVE_S,
            lingering_time=0,
            handler_cancellation=True,  # a reader that goes away takes its watch along; writes under way are shielded
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_GRACE_S)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self.port, ssl_context=self._context, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            raise BadInput(f"cannot listen on {self._host}:{self.port} ({error.strerror}); choose another port") from None
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._api.core.store.close_watchers()  # first, or the server would wait for readers that wait for it
        await self._runner.cleanup()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        started = self._log.now()
        user = ANONYMOUS
        try:
            _refuse_garbled(raw)
            user = self._user(raw)
            if self._relay is not None and is_stream_request(raw):
                return await self._upgrade(self._relay, raw, user, started)
            request = await self._read(raw, user)
            answer = await self._ask(request)
        except Refusal as refusal:
            answer = refused(refusal)
        self._log.write(raw.method, _logged_path(raw), user.name, answer.status, raw.remote, started)
        if isinstance(answer, StreamAnswer):
            return await self._stream(raw, answer)
        response = web.Response(status=answer.status, body=answer.body, headers={**_HEADERS, **answer.headers})
        _tell(response, answer)
        return response

    async def _upgrade(self, relay: Relay, raw: web.BaseRequest, user: User, started: float) -> web.StreamResponse:
        opened = await relay.open(user, raw)
        self._log.write(raw.method, _logged_path(raw), user.name, SWITCHING_PROTOCOLS, raw.remote, started)
        return await opened.run(raw)

    async def _ask(self, request: ApiRequest) -> Answer | StreamAnswer:
        if is_true(request.query.get("watch")):
            return await self._api.handle(request)
        if self._in_flight >= MOST_IN_FLIGHT:
            raise too_many_requests("too many requests, please try again later", RETRY_AFTER_S)
        self._in_flight += 1
        try:
            return await self._api.handle(request)
        finally:
            self._in_flight -= 1

    def _user(self, raw: web.BaseRequest) -> User:
        user = self._authenticator.user(self._certificate(raw), raw.headers.get("Authorization"))
        for name in raw.headers:
            if name[:1] in "iI" and name.lower().startswith(PREFIX):
                return impersonated(user, raw.headers.items(), self._guard.authorizer.decide) or user
        return user

    def _certificate(self, raw: web.BaseRequest) -> bytes | None:
        transport = raw.transport
        if transport is None:
            return None
        try:
            return self._certificates[transport]
        except KeyError:
            secured = transport.get_extra_info("ssl_object")
            shown = secured.getpeercert(binary_form=True) if secured else None
            self._certificates[transport] = shown
            return shown

    async def _read(self, raw: web.BaseRequest, user: User) -> ApiRequest:
        body = b""
        if raw.body_exists:
            try:
                async with asyncio.timeout(BODY_S):
                    body = await raw.read()
            except web.HTTPRequestEntityTooLarge:
                raise too_large(BODY_LIMIT_BYTES) from None
            except web.RequestPayloadError:  # compressed, and not as its header says; or cut off
                raise bad_request("the body of the request cannot be read as its headers say") from None
            except TimeoutError:
                raise Refusal(408, "Timeout", f"the body did not arrive within {BODY_S:g} s") from None
        query: dict[str, str] = {}
        if raw.query_string:
            for name, value in raw.query.items():
                query.setdefault(name, value)
        headers = {name.lower(): value for name, value in raw.headers.items()}
        return ApiRequest(raw.method, raw.path, query, user, headers, body)

    async def _stream(self, raw: web.BaseRequest, answer: StreamAnswer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={**_HEADERS, **answer.headers})
        _tell(response, answer)
        response.enable_chunked_encoding()
        chunks = answer.chunks
        try:
            await response.prepare(raw)
            async for chunk in chunks:
                transport = raw.transport
                if transport is None or transport.is_closing():
                    break  # nobody to send it to
                if transport.get_write_buffer_size() < BEHIND_BYTES:
                    await response.write(chunk)
                else:
                    async with asyncio.timeout(STALLED_S):  # a timer for each event would cost more than the event
                        await response.write(chunk)
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            if raw.transport is not None:
                with suppress(AttributeError):  # before Python 3.11.5 a TLS transport that was closed twice cannot be aborted
                    raw.transport.abort()
        finally:
            close: Callable[[], Any] | None = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        return response


def _logged_path(raw: web.BaseRequest) -> str:
    """Without the query of exec, which is a command line and may hold what nobody else shall read (I9)."""
    return raw.path if raw.path.endswith(STREAM_PATHS) else raw.path_qs


def _refuse_garbled(raw: web.BaseRequest) -> None:
    """What is no UTF-8 in a header cannot be shown, logged or stored, wherever it would end up."""
    for value in raw.headers.values():
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise bad_request("a header of the request is not valid UTF-8") from None


def _tell(response: web.StreamResponse, answer: Answer | StreamAnswer) -> None:
    if answer.content_type:
        response.headers["Content-Type"] = answer.content_type
    for warning in answer.warnings:
        response.headers.add("Warning", warning)


def _request_factory(
    message: Any, payload: Any, protocol: RequestHandler, writer: Any, task: "asyncio.Task[None]"
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=BODY_LIMIT_BYTES)
