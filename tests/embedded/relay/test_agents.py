"""Why an agent gave no answer, and what its no becomes."""

import errno
import socket
import ssl
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.relay.agents import AgentLost, AgentRefused, agent_unreachable, refusal_of
from applecart.embedded.relay.location import AgentAddress
from applecart.errors import Unreachable

AT = AgentAddress("10.0.0.7", 10250)
KEY = cast(ConnectionKey, SimpleNamespace(host="10.0.0.7", port=10250, ssl=True, is_ssl=True))


def certificate_error() -> aiohttp.ClientConnectorCertificateError:
    return aiohttp.ClientConnectorCertificateError(KEY, ssl.SSLCertVerificationError(1, "no"))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.ECONNREFUSED, "")),
            "dial tcp 10.0.0.7:10250: connect: connection refused",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "")),
            "dial tcp 10.0.0.7:10250: connect: no route to host",
        ),
        (aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(8, "")), "dial tcp: lookup 10.0.0.7: no such host"),
        (TimeoutError(), "dial tcp 10.0.0.7:10250: i/o timeout"),
        (aiohttp.ServerDisconnectedError(), "EOF"),
        (ConnectionResetError(errno.ECONNRESET, ""), "read tcp 10.0.0.7:10250: connection reset by peer"),
        (ValueError("odd"), "the agent at 10.0.0.7:10250 gave no answer that is HTTP"),
    ],
)
def test_a_failure_is_told_in_the_words_of_the_real_server(error: Exception, text: str) -> None:
    assert str(agent_unreachable(AT, error)) == text


def test_a_certificate_that_is_not_the_clusters_is_told_with_what_would_be_right() -> None:
    text = str(agent_unreachable(AT, certificate_error()))
    assert text.startswith("tls: failed to verify certificate: x509: ")
    assert "a certificate of this cluster's authority" in text


def test_an_agent_that_is_lost_is_a_lost_connection_for_those_who_know_no_agents() -> None:
    assert isinstance(AgentLost("x"), ConnectionError)
    assert isinstance(AgentLost("x"), Unreachable)


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        (400, "BadRequest", "why"),
        (500, "InternalError", "Internal error occurred: why"),
        (403, "Forbidden", "why ( pods/log job)"),
        (404, "NotFound", "the server could not find the requested resource ( pods/log job)"),
        (502, "InternalError", 'an error on the server ("why") has prevented the request from succeeding ( pods/log job)'),
        (
            418,
            "",
            "the server responded with the status code 418 but did not return more information ( pods/log job)",
        ),
    ],
)
def test_an_agents_no_is_told_as_the_real_server_tells_it(status: int, reason: str, message: str) -> None:
    refusal = refusal_of(AgentRefused(status, "why"), "job")
    assert (refusal.code, refusal.reason, refusal.message) == (status, reason, message)


@given(st.integers(200, 599), st.text())
def test_any_answer_of_an_agent_is_a_status(status: int, text: str) -> None:
    document: dict[str, Any] = refusal_of(AgentRefused(status, text), "job").document()
    assert (document["kind"], document["code"]) == ("Status", status)
