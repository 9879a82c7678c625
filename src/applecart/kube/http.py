"""The transport that speaks HTTP(S) to a real API server.

One call is one exchange: no retries here except the one replay after a 401 with a fresh credential, which is safe because the
server did nothing. Every call has a deadline (I13), every failure is a sentence without secrets (I9). A final 401 keeps its
status and gets a body that names the credential and where it was written. aiohttp is imported with the first call, so that
importing this module costs nothing.
"""

import asyncio
import io
import os
import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import msgspec

from applecart import __version__
from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded, NeverSent, Permanent, Unreachable
from applecart.kube.auth.credentials import NO_CREDENTIAL, ClientCertificate, Credential, Credentials
from applecart.kube.auth.expiry import expires_at, spoken_age
from applecart.kube.endpoint import Endpoint, proxy_for
from applecart.kube.tls import speaks_tls, tls_context, tls_failure
from applecart.kube.transport import Request, Response, Stream

if TYPE_CHECKING:
    import aiohttp

CONNECT_DEADLINE_S = 10.0  # TCP and TLS; a server that needs longer is down, and the call's own deadline is for the answer
KEEP_ALIVE_S = 30.0  # below the 60 s after which common load balancers drop an idle connection without a word
MAX_BODY_BYTES = 512 << 20  # ten times a list of 10,000 Pods; beyond it something else answers, and memory matters more
READ_BUFFER_BYTES = 1 << 18  # a burst of watch events arrives in one piece
WHOLE_BODY_BYTES = 1 << 20  # aiohttp's own limit for sending a body without letting the loop do anything else
_PATH_SAFE = "/:@!$&'()*+,;=~%"  # names in a path are already encoded (`applecart.kube.paths`)


def explained(error: Exception, request: Request, endpoint: Endpoint, certificate: ClientCertificate | None) -> Exception:
    """The error to raise instead. One that no network causes is a bug and comes back as it is."""
    import aiohttp

    if isinstance(error, ApplecartError):
        return error
    server = endpoint.server
    tls_error = _tls_cause(error)
    failure = tls_failure(tls_error, endpoint, certificate) if tls_error is not None else None
    if failure is not None:
        return failure
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NeverSent(f"{server} does not accept a connection in time; check {endpoint.server_from} and the network")
    if isinstance(error, TimeoutError):
        return DeadlineExceeded(f"{request}: {server} did not answer within {request.patience}")
    if isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError):
        proxy_from = endpoint.proxy_from if endpoint.proxy_url else "variable HTTPS_PROXY or HTTP_PROXY"
        return NeverSent(f"the proxy on the way to {server} does not let us through; check {proxy_from}")
    if isinstance(error, aiohttp.ClientConnectorError):
        reason = _os_reason(error.os_error)
        return NeverSent(f"{server} is unreachable ({reason}); check {endpoint.server_from} and that the server runs")
    if isinstance(error, aiohttp.InvalidURL):
        return NeverSent(f"{server} is no usable address; correct {endpoint.server_from}")
    if isinstance(error, aiohttp.ClientResponseError):
        if not endpoint.is_https:
            return speaks_tls(endpoint)
        return Unreachable(f"{request}: {server} answered something that is not HTTP; check {endpoint.server_from}")
    if isinstance(error, aiohttp.ClientPayloadError):
        return Unreachable(f"{request}: the answer of {server} broke off")
    if isinstance(error, aiohttp.ClientError | OSError):
        reason = _os_reason(error) if isinstance(error, OSError) and error.errno else "connection closed"
        advice = "" if endpoint.is_https else f"; if it speaks TLS, write https:// in {endpoint.server_from}"
        return Unreachable(f"{request}: {server} went away before it answered ({reason}){advice}")
    return error


def _os_reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "its host name is unknown"
    if error.errno and error.errno > 0:
        return os.strerror(error.errno).lower()
    return "no connection"


def _tls_cause(error: BaseException | None) -> ssl.SSLError | None:
    """The TLS failure behind an exception of aiohttp, which wraps it in several ways."""
    for _ in range(8):
        if error is None:
            return None
        # aiohttp's own errors inherit from ssl.SSLError too, but know neither reason nor code.
        inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", None)
        if inner is None and isinstance(error, ssl.SSLError):
            return error
        error = inner if isinstance(inner, BaseException) else error.__cause__ or error.__context__
    return None


class AnswerTooLarge(Permanent):
    """The body went over `MAX_BODY_BYTES` and was dropped."""


class HttpTransport:
    def __init__(self, endpoint: Endpoint, credentials: Credentials, clock: Clock, environ: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self.credentials = credentials
        self._clock = clock
        self._proxy = proxy_for(endpoint, environ)
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None
        self._tls_certificate: ClientCertificate | None = None
        self._is_closed = False

    async def send(self, request: Request) -> Response:
        loop = asyncio.get_running_loop()
        credential = await self.credentials.get()
        started_at = loop.time()
        response = await self._send_once(request, credential, request.deadline_s)
        if response.status == 401:
            left_s = request.deadline_s - (loop.time() - started_at)
            fresh = await self.credentials.get(rejected=credential)
            if fresh is not credential:
                credential, response = fresh, await self._send_once(request, fresh, left_s)
        if response.status == 401:
            return msgspec.structs.replace(response, body=self._refusal(credential))
        if response.status == 400 and not self.endpoint.is_https and b"HTTPS server" in response.body:
            raise speaks_tls(self.endpoint)
        return response

    async def open(self, request: Request) -> Stream:
        credential = await self.credentials.get()
        stream = await self._open_once(request, credential)
        if stream.status == 401:
            await stream.aclose()
            fresh = await self.credentials.get(rejected=credential)
            if fresh is not credential:
                credential, stream = fresh, await self._open_once(request, fresh)
        if stream.status == 401:
            await stream.aclose()
            return _RefusedStream(stream.headers, self._refusal(credential))
        return stream

    async def aclose(self) -> None:
        self._is_closed = True
        await self.credentials.aclose()
        if self._session is not None:
            await self._session.close()
            await asyncio.sleep(0)  # what was aborted is closed by the loop's next round

    async def _send_once(self, request: Request, credential: Credential, deadline_s: float) -> Response:
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._exchange(request, credential, streamed=False)
                async with answer:
                    body = await _whole_body(answer, request)
                return Response(answer.status, body, _lower(answer.headers))
        except Exception as error:
            raise self._failure(error, request) from None

    async def _open_once(self, request: Request, credential: Credential) -> "HttpStream":
        try:
            async with asyncio.timeout(request.deadline_s):
                answer = await self._exchange(request, credential, streamed=True)
        except Exception as error:
            raise self._failure(error, request) from None
        return HttpStream(answer, request, self)

    async def _exchange(self, request: Request, credential: Credential, *, streamed: bool) -> "aiohttp.ClientResponse":
        """Send the request and wait for the headers of the answer."""
        from multidict import CIMultiDict
        from yarl import URL

        if self._is_closed:
            raise Unreachable(f"{request}: the connection to {self.endpoint.server} was closed")
        headers = CIMultiDict(credential.impersonation)
        headers["Accept"] = request.accept
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if streamed or self.endpoint.disable_compression:
            headers["Accept-Encoding"] = "identity"  # a compressing proxy would hold back events to fill its blocks
        authorization = credential.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        url = self.endpoint.server + quote(request.path, safe=_PATH_SAFE)
        if request.query:
            url += "?" + urlencode(request.query)
        return await self._opened_session().request(
            request.method,
            URL(url, encoded=True),
            data=_payload(request.body),
            headers=headers,
            ssl=self._tls_for(credential) or True,
            server_hostname=self.endpoint.tls_server_name or None,
            proxy=self._proxy,
            allow_redirects=False,  # a redirect would carry the credential to another server
        )

    def _opened_session(self) -> "aiohttp.ClientSession":
        if self._session is None:
            import aiohttp

            from applecart.kube.http_connector import AbortingConnector

            # No limit on connections: watches hold theirs, and a full pool would let them starve every other call.
            connector = AbortingConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"applecart/{__version__}"},
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_DEADLINE_S),
                read_bufsize=READ_BUFFER_BYTES,
            )
            # aiohttp repeats a DELETE whose connection broke; whether to repeat is the client's decision.
            self._session._retry_connection = False
        return self._session

    def _tls_for(self, credential: Credential) -> "ssl.SSLContext | None":
        """The context of this credential's certificate; a new certificate means new connections."""
        certificate, used = credential.certificate, self._tls_certificate
        if self._tls is None or (certificate is not used and certificate != used):
            self._tls = tls_context(self.endpoint, certificate)
            self._tls_certificate = certificate
        return self._tls

    def _failure(self, error: Exception, request: Request) -> Exception:
        if self._is_closed:
            return Unreachable(f"{request}: the connection to {self.endpoint.server} was closed")
        return explained(error, request, self.endpoint, self._tls_certificate)

    def _refusal(self, credential: Credential) -> bytes:
        server, ended = self.endpoint.server, expires_at(credential)
        if credential.source == NO_CREDENTIAL.source:
            message = f"{server} asks who we are, but {self.endpoint.server_from} is used without a credential; add a user"
        elif ended is not None and ended <= self._clock.now():
            message = f"{server} refuses the {credential.source}: it expired {spoken_age(ended, self._clock.now())}; replace it"
        else:
            message = f"{server} refuses the {credential.source}; replace it"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "code": 401}
        return msgspec.json.encode({**status, "message": message})


class HttpStream:
    """An answer that is read as it comes: bytes in the pieces they arrive in, nothing looked into."""

    def __init__(self, answer: "aiohttp.ClientResponse", request: Request, transport: HttpTransport) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = _lower(answer.headers)
        self._answer = answer
        self._readany = answer.content.readany
        self._request = request
        self._transport = transport

    async def read(self) -> bytes:
        try:
            return await self._readany()
        except Exception as error:
            raise self._transport._failure(error, self._request) from None

    async def aclose(self) -> None:
        self._answer.close()


class _RefusedStream:
    def __init__(self, headers: Mapping[str, str], body: bytes) -> None:
        self.status = 401
        self.headers = headers
        self._body = body

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def aclose(self) -> None: ...


def _payload(body: bytes | None) -> "bytes | io.BytesIO | None":
    """A large body as a file, which aiohttp sends in pieces; a small one as it is, which is faster."""
    return io.BytesIO(body) if body is not None and len(body) > WHOLE_BODY_BYTES else body


async def _whole_body(answer: "aiohttp.ClientResponse", request: Request) -> bytes:
    chunks: list[bytes] = []
    size_bytes = 0
    while chunk := await answer.content.readany():
        chunks.append(chunk)
        size_bytes += len(chunk)
        if size_bytes > MAX_BODY_BYTES:
            answer.close()
            raise AnswerTooLarge(f"{request}: the answer is larger than {MAX_BODY_BYTES >> 20} MiB; list in pages")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
