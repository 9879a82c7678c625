"""Rules of a schema: where they are asked, and what they say when they fail."""

from typing import Any

import pytest

from applecart.embedded.schema.budget import OF_AN_OBJECT, budget
from applecart.embedded.schema.cel_rules import Rules
from applecart.embedded.schema.schema_node import SchemaNode

INT = {"type": "integer"}


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, **more}]}


def texts(schema: dict[str, Any], document: Any, *old: Any) -> list[str]:
    root = {"type": "object", "properties": {"a": schema}}
    found = Rules(SchemaNode(root)).errors({"a": document}, *({"a": one} for one in old))
    return [f"forgiven {error}" if error.is_forgiven else str(error) for error in found]


def test_a_rule_that_does_not_compile_fails_every_object_it_is_asked_about() -> None:
    (text,) = texts({**INT, **rule("self.nope(1)")}, 1)
    assert text.startswith('a: Invalid value: "integer": rule compile error: compilation failed: ERROR: <input>')


def test_a_rule_at_the_root_is_reported_without_a_field() -> None:
    errors = Rules(SchemaNode({"type": "object", **rule("self.kind == 'A'", message="no")})).errors({"kind": "B"})
    assert [str(error) for error in errors] == ["<nil>: Invalid value: no"]


def test_a_rule_about_an_absent_or_null_value_is_not_asked() -> None:
    assert texts({**INT, "nullable": True, **rule("false")}, None) == []
    assert Rules(SchemaNode({"type": "object", "properties": {"a": {**INT, **rule("false")}}})).errors({}) == []


def test_a_transition_is_not_asked_where_there_is_no_old_value() -> None:
    schema = {**INT, **rule("self > oldSelf", message="must grow")}
    assert texts(schema, 1) == []
    assert texts(schema, 1, 1) == ["a: Invalid value: 1: must grow"]
    assert texts(schema, 1, None) == []


def test_a_message_expression_may_use_the_old_value() -> None:
    schema = {**INT, **rule("self > oldSelf", messageExpression="'was ' + string(oldSelf)")}
    assert texts(schema, 1, 3) == ["a: Invalid value: 1: was 3"]


@pytest.mark.parametrize("said", ["''", "'a\\nb'", "'x'.charAt(9)", "'" + "x" * 6000 + "'"])
def test_a_message_expression_that_says_nothing_usable_gives_way_to_the_message(said: str) -> None:
    assert texts({**INT, **rule("false", messageExpression=said, message="plain")}, 1) == ["a: Invalid value: 1: plain"]


def test_a_field_path_points_below_the_rule() -> None:
    schema = {
        "type": "object",
        "properties": {"m": {"type": "object", "additionalProperties": INT}},
        **rule("false", fieldPath=".m['x.y']", message="no"),
    }
    assert texts(schema, {}) == ["a.m[x.y]: Invalid value: no"]


def test_too_much_data_ends_the_questions() -> None:
    schema = {"type": "array", "items": {**INT, **rule("false")}, **rule("self.all(x, self.exists(y, x == y))")}
    with budget(OF_AN_OBJECT):
        (text,) = texts(schema, [1] * 5000)
    assert text.startswith('a: Invalid value: "array": validation failed due to running out of cost budget')


def test_an_unchanged_neighbour_in_a_list_without_keys_is_not_forgiven() -> None:
    schema = {"type": "array", "items": {**INT, **rule("self < 5")}}
    assert texts(schema, [9], [9]) == ["forgiven a[0]: Invalid value: 9: failed rule: self < 5"]
    assert texts(schema, [9, 1], [9]) == ["a[0]: Invalid value: 9: failed rule: self < 5"]
