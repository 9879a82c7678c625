"""HTTPS in front of the API: connections, identities and bodies, and nothing that knows a kind.

TLS always. A client certificate is asked for and not required: tokens come in a header. Connections, requests in flight and
bytes of bodies are bounded, for all and for one; a body is read once it is known who may send it; a reader that does not read
is cut off. Health, administrators and the heartbeats of nodes are answered while others wait. Only HTTP/1.1, which every client
speaks.
"""

import asyncio
import logging
import ssl
import weakref
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_writer import StreamWriter
from aiohttp.web_protocol import RequestHandler

from applecart.api.node_access import NODE_LEASES
from applecart.embedded.auth.authenticate import PREFIX, Authenticator, impersonated
from applecart.embedded.auth.authorize import PUBLIC_PATHS, Authorizer
from applecart.embedded.auth.user import ANONYMOUS, MASTERS, Attributes, User
from applecart.embedded.refusals import Refusal, bad_request, too_large, too_many_requests
from applecart.embedded.relay.relay import Relay
from applecart.embedded.relay.streams import STREAM_PATHS, OpenStream, is_stream_request
from applecart.embedded.server.api import SMALL_BODY_BYTES, Api, defect, refused
from applecart.embedded.server.bodies import BODY_LIMIT_BYTES
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, attributes_of, in_one_piece
from applecart.embedded.server.request_log import RequestLog
from applecart.errors import BadInput
from applecart.observe.connection_limit import LimitedListener
from applecart.observe.logs import logger
from applecart.observe.open_files import raise_limit

MOST_CONNECTIONS = 2000  # 200 nodes with a few each, many times over
MOST_IN_FLIGHT = 400  # requests that come to an end, until their readers have it; the real server's default for reads
MOST_BODY_BYTES = 64 << 20  # of all bodies that were read and not answered yet
LONGEST_URL_BYTES = 32 << 10  # long lists of labels are selected by
LONGEST_HEADER_BYTES = 16 << 10  # a token is 1 or 2 kB
LINGERING_S = 2.0  # for what still comes of a body that nobody reads; a client that is cut off would not see its answer
RETRY_AFTER_S = 1
BEHIND_BYTES = 32 << 10  # what waits for a reader that takes its time; asyncio lets a writer wait at 64 kB
STALLED_S = 60.0  # a stream whose reader takes nothing for so long is cut
PIECE_BYTES = 64 << 10  # of an answer: what waits for a reader is shared, but for as much as this
PIECES_AT_ONCE = 8  # written in one turn of the loop, each for another user: one takes up to 0.5 ms
KEEPALIVE_S = 75.0  # also the time that the headers of a first request may take
BODY_S = 60.0  # from the last header to the last byte of the body; the real server ends whole requests then
STOP_GRACE_S = 2.0
SWITCHING_PROTOCOLS = 101

_log = logger(__name__)
_quiet = logging.getLogger("applecart.embedded.http")  # what strangers send is answered, not logged with a trace
_quiet.setLevel(logging.CRITICAL)
_HEADERS = {"Cache-Control": "no-cache, private"}


class Front:
    """The listening server; use as an async context manager."""

    def __init__(
        self,
        api: Api,
        authenticator: Authenticator,
        authorizer: Authorizer,
        context: ssl.SSLContext,
        *,
        host: str,
        port: int,
        log: RequestLog,
        relay: Relay | None = None,
    ) -> None:
        self._api = api
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._context = context
        self._host = host
        self._log = log
        self._relay = relay
        self.port = port
        self._certificates: weakref.WeakKeyDictionary[Any, bytes | None] = weakref.WeakKeyDictionary()
        self._users: weakref.WeakKeyDictionary[Any, User] = weakref.WeakKeyDictionary()  # of connections that asked something
        self.in_flight = Shares(MOST_IN_FLIGHT)
        self.body_bytes = Shares(MOST_BODY_BYTES)
        self._pieces = asyncio.Semaphore(PIECES_AT_ONCE)
        self._pieces_of: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def __aenter__(self) -> Self:
        self._most = min(MOST_CONNECTIONS, raise_limit() // 2)
        server = _Server(
            self._handle,
            request_factory=_request_factory,
            access_log=None,
            logger=_quiet,
            keepalive_timeout=KEEPALIVE_S,
            lingering_time=LINGERING_S,
            max_line_size=LONGEST_URL_BYTES,
            max_field_size=LONGEST_HEADER_BYTES,
            auto_decompress=False,  # as the real server; a few bytes may stand for gigabytes
            handler_cancellation=True,  # a reader that goes away takes its watch along; writes under way are shielded
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=STOP_GRACE_S)
        await self._runner.setup()
        try:
            self._listener = await LimitedListener.open(
                server, self._host, self.port, context=self._context, most=self._most, those_to_go=self._greediest
            )
        except OSError as error:
            await self._runner.cleanup()
            raise BadInput(f"cannot listen on {self._host}:{self.port} ({error.strerror}); choose another port") from None
        self.port = self._listener.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._api.core.store.close_watchers()  # first, or the server would wait for readers that wait for it
        self._listener.close()
        await self._runner.cleanup()

    def _greediest(self, inside: Sequence[asyncio.Transport]) -> Sequence[asyncio.Transport]:
        """Whose connections make room for new ones: the oldest of whoever has most, strangers together being one.

        Several at a time, because to count them for each that comes would cost more than the connection."""
        users = {transport.get_extra_info("peername"): user for transport, user in self._users.items()}
        connections: defaultdict[str, list[asyncio.Transport]] = defaultdict(list)
        for transport in inside:
            user = users.get(transport.get_extra_info("peername"), ANONYMOUS)
            if MASTERS not in user.groups:
                connections[user.name].append(transport)
        return max(connections.values(), key=len)[: max(1, self._most // 32)] if connections else ()

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        in_flight: list[User] = []  # whose request counts until all of its answer is sent
        try:
            return await self._answer(raw, in_flight)
        finally:
            for payer in in_flight:
                self.in_flight.give(payer, 1)

    async def _answer(self, raw: web.BaseRequest, in_flight: list[User]) -> web.StreamResponse:
        started = self._log.now()
        user = ANONYMOUS
        answer: Answer | StreamAnswer | OpenStream
        try:
            _refuse_garbled(raw)
            user = self._authenticator.user(self._certificate(raw), raw.headers.get("Authorization"))
            if raw.transport is not None:
                self._users[raw.transport] = user.payer
            user = self._acting_as(user, raw)
            if self._relay is not None and is_stream_request(raw):
                answer = await self._relay.open(user, raw)
            else:
                answer = await self._ask(raw, user, in_flight)
        except Refusal as refusal:
            answer = refused(refusal)
        except Exception:  # outside of the API: who it is, what is upgraded
            answer = defect(raw.method, raw.path)
        status = SWITCHING_PROTOCOLS if isinstance(answer, OpenStream) else answer.status
        self._log.write(raw.method, _logged_path(raw), user.name, status, raw.remote, started)
        if isinstance(answer, OpenStream):
            return await self._run(answer, raw)
        if isinstance(answer, StreamAnswer):
            return await self._stream(raw, answer, user.payer)
        if len(answer.body) > PIECE_BYTES and raw.method != "HEAD":
            return await self._stream(raw, answer, user.payer)
        response = web.Response(status=answer.status, body=answer.body, headers={**_HEADERS, **answer.headers})
        _tell(response, answer)
        return response

    async def _run(self, opened: OpenStream, raw: web.BaseRequest) -> web.StreamResponse:
        try:
            return await opened.run(raw)
        except Exception:  # its connection takes no answers any more, and aiohttp is told to say nothing
            _log.exception("a remote command broke off in a way nobody foresaw", call=f"{raw.method} {raw.path}")
            raise

    async def _ask(self, raw: web.BaseRequest, user: User, in_flight: list[User]) -> Answer | StreamAnswer:
        query: dict[str, str] = {}
        if raw.query_string:
            for name, value in raw.query.items():
                query.setdefault(name, value)
        headers = {name.lower(): value for name, value in raw.headers.items()}
        request = ApiRequest(raw.method, raw.path, query, user, headers)
        payer = user.payer
        if _waits_for_nobody(payer, asked := attributes_of(raw.method, raw.path, query)):
            if raw.body_exists:
                most_bytes = BODY_LIMIT_BYTES if MASTERS in payer.groups else SMALL_BODY_BYTES  # a Lease; health has none
                request.read_body = lambda: self._body(raw, lambda _: None, most_bytes)
            return await self._api.handle(request)
        taken_bytes = 0

        def count(more_bytes: int) -> None:
            nonlocal taken_bytes
            self.body_bytes.take(payer, more_bytes)
            taken_bytes += more_bytes

        if raw.body_exists:
            request.read_body = lambda: self._body(raw, count)
        if asked.verb != "watch" and asked.subresource != "log":
            self.in_flight.take(payer, 1)
            in_flight.append(payer)
        try:
            return await self._api.handle(request)
        finally:
            self.body_bytes.give(payer, taken_bytes)

    def _acting_as(self, user: User, raw: web.BaseRequest) -> User:
        for name in raw.headers:
            if name[:1] in "iI" and name.lower().startswith(PREFIX):
                return impersonated(user, raw.headers.items(), self._authorizer.decide) or user
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

    async def _body(self, raw: web.BaseRequest, count: Callable[[int], None], most_bytes: int = BODY_LIMIT_BYTES) -> bytes:
        """All of the body, once it is known who may send it."""
        if (raw.content_length or 0) > most_bytes:
            raise too_large(most_bytes)
        body = bytearray()
        try:
            async with asyncio.timeout(None if raw.content.is_eof() else BODY_S):  # most bodies come with their headers
                while chunk := await raw.content.readany():
                    if len(body) + len(chunk) > most_bytes:
                        raise too_large(most_bytes)
                    count(len(chunk))
                    body += chunk
        except web.RequestPayloadError:  # cut off, or not in the chunks that its header promises
            raise bad_request("the body of the request cannot be read as its headers say") from None
        except TimeoutError:
            raise Refusal(408, "Timeout", f"the body did not arrive within {BODY_S:g} s") from None
        return bytes(body)

    async def _stream(self, raw: web.BaseRequest, answer: Answer | StreamAnswer, payer: User) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers={**_HEADERS, **answer.headers})
        _tell(response, answer)
        if isinstance(answer, Answer):
            response.content_length = len(answer.body)
        else:
            response.enable_chunked_encoding()
        chunks = answer.chunks if isinstance(answer, StreamAnswer) else in_one_piece(answer.body)
        try:
            await response.prepare(raw)
            if raw.transport is not None:
                raw.transport.set_write_buffer_limits(PIECE_BYTES)  # half a megabyte would wait for each reader otherwise
            async for chunk in chunks:
                transport = raw.transport
                if transport is None or transport.is_closing():
                    return response  # nobody to send it to
                if len(chunk) > PIECE_BYTES:
                    await self._write_large(raw, chunk, payer)
                elif transport.get_write_buffer_size() < BEHIND_BYTES:
                    await response.write(chunk)
                else:
                    async with asyncio.timeout(STALLED_S):  # a timer for each event would cost more than the event
                        await response.write(chunk)
                chunk = b""  # the next may come in an hour
            await response.write_eof()
        except (ConnectionError, TimeoutError):
            _abort(raw)
        except Refusal as refusal:  # of what comes later in a list; without its end nobody takes it for the whole
            _log.info("an answer broke off", call=f"{raw.method} {raw.path}", because=refusal.message)
            _abort(raw)
        except Exception:  # what is sent already cannot become a refusal, and aiohttp is told to say nothing
            _log.exception("an answer broke off in a way nobody foresaw", extra={"call": f"{raw.method} {raw.path}"})
            raise
        finally:
            close: Callable[[], Awaitable[None]] | None = getattr(chunks, "aclose", None)
            if close is not None:
                await close()
        return response

    async def _write_large(self, raw: web.BaseRequest, chunk: bytes, payer: User) -> None:
        """One user's pieces take turns, and nobody's turn lasts until a reader has read."""
        writer = raw.writer
        assert isinstance(writer, StreamWriter)
        own_turn = self._pieces_of.setdefault(payer.name, asyncio.Lock())
        for first in range(0, len(chunk), PIECE_BYTES):
            async with asyncio.timeout(STALLED_S):
                await writer.drain()
            async with own_turn, self._pieces:
                await writer.write(memoryview(chunk)[first : first + PIECE_BYTES], drain=False)
                await asyncio.sleep(0)


class Shares:
    """What all may use together, and of it one user at most half, so that nobody takes it all."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.taken = 0
        self._of: Counter[str] = Counter()

    def take(self, user: User, amount: int) -> None:
        if amount and (self.taken + amount > self._most or self._of[user.name] + amount > self._most // 2):
            raise too_many_requests("too many requests, please try again later", RETRY_AFTER_S)
        self.taken += amount
        self._of[user.name] += amount

    def give(self, user: User, amount: int) -> None:
        self.taken -= amount
        self._of[user.name] -= amount
        if not self._of[user.name]:
            del self._of[user.name]


def _waits_for_nobody(user: User, asked: Attributes) -> bool:
    """Whom no limit stops: those who would mend it, and those whose silence would cost a node its work."""
    is_heartbeat = asked.resource == "leases" and asked.namespace == NODE_LEASES and user.keeps_nodes_alive
    return MASTERS in user.groups or asked.path in PUBLIC_PATHS or is_heartbeat


class _Connection(RequestHandler):
    """Says also what is no request in the API's own words."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        response = super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong):
            limit = exc.args[1]
            refusal = Refusal(414, "RequestURITooLong", f"the URL is too long: limit is {limit}")
            if limit == LONGEST_HEADER_BYTES:
                refusal = Refusal(431, "RequestHeaderFieldsTooLarge", f"a header is too large: limit is {limit}")
            told = refused(refusal)
            response = web.Response(status=told.status, body=told.body, headers=_HEADERS)
            _tell(response, told)
            response.force_close()
        return response


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


def _abort(raw: web.BaseRequest) -> None:
    if raw.transport is not None:
        with suppress(AttributeError):  # before Python 3.11.5 a TLS transport that was closed twice cannot be aborted
            raw.transport.abort()


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
