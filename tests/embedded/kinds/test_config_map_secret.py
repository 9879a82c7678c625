"""Secrets keep what they hold to themselves."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.kinds.config_map_secret import SecretStrategy, decoded_size_bytes
from applecart.embedded.refusals import Refusal
from tests.embedded.kinds.documents import core, created, decoded

TYPES = [
    "Opaque",
    "kubernetes.io/service-account-token",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/basic-auth",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
]
KEYS = [".dockercfg", ".dockerconfigjson", "username", "tls.crt", "ssh-privatekey", "a b"]
VALUE = "hunter2-hunter2"


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("key", KEYS)
def test_no_refusal_shows_a_value(type_name: str, key: str) -> None:
    document = core("Secret", type=type_name, stringData={key: VALUE}, data={"a b": base64.b64encode(b"x").decode()})
    with pytest.raises(Refusal) as caught:
        created(document, "ns")
    text = str(caught.value.document())
    assert VALUE not in text
    assert base64.b64encode(VALUE.encode()).decode() not in text


def test_texts_become_data_and_win_over_it() -> None:
    obj = decoded(core("Secret", data={"a": "b2xk", "b": "b2xk"}, stringData={"a": "new"}))
    assert obj["data"] == {"a": "bmV3", "b": "b2xk"}
    assert "stringData" not in obj
    assert obj["type"] == "Opaque"


@given(st.binary(max_size=50))
def test_the_size_is_that_of_the_decoded_value(content: bytes) -> None:
    assert decoded_size_bytes(base64.b64encode(content).decode()) == len(content)


@pytest.mark.parametrize("content", ["", "[]", "no json", '{"a":', "[" * 100_000])
def test_a_docker_config_must_be_a_json_object(content: str) -> None:
    document = core("Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": content})
    with pytest.raises(Refusal, match="<secret contents redacted>"):
        created(document, "ns")


def test_a_frozen_secret_may_change_its_labels_only() -> None:
    old = decoded(core("Secret", immutable=True, data={"a": "b2xk"}))
    changed: dict[str, Any] = {**old, "data": {"a": "bmV3"}, "immutable": False}
    assert [error.field for error in SecretStrategy().validate_update(changed, old)] == ["immutable", "data"]
    assert SecretStrategy().validate_update({**old, "metadata": {"labels": {"a": "b"}}}, old) == []


def test_secrets_are_selected_by_type() -> None:
    assert SecretStrategy().fields(decoded(core("Secret"))) == {"type": "Opaque"}
    assert SecretStrategy().field_names == {"type"}
