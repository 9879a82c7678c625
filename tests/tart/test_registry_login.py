"""Logins: only the one for the image's registry, only through the environment, never in a text."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput
from applecart.secrets import Secret
from applecart.tart.registry_login import RegistryLogin, login_from_docker_config

WHAT = "Secret ci/pull"


def config(auths: object) -> bytes:
    return json.dumps({"auths": auths}).encode()


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "auth",
    [
        {"username": "robot", "password": "correct-horse"},
        {"auth": packed("robot:correct-horse")},
        {"auth": packed("robot:correct-horse"), "username": "old", "password": "older-password"},
    ],
)
@pytest.mark.parametrize("address", ["ghcr.io", "https://ghcr.io", "https://ghcr.io/v2/", "GHCR.io"])
def test_a_login_is_found_however_its_registry_is_spelt(address: str, auth: dict[str, str]) -> None:
    login = login_from_docker_config(config({"other.io": {"auth": packed("a:b")}, address: auth}), "ghcr.io", WHAT)
    assert login == RegistryLogin("ghcr.io", "robot", Secret("correct-horse"))


def test_a_password_may_hold_colons() -> None:
    login = login_from_docker_config(config({"ghcr.io": {"auth": packed("robot:one:two:three")}}), "ghcr.io", WHAT)
    assert login is not None
    assert login.password.reveal() == "one:two:three"


def test_the_login_of_another_registry_is_not_taken() -> None:
    data = config({"ghcr.io": {"auth": packed("robot:correct-horse")}})
    assert login_from_docker_config(data, "ghcr.io.evil.example", WHAT) is None
    assert login_from_docker_config(data, "localhost:5000", WHAT) is None


def test_tart_gets_the_login_as_environment_for_that_host_only() -> None:
    login = RegistryLogin("ghcr.io", "robot", Secret("correct-horse"))
    assert login.environment() == {
        "TART_REGISTRY_HOSTNAME": "ghcr.io",
        "TART_REGISTRY_USERNAME": "robot",
        "TART_REGISTRY_PASSWORD": "correct-horse",
    }
    assert "correct-horse" not in repr(login)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not json",
        b"[]",
        b'{"auths": []}',
        b"\xff\xfe",
        config({"ghcr.io": {}}),
        config({"ghcr.io": {"username": "robot"}}),
        config({"ghcr.io": {"auth": "hunter2hunter2 not base64"}}),
        config({"ghcr.io": {"auth": packed("userwithoutpassword")}}),
        config({"ghcr.io": {"password": "hunter2hunter2"}}),
        b'{"auths": {"ghcr.io": {"password": hunter2hunter2}}}',
        b"[" * 100_000,
        config({"ghcr.io": {"auth": packed("robot:hunter2\0hunter2")}}),
        config({"ghcr.io": {"username": "ro\0bot", "password": "hunter2hunter2"}}),
    ],
)
def test_a_broken_document_is_refused_by_name_and_without_its_content(data: bytes) -> None:
    with pytest.raises(BadInput, match="Secret ci/pull") as refusal:
        login_from_docker_config(data, "ghcr.io", WHAT)
    assert "hunter2" not in str(refusal.value)
    assert refusal.value.__cause__ is None


@given(st.binary() | st.text().map(lambda text: config({"ghcr.io": {"auth": text}})))
def test_any_document_gives_a_login_none_or_a_refusal(data: bytes) -> None:
    try:
        login = login_from_docker_config(data, "ghcr.io", WHAT)
    except BadInput:
        return
    assert login is None or login.username
    assert login is None or "\0" not in "".join(login.environment().values())
