"""Why an agent could not be reached, in the words of the real server.

People grep these texts, and runbooks quote them: `dial tcp 10.0.0.7:10250: connect: connection refused`. A certificate that is
not the cluster's gets a sentence of its own, because it is the one failure that somebody must decide about.
"""

import errno
import os
import ssl

import aiohttp

from applecart.embedded.relay.location import AgentAddress
from applecart.errors import Unreachable

TIMED_OUT = "i/o timeout"


class AgentUnreachable(Unreachable):
    """No answer from an agent; the text says where and why."""


class AgentLost(Unreachable, ConnectionError):
    """The connection to an agent ended in the middle of an answer."""


def agent_unreachable(at: AgentAddress, error: BaseException) -> AgentUnreachable:
    return AgentUnreachable(f"{_stage(error)}{_words(at, error)}")


def _stage(error: BaseException) -> str:
    return "tls: failed to verify certificate: " if isinstance(error, aiohttp.ClientConnectorCertificateError) else ""


def _words(at: AgentAddress, error: BaseException) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "it cannot be read")
            return f"x509: {why} (the agent at {at} must show a certificate of this cluster's authority for its address)"
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
