"""What a failed HTTP exchange means: one of our error classes, with a sentence.

Failures while connecting are `NeverSent`: the request surely did nothing. Later ones are `Unreachable`: it may have been
carried out. aiohttp's own texts are not quoted, because they may hold URLs with passwords (I9).
"""

import os
import socket
import ssl

from applecart.errors import ApplecartError, DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.auth.credentials import ClientCertificate
from applecart.kube.endpoint import Endpoint
from applecart.kube.tls import speaks_tls, tls_failure
from applecart.kube.transport import Request


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
        return DeadlineExceeded(f"{request}: {server} did not answer within {request.deadline_s:.3g} s")
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
