"""Who calls: subjects of certificates, bearer tokens, and what the API says of them."""

import ssl
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.authentication import TokenRequest, TokenRequestSpec
from applecart.api.core import ServiceAccount
from applecart.api.meta import Key, ObjectMeta
from applecart.clock import Clock
from applecart.errors import Unreachable
from applecart.kube.client import Client
from applecart.kube.transport import Request, Response, Stream, Transport
from applecart.kubelet.serve.callers import (
    BAD_S,
    GOOD_S,
    LONGEST_TOKEN_CHARS,
    CannotAsk,
    Tokens,
    bearer_of,
    caller_of_certificate,
)
from applecart.secrets import Secret
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse

NOT_AFTER = "Jan  5 09:34:43 2027 GMT"
NOW_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class Counted:
    """A way to the API that counts what goes over it, and can be cut."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.sent: list[str] = []
        self.is_cut = False

    async def send(self, request: Request) -> Response:
        if self.is_cut:
            raise Unreachable("the API is away")
        self.sent.append(f"{request.method} {request.path}")
        return await self._transport.send(request)

    async def open(self, request: Request) -> Stream:
        return await self._transport.open(request)

    async def aclose(self) -> None:
        await self._transport.aclose()


def certificate(*subject: tuple[str, str], not_after: str = NOT_AFTER) -> dict[str, Any]:
    return {"subject": tuple(((key, value),) for key, value in subject), "notAfter": not_after}


@pytest.mark.parametrize(
    ("shown", "name", "groups"),
    [
        (certificate(("commonName", "ann")), "ann", ("system:authenticated",)),
        (
            certificate(("organizationName", "a"), ("organizationName", "b"), ("commonName", "ann")),
            "ann",
            ("a", "b", "system:authenticated"),
        ),
        (certificate(("commonName", "first"), ("commonName", "last")), "last", ("system:authenticated",)),
    ],
)
def test_a_certificate_names_its_user_and_groups(shown: dict[str, Any], name: str, groups: tuple[str, ...]) -> None:
    caller = caller_of_certificate(shown, NOW_S)
    assert caller is not None
    assert (caller.name, caller.groups) == (name, groups)


@pytest.mark.parametrize(
    "shown",
    [
        {},
        certificate(("organizationName", "system:masters")),
        certificate(("commonName", "")),
        certificate(("commonName", "ann"), not_after="Jan  5 09:34:43 2025 GMT"),
        certificate(("commonName", "ann"), not_after="tomorrow"),
    ],
)
def test_a_certificate_that_is_over_or_names_nobody_is_nobodys(shown: dict[str, Any]) -> None:
    assert caller_of_certificate(shown, NOW_S) is None


def test_a_certificate_ends_while_its_connection_goes_on() -> None:
    end_s = ssl.cert_time_to_seconds(NOT_AFTER)
    shown = certificate(("commonName", "ann"))
    assert caller_of_certificate(shown, end_s) is not None
    assert caller_of_certificate(shown, end_s + 1) is None


@pytest.mark.parametrize(
    ("name", "groups", "is_api_server"),
    [
        ("kube-apiserver-kubelet-client", (), True),
        ("admin", ("system:masters",), True),
        ("system:node:mac-2", ("system:nodes",), False),
    ],
)
def test_the_api_server_is_known_by_its_certificate(name: str, groups: tuple[str, ...], is_api_server: bool) -> None:
    shown = certificate(*(("organizationName", group) for group in groups), ("commonName", name))
    caller = caller_of_certificate(shown, NOW_S)
    assert caller is not None
    assert caller.is_the_api_server is is_api_server


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("", ""),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("Bearer é", ""),
        (f"Bearer {'x' * (LONGEST_TOKEN_CHARS + 1)}", ""),
    ],
)
def test_a_bearer_token_is_read_from_its_header(header: str, token: str) -> None:
    assert bearer_of(header).reveal() == token


@given(st.text())
def test_any_header_is_a_token_or_none(header: str) -> None:
    assert bearer_of(header).reveal().isascii()


async def service_account_token(client: Client) -> Secret:
    await client.create(ServiceAccount(metadata=ObjectMeta(namespace="ci", name="prometheus")))
    wanted = TokenRequest(spec=TokenRequestSpec(expiration_seconds=3600))
    return (await client.create_subresource(ServiceAccount, Key("ci", "prometheus"), "token", wanted)).token


async def test_the_api_is_asked_once_in_two_minutes_whose_a_token_is(clock: Clock) -> None:
    async with serving(clock) as running:
        wire = Counted(running.transport())
        client = Client(wire, clock)
        token = await service_account_token(client)
        tokens = Tokens(client, clock)
        wire.sent.clear()
        for _ in range(3):
            caller = await tokens.caller(token)
            assert caller is not None
            assert caller.name == "system:serviceaccount:ci:prometheus"
            assert "system:serviceaccounts" in caller.groups
            assert not caller.is_the_api_server
        assert len(wire.sent) == 1
        await elapse(GOOD_S)
        await tokens.caller(token)
        assert len(wire.sent) == 2


async def test_a_bad_token_is_refused_from_memory_for_ten_seconds(clock: Clock) -> None:
    async with serving(clock) as running:
        wire = Counted(running.transport())
        tokens = Tokens(Client(wire, clock), clock)
        for _ in range(3):
            assert await tokens.caller(Secret("not-a-token-of-anybody")) is None
        assert len(wire.sent) == 1
        await elapse(BAD_S)
        assert await tokens.caller(Secret("not-a-token-of-anybody")) is None
        assert len(wire.sent) == 2


async def test_an_api_that_is_away_is_no_refusal_and_is_not_remembered(clock: Clock) -> None:
    async with serving(clock) as running:
        wire = Counted(running.transport())
        client = Client(wire, clock)
        token = await service_account_token(client)
        tokens = Tokens(client, clock)
        wire.is_cut = True
        with pytest.raises(CannotAsk, match="try again"):
            await tokens.caller(token)
        wire.is_cut = False
        assert await tokens.caller(token) is not None
