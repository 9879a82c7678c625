from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.path_elements import BadElement, field, key, order, path_text, read_element, value
from tests.embedded.patching.json_values import JSON


@pytest.mark.parametrize(
    ("element", "written", "shown"),
    [
        (field("data"), "f:data", ".data"),
        (field("a.b/c"), "f:a.b/c", ".a.b/c"),
        (field(""), "f:", "."),
        (key({"name": "x"}), 'k:{"name":"x"}', '[name="x"]'),
        (key({"protocol": "TCP", "port": 80}), 'k:{"port":80,"protocol":"TCP"}', '[port=80,protocol="TCP"]'),
        (key({"on": True}), 'k:{"on":true}', "[on=true]"),
        (value("a"), 'v:"a"', '[="a"]'),
        (value(7), "v:7", "[=7]"),
        (value(7.0), "v:7", "[=7]"),
        (value(1.5), "v:1.5", "[=1.5]"),
        (value(False), "v:false", "[=false]"),
        (value('q"\\\n<&>\x01'), 'v:"q\\"\\\\\\n\\u003c\\u0026\\u003e\\u0001"', '[="q\\"\\\\\\n<&>\\u0001"]'),
        (read_element("i:3"), "i:3", "[3]"),
    ],
)
def test_an_element_is_written_and_shown_as_the_real_server_does(element: str, written: str, shown: str) -> None:
    assert element == written
    assert path_text((element,)) == shown
    assert read_element(written) == element


@pytest.mark.parametrize(
    ("text", "element"),
    [('k:{"b":1, "a":2}', 'k:{"a":2,"b":1}'), ("v: 1.0", "v:1"), ('v:"\\u0061"', 'v:"a"'), ("i:007", "i:7"), ("i:-1", "i:-1")],
)
def test_another_spelling_is_the_same_element(text: str, element: str) -> None:
    assert read_element(text) == element


@pytest.mark.parametrize(
    "text", ["", "f", "fa", "k:", "k:5", "k:[", 'v:"', "v:", "i:", "i:x", "i:99999999999999999999999", "k:" + "[" * 9999]
)
def test_other_text_is_no_element(text: str) -> None:
    with pytest.raises(BadElement) as bad:
        read_element(text)
    assert not bad.value.is_unknown


def test_a_kind_of_element_that_is_not_known_is_told_from_garbage() -> None:
    with pytest.raises(BadElement) as bad:
        read_element("z:new")
    assert bad.value.is_unknown


def test_elements_come_by_name_then_key_then_value_then_index() -> None:
    elements = [
        "f:A",
        "f:a",
        "f:b",
        'k:{"name":2}',
        'k:{"name":10}',
        'k:{"name":"a"}',
        'k:{"name":"a","port":1}',
        'k:{"name":"b"}',
        'k:{"port":0}',
        "v:9",
        "v:10",
        'v:"10"',
        'v:"9"',
        "v:false",
        "v:true",
        "v:[1]",
        'v:{"a":1}',
        "v:null",
        "i:2",
        "i:10",
    ]
    shuffled = Random(1).sample(elements, len(elements))
    assert sorted(shuffled, key=order) == elements


def test_a_path_is_shown_as_one() -> None:
    path = (field("spec"), field("containers"), key({"name": "x"}), field("env"), key({"name": "A"}))
    assert path_text(path) == '.spec.containers[name="x"].env[name="A"]'


@given(JSON)
def test_whatever_is_written_can_be_read_again(item: Any) -> None:
    element = value(item)
    assert read_element(element) == element
    order(element)


@given(st.text())
def test_any_text_is_an_element_or_refused(text: str) -> None:
    try:
        element = read_element(text)
    except BadElement:
        return
    assert read_element(element) == element
