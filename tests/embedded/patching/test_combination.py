"""Merging an applied configuration, and taking fields away."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.combination import combined, without
from applecart.embedded.patching.field_set import NOTHING, FieldSet
from applecart.embedded.patching.ownership import fields_in, with_named
from applecart.embedded.patching.path_elements import field, key, value
from applecart.embedded.patching.values import copied, same
from tests.embedded.patching.json_values import JSON, OBJECTS, SMALL_OBJECTS
from tests.embedded.patching.shapes import PROBE, set_of
from tests.embedded.patching.test_merge import scribble

SPEC = PROBE.fields["spec"]


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ({"size": 1}, {"title": "t"}, {"size": 1, "title": "t"}),
        ({"size": 1}, {"size": 2}, {"size": 2}),
        ({"size": 1}, {"size": None}, {"size": None}),
        ({"labels": {"a": "1"}}, {"labels": {"b": "2"}}, {"labels": {"a": "1", "b": "2"}}),
        ({"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}),
        ({"labels": {"a": "1"}}, {"labels": {}}, {"labels": {"a": "1"}}),
        ({"labels": {}}, {"labels": None}, {"labels": None}),
        ({}, {"labels": {}}, {"labels": {}}),
        ({"whole": {"a": "1"}}, {"whole": {"b": "2"}}, {"whole": {"b": "2"}}),
        ({"order": ["a"]}, {"order": ["b"]}, {"order": ["b"]}),
        ({"tags": ["a"]}, {"tags": []}, {"tags": ["a"]}),
        (
            {"items": [{"name": "a", "value": "1"}, {"name": "b"}]},
            {"items": [{"name": "a", "port": 1}, {"name": "c"}]},
            {"items": [{"name": "a", "value": "1", "port": 1}, {"name": "b"}, {"name": "c"}]},
        ),
        ({"free": {"a": {"b": 1}, "l": [1]}}, {"free": {"a": {"c": 2}, "l": [2]}}, {"free": {"a": {"b": 1, "c": 2}, "l": [2]}}),
        ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, {"free": {"a": {"b": 1}}}),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": 1}}, {"free": {"a": 1}}),
    ],
)
def test_the_applied_value_wins_and_nothing_is_removed(live: Any, applied: Any, expected: Any) -> None:
    assert combined(live, applied, SPEC) == expected


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ("abcd", "dxb", "acdxb"),
        ("abc", "cba", "cba"),
        ("abc", "x", "abcx"),
        ("abc", "xa", "xabc"),
        ("abc", "ac", "abc"),
        ("", "ba", "ba"),
        ("ab", "", "ab"),
        ("acdxb", "dcba", "dxcba"),
    ],
)
def test_shared_items_come_in_the_applied_order(live: str, applied: str, expected: str) -> None:
    assert "".join(combined(list(live), list(applied), set_of())) == expected


LETTERS = st.lists(st.sampled_from("abcdef"), unique=True)


@given(LETTERS, LETTERS)
def test_no_item_is_lost_and_the_applied_order_holds(live: list[str], applied: list[str]) -> None:
    items = combined(live, applied, set_of())
    assert sorted(items) == sorted({*live, *applied})
    assert [one for one in items if one in applied] == applied


@given(SMALL_OBJECTS, SMALL_OBJECTS)
def test_neither_input_changes_nor_is_shared_with_the_result(live: dict[str, Any], applied: dict[str, Any]) -> None:
    before = copied(live), copied(applied)
    scribble(combined(live, applied, PROBE))
    assert (live, applied) == before


@given(OBJECTS, OBJECTS)
def test_applying_again_changes_nothing(live: dict[str, Any], applied: dict[str, Any]) -> None:
    once = combined(live, applied, PROBE)
    assert same(combined(once, applied, PROBE), once)


@pytest.mark.parametrize(
    ("content", "fields", "expected"),
    [
        ({"size": 1, "title": "t"}, FieldSet([field("size")]), {"title": "t"}),
        ({"size": 1}, FieldSet([field("none")]), {"size": 1}),
        ({"labels": {"a": "1"}}, FieldSet.of([(field("labels"), field("a"))]), {"labels": {}}),
        ({"tags": ["a", "b"]}, FieldSet.of([(field("tags"), value("a"))]), {"tags": ["b"]}),
        ({"tags": ["a"]}, FieldSet.of([(field("tags"), value("a"))]), {"tags": []}),
        (
            {"items": [{"name": "a", "value": "1"}, {"name": "b"}]},
            FieldSet.of([(field("items"), key({"name": "a"}), field("value")), (field("items"), key({"name": "b"}))]),
            {"items": [{"name": "a"}]},
        ),
        ({"free": {"a": {"b": 1}}}, FieldSet.of([(field("free"), field("a"), field("b"))]), {"free": {"a": {}}}),
        ({"order": ["a"]}, FieldSet.of([(field("order"), value("a"))]), {"order": []}),
        ({"size": 1}, FieldSet.of([(field("size"), field("strange"))]), {"size": 1}),
    ],
)
def test_fields_are_taken_away_one_by_one(content: Any, fields: FieldSet, expected: Any) -> None:
    assert without(content, fields, SPEC) == expected


def test_an_object_without_all_its_fields_is_empty() -> None:
    spec = {"size": 1, "labels": {"a": "1"}, "items": [{"name": "a", "options": {"o": "1"}}], "free": {"x": [1]}, "point": {}}
    assert without(spec, with_named(fields_in(spec, SPEC), SPEC), SPEC) == {}


@given(JSON, JSON)
def test_any_values_can_be_combined_and_stripped(one: Any, other: Any) -> None:
    result = combined(one, other, PROBE)
    without(result, fields_in(other, PROBE), PROBE)
    assert without({"size": 1}, NOTHING, SPEC) == {"size": 1}
