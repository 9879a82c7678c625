"""Whose a token Secret is, and what it lacks."""

import base64

import pytest

from applecart.api.core import OPAQUE, SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount
from applecart.api.meta import ObjectMeta
from applecart.embedded.controllers.service_accounts.decide import (
    ACCOUNT_NAME,
    ACCOUNT_UID,
    Lacks,
    account_named_by,
    encoded,
    is_of,
    lacks,
)

CA_PEM = b"ca"
CA = base64.b64encode(CA_PEM).decode()


def secret(uid: str = "", *, name: str = "builder", type: str = SERVICE_ACCOUNT_TOKEN, **data: str) -> Secret:
    annotations = {ACCOUNT_NAME: name, **({ACCOUNT_UID: uid} if uid else {})}
    metadata = ObjectMeta(name="token", namespace="ci", annotations=annotations)
    return Secret(metadata=metadata, type=type, data={key.replace("_", "."): value for key, value in data.items()})


def account(uid: str = "u1", name: str = "builder", namespace: str = "ci") -> ServiceAccount:
    return ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))


@pytest.mark.parametrize(
    ("held", "of", "expected"),
    [
        (secret(), account(), True),
        (secret("u1"), account(), True),
        (secret("u2"), account(), False),
        (secret(), account(name="other"), False),
        (secret(), account(namespace="other"), False),
        (secret(), None, False),
        (secret(type=OPAQUE), account(), False),
    ],
    ids=["by name", "by uid", "a predecessor's", "another's", "another namespace", "nobody's", "no token Secret"],
)
def test_whose_a_secret_is(held: Secret, of: ServiceAccount | None, expected: bool) -> None:
    assert is_of(held, of) is expected


def test_only_a_token_secret_names_an_account() -> None:
    assert account_named_by(secret()) == "builder"
    assert account_named_by(secret(type=OPAQUE)) == ""
    assert account_named_by(Secret(type=SERVICE_ACCOUNT_TOKEN)) == ""


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (secret(), Lacks(token=True, ca=True, namespace=True)),
        (secret(token="dA==", ca_crt=CA, namespace="Y2k="), Lacks()),
        (secret(token="", ca_crt=CA, namespace=""), Lacks(token=True, namespace=True)),
        (secret(token="dA==", ca_crt="b2xk", namespace="Y2k="), Lacks(ca=True)),
    ],
    ids=["everything", "nothing", "what is empty", "an old CA"],
)
def test_what_a_secret_lacks(held: Secret, expected: Lacks) -> None:
    assert lacks(held, CA_PEM) == expected
    assert lacks(held, CA_PEM).is_nothing == (expected == Lacks())


def test_without_a_ca_none_is_lacking() -> None:
    assert not lacks(secret(), b"").ca


def test_values_are_base64() -> None:
    assert encoded(b"ca") == CA
