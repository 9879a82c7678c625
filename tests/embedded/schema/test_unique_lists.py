"""Lists that hold nothing twice."""

from typing import Any

import pytest

from applecart.embedded.schema.node import Node
from applecart.embedded.schema.unique_lists import duplicate_errors

SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-preserve-unknown-fields": True}}
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object"}}


def texts(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(error) for error in duplicate_errors(Node({"type": "object", "properties": {"a": schema}}), {"a": value})]


@pytest.mark.parametrize(
    ("schema", "value", "found"),
    [
        (SET, [1, 2, 1], ["a[2]: Duplicate value: 1"]),
        (SET, [{"x": 1, "y": 2}, {"y": 2, "x": 1}], ['a[1]: Duplicate value: {"y":2,"x":1}']),
        (SET, [1, True, "1", None], []),
        (SET, "no list", []),
        (KEYED, [{"name": "a"}, {"name": "b"}, {"name": "a"}], ['a[2]: Duplicate value: {"name":"a"}']),
        (KEYED, [{}, {}], ["a[1]: Duplicate value: {}"]),
        (KEYED, [None, {}], ["a[1]: Duplicate value: {}"]),
        (KEYED, [{"name": "a"}, 5], ["a[1]: Invalid value: 5: must be an object for an array of list-type map"]),
        ({"type": "object", "additionalProperties": SET}, {"k": [1, 1]}, ["a[k][1]: Duplicate value: 1"]),
        ({"type": "array", "items": SET}, [[1], [2, 2]], ["a[1][1]: Duplicate value: 2"]),
    ],
)
def test_a_second_occurrence_is_refused(schema: Any, value: Any, found: list[str]) -> None:
    assert texts(schema, value) == found
