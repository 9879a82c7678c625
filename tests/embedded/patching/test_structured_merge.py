"""Listing, comparing, merging and removing fields agree on what a field is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.field_set import NOTHING, FieldSet, field, key, path_text, value
from applecart.embedded.patching.structured_merge import (
    _KNOWN_MEMBERS,
    MOST_KNOWN,
    BadItem,
    below,
    changes_between,
    combined,
    element_of,
    fields_in,
    form_of,
    is_named,
    keyed,
    text_of_new,
    with_named,
    without,
)
from applecart.embedded.patching.values import ABSENT, copied, same
from applecart.embedded.shape import SCALAR, UNTYPED, Shape
from tests.embedded.patching.json_values import JSON, OBJECTS, SMALL_OBJECTS
from tests.embedded.patching.shapes import CONTAINER, PROBE, atomic, map_of, set_of, struct
from tests.embedded.patching.shapes import keyed as keyed_list
from tests.embedded.patching.test_merge import scribble

SPEC = PROBE.fields["spec"]
PORTS = CONTAINER.fields["ports"]


@pytest.mark.parametrize(
    ("shape", "content", "form"),
    [
        (SCALAR, "x", "leaf"),
        (SCALAR, {}, "leaf"),
        (struct("a"), {}, "map"),
        (struct("a"), None, "map"),
        (struct("a", is_atomic=True), {}, "leaf"),
        (map_of(), {}, "map"),
        (map_of(is_atomic=True), {}, "leaf"),
        (atomic(), [], "leaf"),
        (set_of(), [], "list"),
        (PORTS, None, "list"),
        (UNTYPED, {}, "map"),
        (UNTYPED, None, "map"),
        (UNTYPED, [], "leaf"),
        (UNTYPED, 5, "leaf"),
        (Shape("untyped", is_atomic=True), {}, "leaf"),
    ],
)
def test_a_value_is_a_leaf_or_has_parts(shape: Shape, content: Any, form: str) -> None:
    assert form_of(shape, content) == form


@pytest.mark.parametrize(
    ("shape", "item", "element"),
    [
        (set_of(), "a", 'v:"a"'),
        (set_of(), 1, "v:1"),
        (SPEC.fields["items"], {"name": "a", "value": "b"}, 'k:{"name":"a"}'),
        (PORTS, {"containerPort": 1}, 'k:{"containerPort":1,"protocol":"TCP"}'),
        (PORTS, {"containerPort": 1, "protocol": "UDP"}, 'k:{"containerPort":1,"protocol":"UDP"}'),
        (keyed_list(struct("a", "b"), "a", "b"), {"b": 1}, 'k:{"b":1}'),
    ],
)
def test_an_item_is_known_by_its_value_or_its_keys(shape: Shape, item: Any, element: str) -> None:
    assert element_of(item, shape) == element


@pytest.mark.parametrize(
    ("shape", "item", "problem"),
    [
        (set_of(), {}, "associative list without keys has an element that's a map type"),
        (set_of(), [], "not supported: associative list with lists as elements"),
        (set_of(), None, "associative list without keys has an element that's an explicit null"),
        (PORTS, None, "associative list with keys may not have a null element"),
        (PORTS, "x", "associative list with keys may not have non-map elements"),
        (
            SPEC.fields["items"],
            {},
            'associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
    ],
)
def test_an_item_that_cannot_be_identified_is_refused(shape: Shape, item: Any, problem: str) -> None:
    with pytest.raises(BadItem) as bad:
        element_of(item, shape)
    assert str(bad.value) == problem


def test_stored_items_that_cannot_be_identified_are_passed_over() -> None:
    assert list(keyed(["a", None, {}, "b"], set_of())) == [('v:"a"', "a"), ('v:"b"', "b")]
    assert list(keyed("no list", set_of())) == []


def test_only_members_of_structs_are_named() -> None:
    assert is_named(SPEC, "items")
    assert not is_named(SPEC, "unknown")
    assert not is_named(SPEC.fields["labels"], "a")


def test_shapes_are_found_along_elements() -> None:
    assert below(SPEC, "f:items") is SPEC.fields["items"]
    assert below(SPEC.fields["items"], 'k:{"name":"a"}') is SPEC.fields["items"].element
    assert below(SPEC.fields["tags"], 'v:"a"') is UNTYPED
    assert below(SPEC.fields["items"], "f:strange") is UNTYPED


SPEC = PROBE.fields["spec"]


def shown(fields: FieldSet) -> list[str]:
    return [path_text(path) for path in fields.paths()]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"size": 1}, [".size"]),
        ({"size": None}, [".size"]),
        ({"labels": {"a": "1"}}, [".labels.a"]),
        ({"labels": {}}, [".labels"]),
        ({"labels": None}, [".labels"]),
        ({"tags": ["b", "a"]}, ['.tags[="a"]', '.tags[="b"]']),
        ({"tags": []}, []),
        ({"tags": ["a", "a"]}, ['.tags[="a"]']),
        ({"order": []}, [".order"]),
        ({"point": {"x": 1}}, [".point"]),
        ({"whole": {"a": "1"}}, [".whole"]),
        ({"items": [{"name": "a", "value": "1"}]}, ['.items[name="a"]', '.items[name="a"].name', '.items[name="a"].value']),
        ({"items": [{"name": "a"}, {"name": "a"}]}, ['.items[name="a"]']),
        ({"items": [{"value": "no key"}]}, []),
        ({"nested": {"inner": {"b": "1"}}}, [".nested.inner.b"]),
        ({"nested": {}}, [".nested"]),
        ({"free": {"a": {"b": [1, {}]}, "c": {}}}, [".free.a", ".free.c", ".free.a.b"]),
        ({"unknown": {"a": 1}}, [".unknown", ".unknown.a"]),
    ],
)
def test_fields_of_an_object(spec: Any, expected: list[str]) -> None:
    assert shown(fields_in(spec, SPEC)) == expected


def test_struct_members_on_the_way_are_named_and_map_entries_are_not() -> None:
    fields = fields_in({"nested": {"inner": {"b": "1"}}, "labels": {"a": "1"}, "items": [{"name": "a"}]}, SPEC)
    assert shown(with_named(fields, SPEC) - fields) == [".items", ".labels", ".nested", ".nested.inner"]


@pytest.mark.parametrize(
    ("old", "new", "removed", "modified", "added"),
    [
        ({"size": 1}, {"size": 1}, [], [], []),
        ({"size": 1}, {"size": 2}, [], [".size"], []),
        ({"size": 1}, {"size": None}, [], [".size"], []),
        ({"size": 1}, {}, [".size"], [], []),
        ({}, {"size": 1}, [], [], [".size"]),
        ({}, {"labels": {"a": "1"}}, [], [], [".labels", ".labels.a"]),
        ({"labels": {}}, {"labels": {"a": "1"}}, [], [], [".labels.a"]),
        ({"labels": {"a": "1"}}, {"labels": {"b": "1"}}, [".labels.a"], [], [".labels.b"]),
        ({"labels": {"a": "1"}}, {}, [".labels", ".labels.a"], [], []),
        ({"labels": {"a": "1"}}, {"labels": {}}, [".labels.a"], [], []),
        ({}, {"labels": {}}, [], [], [".labels"]),
        ({"nested": {"inner": {"b": "1"}}}, {}, [".nested", ".nested.inner", ".nested.inner.b"], [], []),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, [], [], []),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, ['.tags[="a"]'], [], ['.tags[="c"]']),
        ({"order": ["a", "b"]}, {"order": ["b", "a"]}, [], [".order"], []),
        ({"point": {"x": 1}}, {"point": {"x": 2}}, [], [".point"], []),
        (
            {"items": [{"name": "a", "value": "1"}]},
            {"items": [{"name": "a", "value": "2"}]},
            [],
            ['.items[name="a"].value'],
            [],
        ),
        (
            {"items": [{"name": "a"}]},
            {"items": [{"name": "a"}, {"name": "a"}]},
            ['.items[name="a"]', '.items[name="a"].name'],
            [],
            ['.items[name="a"]'],
        ),
        (
            {"items": [{"name": "a"}, {"name": "a"}]},
            {"items": [{"name": "a"}]},
            ['.items[name="a"]'],
            [],
            ['.items[name="a"]', '.items[name="a"].name'],
        ),
        (
            {"items": [{"name": "a"}, {"name": "a"}]},
            {"items": [{"name": "a"}, {"name": "a", "value": "1"}]},
            [],
            ['.items[name="a"]'],
            [],
        ),
        ({"free": {"a": 1}}, {"free": {"a": {"b": 1}}}, [], [".free.a"], [".free.a.b"]),
        ({"free": {"a": {"b": 1}}}, {"free": {"a": 1}}, [".free.a.b"], [".free.a"], []),
        ({"free": {"a": 1}}, {"free": {"a": True}}, [], [".free.a"], []),
    ],
)
def test_changes_between_two_objects(old: Any, new: Any, removed: list[str], modified: list[str], added: list[str]) -> None:
    changes = changes_between(old, new, SPEC)
    assert (shown(changes.removed), shown(changes.modified), shown(changes.added)) == (removed, modified, added)


def test_changes_that_an_endpoint_ignores_are_left_out_with_all_below() -> None:
    changes = changes_between({"labels": {"a": "1"}}, {"labels": {"a": "2"}, "size": 1}, SPEC)
    assert shown(changes.without(FieldSet(["f:labels"])).taken) == [".size"]


@given(OBJECTS)
def test_an_object_does_not_differ_from_itself(obj: dict[str, Any]) -> None:
    changes = changes_between(obj, {**obj}, PROBE)
    assert not changes.removed
    assert not changes.taken


@given(JSON, JSON)
def test_any_two_values_can_be_compared_and_what_one_gains_the_other_loses(one: Any, other: Any) -> None:
    there, back = changes_between(one, other, PROBE), changes_between(other, one, PROBE)
    assert there.added == back.removed
    assert there.modified == back.modified
    if there.taken or there.removed:
        assert not same(one, other)


@given(JSON)
def test_every_field_of_a_new_value_is_added(value: Any) -> None:
    assert not fields_in(value, SPEC) - changes_between(ABSENT, value, SPEC).added


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
        (  # which of two is meant nobody can say: neither is merged
            {"items": [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]},
            {"items": [{"name": "a", "port": 1}]},
            {"items": [{"name": "a", "port": 1}]},
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
        ("aab", "ba", "ba"),
        ("aab", "an", "anb"),
        ("aa", "a", "a"),
    ],
)
def test_shared_items_come_in_the_applied_order(live: str, applied: str, expected: str) -> None:
    assert "".join(combined(list(live), list(applied), set_of())) == expected


def test_names_that_nobody_uses_again_are_forgotten() -> None:
    for number in range(MOST_KNOWN + 1):
        text_of_new({f"name-{number}": "x"}, map_of(SCALAR))
    assert 0 < len(_KNOWN_MEMBERS) <= MOST_KNOWN


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
        ({"labels": {"a": "1"}}, FieldSet.of([(field("labels"), field("a"))]), {"labels": None}),
        ({"tags": ["a", "b"]}, FieldSet.of([(field("tags"), value("a"))]), {"tags": ["b"]}),
        ({"tags": ["a"]}, FieldSet.of([(field("tags"), value("a"))]), {"tags": None}),
        (
            {"items": [{"name": "a", "value": "1"}, {"name": "b"}]},
            FieldSet.of([(field("items"), key({"name": "a"}), field("value")), (field("items"), key({"name": "b"}))]),
            {"items": [{"name": "a"}]},
        ),
        ({"free": {"a": {"b": 1}}}, FieldSet.of([(field("free"), field("a"), field("b"))]), {"free": {"a": None}}),
        ({"order": ["a"]}, FieldSet.of([(field("order"), value("a"))]), {"order": None}),
        ({"size": 1}, FieldSet.of([(field("size"), field("strange"))]), {"size": 1}),
    ],
)
def test_fields_are_taken_away_one_by_one(content: Any, fields: FieldSet, expected: Any) -> None:
    assert without(content, fields, SPEC) == expected


def test_nothing_is_left_of_an_object_without_all_its_fields() -> None:
    spec = {"size": 1, "labels": {"a": "1"}, "items": [{"name": "a", "options": {"o": "1"}}], "free": {"x": [1]}, "point": {}}
    assert without(spec, with_named(fields_in(spec, SPEC), SPEC), SPEC) is None


@given(JSON, JSON)
def test_any_values_can_be_combined_and_stripped(one: Any, other: Any) -> None:
    result = combined(one, other, PROBE)
    without(result, fields_in(other, PROBE), PROBE)
    assert without({"size": 1}, NOTHING, SPEC) == {"size": 1}
