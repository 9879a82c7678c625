"""Path elements and sets of fields: one written form, and the algebra of sets."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.field_set import (
    NOTHING,
    BadElement,
    FieldSet,
    Path,
    field,
    key,
    order,
    path_text,
    read_element,
    read_field_set,
    value,
)
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


ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"a"}', 'v:"x"', "v:1"])
PATHS = st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple)
SETS = st.sets(PATHS, max_size=8)


@given(SETS, SETS)
def test_operations_are_those_of_sets_of_paths(one: set[Path], other: set[Path]) -> None:
    ours, theirs = FieldSet.of(one), FieldSet.of(other)
    assert set(ours.paths()) == one
    assert set((ours | theirs).paths()) == one | other
    assert set((ours & theirs).paths()) == one & other
    assert set((ours - theirs).paths()) == one - other
    assert bool(ours) == bool(one)
    assert (ours == theirs) == (one == other)
    assert all(path in ours for path in one)
    assert not any(path in ours for path in other - one)


@given(SETS, SETS)
def test_a_subtree_goes_with_its_root(one: set[Path], other: set[Path]) -> None:
    left = set(FieldSet.of(one).without_subtrees(FieldSet.of(other)).paths())
    assert left == {path for path in one if not any(path[: len(root)] == root for root in other)}


@given(SETS)
def test_a_written_set_can_be_read_again(paths: set[Path]) -> None:
    fields = FieldSet.of(paths)
    assert read_field_set(json.loads(json.dumps(fields.written()))) == fields


@pytest.mark.parametrize(
    ("paths", "written"),
    [
        ([], "{}"),
        ([("f:a",)], '{"f:a":{}}'),
        ([("f:a", "f:b")], '{"f:a":{"f:b":{}}}'),
        ([("f:a",), ("f:a", "f:b")], '{"f:a":{".":{},"f:b":{}}}'),
        ([("f:z",), ("f:a", "v:1"), ("f:b",)], '{"f:a":{"v:1":{}},"f:b":{},"f:z":{}}'),
        ([("v:10",), ("v:9",), ("f:x",)], '{"f:x":{},"v:9":{},"v:10":{}}'),
    ],
)
def test_a_set_is_written_in_order_with_a_dot_for_parents_that_belong(paths: list[Path], written: str) -> None:
    assert json.dumps(FieldSet.of(paths).written(), separators=(",", ":")) == written


def test_paths_of_a_level_come_before_what_is_below() -> None:
    fields = FieldSet.of([("f:a", "f:x"), ("f:b",), ("f:a",), ("f:a", "f:x", "f:y")])
    assert list(fields.paths()) == [("f:a",), ("f:b",), ("f:a", "f:x"), ("f:a", "f:x", "f:y")]


def test_the_empty_path_belongs_to_no_set() -> None:
    assert () not in FieldSet.of([(), ("f:a",)])
    assert not FieldSet.of([()])


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        (None, []),
        ({}, []),
        ({"f:a": {}}, [("f:a",)]),
        ({"f:a": None}, [("f:a",)]),
        ({"f:a": {".": {}}}, [("f:a",)]),
        ({".": {}, "f:a": {".": {}, "f:b": {}}}, [("f:a",), ("f:a", "f:b")]),
        ({"z:new": {"f:a": {}}, "f:b": {}}, [("f:b",)]),
    ],
)
def test_a_set_is_read_leniently_towards_newer_servers(fields: Any, paths: list[Path]) -> None:
    assert list(read_field_set(fields).paths()) == paths


@pytest.mark.parametrize("fields", [5, [], "x", {"a": {}}, {"f:a": 5}, {"f:a": {"k:5": {}}}, {"f:a": []}])
def test_garbage_is_no_set(fields: Any) -> None:
    with pytest.raises(BadElement):
        read_field_set(fields)


@given(JSON)
def test_anything_is_a_set_or_refused(fields: Any) -> None:
    try:
        read_field_set(fields)
    except BadElement:
        return


def test_nothing_is_empty() -> None:
    assert not NOTHING
    assert FieldSet() == NOTHING
