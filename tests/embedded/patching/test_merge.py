"""JSON merge patch; the examples of RFC 7386 where they are about objects."""

from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.values import copied, same
from applecart.embedded.refusals import Refusal
from tests.embedded.patching.json_values import OBJECTS, SMALL_OBJECTS, nested


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": 1}, {}, {"a": 1}),
    ],
)
def test_members_are_replaced_added_and_removed(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {}}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"b": 1}}, {"a": [{"c": None}]}, {"a": [{"c": None}]}),
    ],
)
def test_a_null_inside_a_new_value_is_left_out_unless_a_list_replaces_a_map(target: Any, patch: Any, expected: Any) -> None:
    assert merge(target, patch) == expected


def test_members_keep_their_order_and_new_ones_come_last() -> None:
    assert list(merge({"kind": 1, "metadata": 2, "spec": 3}, {"status": 5, "metadata": 4})) == [
        "kind",
        "metadata",
        "spec",
        "status",
    ]


@given(SMALL_OBJECTS, SMALL_OBJECTS)
def test_the_patch_neither_changes_nor_is_shared_with_the_result(target: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copied(patch)
    scribble(merge(target, patch))
    assert patch == before


def scribble(value: Any) -> None:
    """Change every container of a value in place."""
    if isinstance(value, dict):
        for one in value.values():
            scribble(one)
        value["scribbled"] = True
    elif isinstance(value, list):
        for one in value:
            scribble(one)
        value.append("scribbled")


@given(SMALL_OBJECTS, SMALL_OBJECTS)
def test_a_patch_that_is_applied_again_and_again_settles(target: dict[str, Any], patch: dict[str, Any]) -> None:
    twice = merge(merge(target, patch), patch)
    assert same(merge(twice, patch), twice)


@given(OBJECTS, OBJECTS)
def test_any_patch_is_merged(target: dict[str, Any], patch: dict[str, Any]) -> None:
    assert isinstance(merge(target, patch), dict)


def test_a_patch_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Refusal):
        merge({"a": 1}, nested(100_000))
