from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.field_errors import json_type
from applecart.embedded.patching.values import copied, refuses_deep_nesting, same
from applecart.embedded.refusals import Refusal
from tests.embedded.patching.json_values import JSON, nested


@given(JSON)
def test_a_copy_is_equal(value: Any) -> None:
    assert same(copied(value), value)


def test_a_copy_shares_no_container() -> None:
    original = {"a": [{"b": [1]}], "c": {"d": {}}}
    copy = copied(original)
    copy["a"][0]["b"].append(2)
    copy["c"]["d"]["e"] = 1
    assert original == {"a": [{"b": [1]}], "c": {"d": {}}}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (None, None, True),
        (None, 0, False),
        ("1", 1, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ({}, [], False),
    ],
)
def test_numbers_are_equal_by_value_and_booleans_are_no_numbers(one: Any, other: Any, expected: bool) -> None:
    assert same(one, other) is expected
    assert same(other, one) is expected


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "bool"), (1, "number"), (1.5, "number"), ("", "string"), ([], "array"), ({}, "object")],
)
def test_types_have_the_decoders_names(value: Any, name: str) -> None:
    assert json_type(value) == name


def test_a_document_that_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(Refusal) as refused:
        refuses_deep_nesting(copied)(nested(100_000))
    assert refused.value.code == 400
