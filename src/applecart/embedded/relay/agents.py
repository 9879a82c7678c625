"""Connections from this server to the agents of its nodes: HTTPS with the server's own client certificate.

An agent is believed only when it shows a certificate of the cluster's authority for the address that its Node names; with
`verifies=False` any certificate will do, as for a kube-apiserver that was given no kubelet authority. A redirect is never
followed: an agent must not be able to send this server, with its certificate, anywhere else. Why an agent was not reached, and
its no, are told in the words of the real server: people grep these texts, and runbooks quote them.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Self

import aiohttp

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.location import AgentAddress
from applecart.embedded.trust.pki import PairFiles
from applecart.errors import Unreachable

TIMED_OUT = "i/o timeout"


class AgentUnreachable(Unreachable):
    """No answer from an agent; the text says where and why."""


class AgentLost(Unreachable, ConnectionError):
    """The connection to an agent ended in the middle of an answer."""


def agent_unreachable(at: AgentAddress, error: BaseException) -> AgentUnreachable:
    return AgentUnreachable(_words(at, error))


def _words(at: AgentAddress, error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "it cannot be read")
            wanted = f"(the agent at {at} must show a certificate of this cluster's authority for its address)"
            return f"tls: failed to verify certificate: x509: {why} {wanted}"
        case aiohttp.ClientConnectorDNSError():
            return f"dial tcp: lookup {at.host}: no such host"
        case aiohttp.ClientConnectorError():
            return f"dial tcp {at}: connect: {_system_words(error.os_error)}"
        case TimeoutError():
            return f"dial tcp {at}: {TIMED_OUT}"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return "EOF"
        case OSError():
            return f"read tcp {at}: {_system_words(error)}"
        case aiohttp.WSServerHandshakeError():
            return f"the agent at {at} answered the upgrade with {error.status} ({error.message})"
    return f"the agent at {at} gave no answer that is HTTP"


def _system_words(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"remote error: tls: {(error.reason or 'failure').lower().replace('_', ' ')}"
    if error.errno is None:
        return "connection reset by peer"
    return os.strerror(error.errno).lower() if error.errno in errno.errorcode else "connection failed"


CONNECT_S = 10.0  # until TLS is up; a Mac on the same network answers in milliseconds
ANSWER_S = 30.0  # until the agent begins to answer; it may have to ask a guest first
CLOSE_S = 2.0
REFUSAL_LIMIT_BYTES = 64 << 10  # of the text in which an agent refuses
MESSAGE_LIMIT_BYTES = 32 << 20  # of one frame, as a kubelet takes it
KEEPALIVE_IDLE_S, KEEPALIVE_PROBES = 30, 3  # a silent exec may last for hours, a vanished agent must not


class AgentRefused(Exception):
    """An agent answered, and the answer is no. Its text is for the client."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def agent_trust(shown: PairFiles, authority_pem: bytes, *, verifies: bool = True) -> ssl.SSLContext:
    """What this server shows to agents, and whom it believes."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(shown.certificate, shown.key)
    if verifies:
        context.load_verify_locations(cadata=authority_pem.decode("ascii"))
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class AgentStream:
    """An answer under way."""

    def __init__(self, at: AgentAddress, response: aiohttp.ClientResponse) -> None:
        self._at = at
        self._response = response

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """What comes, as it comes. Closes the connection when it is left early."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError):
            raise AgentLost(f"the agent at {self._at} went away in the middle of its answer") from None
        finally:
            self._response.close()


class HttpAgents:
    """The agents of a cluster; use as an async context manager."""

    def __init__(self, trusted: ssl.SSLContext, any_certificate: ssl.SSLContext) -> None:
        self._trusted = trusted
        self._any_certificate = any_certificate

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trusted, socket_factory=_kept_alive)
        tracing = aiohttp.TraceConfig()
        tracing.on_request_end.append(_refuse_other_than_upgrade)
        tracing.on_request_redirect.append(_refuse_redirect)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        # Streams have a session of their own, because only there any answer but 101 is a refusal.
        self._streams = aiohttp.ClientSession(
            connector=connector, connector_owner=False, timeout=timeout, trace_configs=[tracing]
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._streams.close()
        await self._session.close()

    async def get(
        self, at: AgentAddress, path: str, query: list[tuple[str, str]] | None = None, *, skips_verification: bool = False
    ) -> AgentStream:
        """Raises AgentUnreachable and AgentRefused."""
        context = self._any_certificate if skips_verification else self._trusted
        async with _answered(at):
            response = await self._session.get(at.url(path, query), allow_redirects=False, ssl=context)
            if response.status >= 300 or response.status < 200:
                raise await _refusal(response)
        return AgentStream(at, response)

    async def connect(
        self, at: AgentAddress, path: str, query: Sequence[tuple[str, str]], protocols: Sequence[str]
    ) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket with one of these protocols. Raises AgentUnreachable and AgentRefused."""
        async with _answered(at):
            return await self._streams.ws_connect(
                at.url(path, list(query)),
                protocols=protocols,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),
                max_msg_size=MESSAGE_LIMIT_BYTES,
            )

    async def offer(self, at: AgentAddress, path: str, query: Sequence[tuple[str, str]], upgrade: str) -> None:
        """Ask for another kind of upgrade only to hear why not. Raises AgentUnreachable and AgentRefused.

        It names a protocol that nobody speaks: an agent that knows this upgrade must not begin anything for it.
        """
        headers = {"Connection": "Upgrade", "Upgrade": upgrade, "X-Stream-Protocol-Version": "none"}
        async with _answered(at):
            response = await self._streams.post(at.url(path, list(query)), headers=headers, allow_redirects=False)
            response.close()


@asynccontextmanager
async def _answered(at: AgentAddress) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(ANSWER_S):
            yield
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise agent_unreachable(at, error) from None


async def _refuse_other_than_upgrade(_: Any, __: SimpleNamespace, ended: aiohttp.TraceRequestEndParams) -> None:
    if ended.response.status != 101:
        raise await _refusal(ended.response)


async def _refuse_redirect(_: Any, __: SimpleNamespace, redirect: aiohttp.TraceRequestRedirectParams) -> None:
    raise await _refusal(redirect.response)


async def _refusal(response: aiohttp.ClientResponse) -> AgentRefused:
    if 300 <= response.status < 400:
        response.close()
        return AgentRefused(502, "the node agent attempted to redirect this request, which is not permitted")
    text = await response.content.read(REFUSAL_LIMIT_BYTES)
    response.close()
    return AgentRefused(response.status, text.decode("utf-8", "replace").rstrip("\n"))


def _kept_alive(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, *_ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", KEEPALIVE_IDLE_S), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", KEEPALIVE_PROBES)):
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return opened


ABOUT = "pods/log"
_KNOWN = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def refusal_of(refused: AgentRefused, pod: str) -> Refusal:
    if refused.status == 400:
        return Refusal(400, "BadRequest", refused.text)
    if refused.status == 500:
        causes = {"causes": [{"message": refused.text}]}
        return Refusal(500, "InternalError", f"Internal error occurred: {refused.text}", causes)
    reason, words = _reason_and_words(refused)
    return Refusal(refused.status, reason, f"{words} ( {ABOUT} {pod})", {"name": pod, "kind": ABOUT})


def _reason_and_words(refused: AgentRefused) -> tuple[str, str]:
    if refused.status in _KNOWN:
        return _KNOWN[refused.status]
    if refused.status == 403:
        return "Forbidden", refused.text
    if refused.status >= 500:
        return "InternalError", f"an error on the server ({quoted(refused.text)}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {refused.status} but did not return more information"
