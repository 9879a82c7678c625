"""When tokens and certificates say that they end."""

import base64
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.trust.pki import LEAF_LIFETIME, Authority
from applecart.kube.auth.credentials import NO_CREDENTIAL, ClientCertificate, Credential
from applecart.kube.auth.expiry import certificate_expires_at, expires_at, spoken_age, token_expires_at
from applecart.secrets import Secret

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def token(**claims: object) -> Secret:
    """A JWT. Its signature is wrong, which nobody here looks at."""
    parts = ({"alg": "ES256", "typ": "JWT"}, claims, "signature")
    return Secret(".".join(base64.urlsafe_b64encode(msgspec.json.encode(part)).decode().rstrip("=") for part in parts))


def certificate(now: datetime) -> ClientCertificate:
    pair = Authority.create("test", now).issue_client("robot", [], now)
    return ClientCertificate(pair.certificate_pem.decode(), pair.key_pem, "a test", "a test")


def test_a_jwt_tells_its_end() -> None:
    assert token_expires_at(token(sub="robot", exp=int(NOW.timestamp()))) == NOW


@pytest.mark.parametrize("value", [token(sub="robot"), token(exp=1e40), Secret("opaque"), Secret("a.b.c"), Secret("..")])
def test_a_token_that_tells_nothing_has_no_end(value: Secret) -> None:
    assert token_expires_at(value) is None


@given(st.text(alphabet="abcXYZ019_-.é", max_size=40))
def test_no_text_makes_the_look_inside_fail(text: str) -> None:
    token_expires_at(Secret(text))


def test_a_certificate_tells_its_end() -> None:
    assert certificate_expires_at(certificate(NOW)) == NOW + LEAF_LIFETIME


def test_a_broken_certificate_has_no_end() -> None:
    assert certificate_expires_at(ClientCertificate("no pem", Secret("none"), "", "")) is None


def test_the_part_that_ends_first_ends_the_credential() -> None:
    early, late = NOW, NOW + timedelta(days=2000)
    credential = Credential("a test", token(exp=int(late.timestamp())), None, certificate(NOW), (), early)
    assert expires_at(credential) == early
    assert expires_at(NO_CREDENTIAL) is None


@pytest.mark.parametrize(
    ("seconds", "spoken"),
    [(0, "in 0 s"), (-1, "1 s ago"), (119, "in 119 s"), (120, "in 2 min"), (-7300, "2 h ago"), (10 * 86_400, "in 10 d")],
)
def test_an_age_is_spoken_in_the_unit_that_fits(seconds: int, spoken: str) -> None:
    assert spoken_age(NOW + timedelta(seconds=seconds), NOW) == spoken
