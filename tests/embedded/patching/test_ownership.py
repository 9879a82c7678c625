"""Which fields an object has, and which a write touches."""

from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.field_set import FieldSet
from applecart.embedded.patching.ownership import changes_between, fields_in, with_named
from applecart.embedded.patching.path_elements import path_text
from applecart.embedded.patching.values import ABSENT, same
from tests.embedded.patching.json_values import JSON, OBJECTS
from tests.embedded.patching.shapes import PROBE

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
