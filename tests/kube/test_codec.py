"""Bytes to structs: what decodes, and what a person reads when something does not."""

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta
from applecart.errors import Transient
from applecart.kube.codec import Garbled, decoder, encode_object, list_decoder
from tests.kube.objects import config_map


def test_a_kind_has_one_decoder() -> None:
    assert decoder(ConfigMap) is decoder(ConfigMap)
    assert list_decoder(ConfigMap) is list_decoder(ConfigMap)


def test_fields_that_we_do_not_know_do_not_disturb() -> None:
    body = b'{"kind":"ConfigMap","metadata":{"name":"a","managedFields":[{}]},"data":{"k":"v"},"fromTheFuture":{"a":[1]}}'
    assert decoder(ConfigMap).decode(body).data == {"k": "v"}


def test_a_list_page_carries_its_revision_and_where_to_go_on() -> None:
    body = b'{"metadata":{"resourceVersion":"7","continue":"token"},"items":[{"metadata":{"name":"a","namespace":"ci"}}]}'
    page = list_decoder(ConfigMap).decode(body)
    assert (page.metadata.resource_version, page.metadata.continue_) == ("7", "token")
    assert [obj.key for obj in page.items] == [Key("ci", "a")]


def test_a_last_page_has_nowhere_to_go_on() -> None:
    assert list_decoder(ConfigMap).decode(b'{"metadata":{"resourceVersion":"7"},"items":[]}').metadata.continue_ == ""


@given(st.binary(max_size=200))
def test_bytes_that_are_no_object_are_garbled_and_nothing_else(body: bytes) -> None:
    with suppress(Garbled):
        decoder(ConfigMap).decode(body)


def test_garbled_bytes_are_worth_another_attempt() -> None:
    assert issubclass(Garbled, Transient)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b'{"metadata":7}', b'{"data":{"a":1}}'])
def test_a_broken_answer_says_which_kind_it_was_about(body: bytes) -> None:
    with pytest.raises(Garbled, match="the API server's ConfigMap cannot be read"):
        decoder(ConfigMap).decode(body)
    with pytest.raises(Garbled, match="the API server's list of configmaps cannot be read"):
        list_decoder(ConfigMap).decode(b'{"items":[' + body + b"]}" if body else b"")


def test_null_means_absent_wherever_a_server_writes_it() -> None:
    """Go writes null for an empty list or map, in places that no schema names."""
    body = b'{"metadata":{"name":"a","namespace":"ci","labels":null,"finalizers":null},"data":null}'
    obj = decoder(ConfigMap).decode(body)
    assert (obj.key, obj.labels, obj.metadata.finalizers, obj.data) == (Key("ci", "a"), {}, (), {})
    page = list_decoder(ConfigMap).decode(b'{"metadata":{"resourceVersion":"7","continue":null},"items":null}')
    assert (page.metadata.resource_version, page.items) == ("7", [])


def test_a_null_is_an_absence_also_where_the_struct_has_a_default() -> None:
    """Go writes null for nil maps and lists; one such object must not make a whole list unreadable."""
    body = b'{"metadata":{"name":"a","labels":null,"ownerReferences":null},"data":null}'
    assert decoder(ConfigMap).decode(body) == ConfigMap(metadata=ObjectMeta(name="a"))
    assert list_decoder(ConfigMap).decode(b'{"metadata":{},"items":null}').items == []


def test_a_body_says_its_type_first_and_then_what_the_struct_holds() -> None:
    assert msgspec.json.decode(encode_object(config_map("ci", "a", k="v"))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ci"},
        "data": {"k": "v"},
    }


def test_an_empty_object_is_a_body_all_the_same() -> None:
    assert msgspec.json.decode(encode_object(ConfigMap())) == {"apiVersion": "v1", "kind": "ConfigMap"}


names = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=20)


@given(names, names, st.dictionaries(names, st.text(max_size=50)), st.dictionaries(names, names))
def test_what_is_encoded_is_decoded_again(namespace: str, name: str, data: dict[str, str], labels: dict[str, str]) -> None:
    wanted = ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels=labels), data=data)
    assert decoder(ConfigMap).decode(encode_object(wanted)) == wanted
