"""Details of the schema check that the recorded answers do not show."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.schema.checking import go_float, same, schema_errors
from applecart.embedded.schema.schema_node import SchemaNode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0, False), ([1], [True]), ({"a": 1}, {"a": True}), (None, 0)])
def test_values_of_different_types_are_not_the_same(one: Any, other: Any) -> None:
    assert not same(one, other)
    assert not same(other, one)


@given(JSON)
def test_every_value_is_the_same_as_itself(value: Any) -> None:
    assert same(value, value)


def test_the_problems_of_the_alternative_that_comes_closest_are_reported() -> None:
    near = {"properties": {"kind": {"enum": ["a"]}, "size": {"minimum": 5}}}
    far = {"properties": {"kind": {"enum": ["b"]}}, "required": ["x", "y"]}
    node = SchemaNode({"type": "object", "anyOf": [far, near]})
    texts = [str(error) for error in schema_errors(node, {"kind": "a", "size": 1})]
    assert texts == [
        '<nil>: Invalid value: "": "" must validate at least one schema (anyOf)',
        "size: Invalid value: 1: size in body should be greater than or equal to 5",
    ]


def test_the_same_problem_is_reported_once() -> None:
    node = SchemaNode({"type": "object", "required": ["a"], "allOf": [{"required": ["a"]}, {"required": ["a"]}]})
    assert [error.field for error in schema_errors(node, {})] == ["a", "<nil>"]


def test_huge_numbers_are_numbers_but_no_integers() -> None:
    node = SchemaNode({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "number"}}})
    fields = {error.field for error in schema_errors(node, {"a": 2**80, "b": 10**400})}
    assert "a" in fields
    assert "b" not in fields


@pytest.mark.parametrize(
    ("number", "text"), [(1.0, "1"), (0.5, "0.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-7, "1e-07")]
)
def test_floats_are_shown_as_the_real_server_shows_them(number: float, text: str) -> None:
    assert go_float(number) == text
