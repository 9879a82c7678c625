"""Sets of fields behave as sets of paths, and are written as a real server writes them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.field_set import NOTHING, FieldSet, Path, read_field_set
from applecart.embedded.patching.path_elements import BadElement
from tests.embedded.patching.json_values import JSON

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
    assert NOTHING.below("f:a") == NOTHING
