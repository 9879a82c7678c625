"""What absence and null become."""

from typing import Any

import pytest

from applecart.embedded.schema.defaulting import fill_defaults
from applecart.embedded.schema.node import Node

INT = {"type": "integer"}


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize(
    ("schema", "document", "filled"),
    [
        (properties(a={**INT, "default": 1}), {}, {"a": 1}),
        (properties(a={**INT, "default": 1}), {"a": 2}, {"a": 2}),
        (properties(a={**INT, "default": 1}), {"a": None}, {"a": 1}),
        (properties(a={**INT, "default": 1, "nullable": True}), {"a": None}, {"a": None}),
        (properties(a=INT), {"a": None}, {}),
        (properties(), {"a": None}, {"a": None}),
        (properties(a=properties(b={**INT, "default": 1})), {}, {}),
        (properties(a={**properties(b={**INT, "default": 1}), "default": {}}), {}, {"a": {"b": 1}}),
        ({"type": "object", "additionalProperties": {**INT, "default": 4}}, {"x": None, "y": 1}, {"x": 4, "y": 1}),
        (properties(a={"type": "array", "items": {**INT, "default": 3}}), {"a": [None, 1]}, {"a": [3, 1]}),
        (properties(a={"type": "array", "items": INT}), {"a": [None]}, {"a": [None]}),
        (properties(a={"type": "array", "items": properties(b={**INT, "default": 1})}), {"a": [{}]}, {"a": [{"b": 1}]}),
        (properties(a={**INT, "default": 1}), {"a": [1]}, {"a": [1]}),
    ],
)
def test_defaults_fill_what_is_absent(schema: Any, document: Any, filled: Any) -> None:
    fill_defaults(document, Node(schema))
    assert document == filled


def test_two_documents_never_share_a_default() -> None:
    node = Node(properties(a={"type": "object", "default": {"x": [1]}}))
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    fill_defaults(one, node)
    fill_defaults(other, node)
    one["a"]["x"].append(2)
    assert other == {"a": {"x": [1]}}
