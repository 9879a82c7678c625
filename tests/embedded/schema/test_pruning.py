"""What a schema does not know."""

from typing import Any

import pytest

from applecart.embedded.schema.node import Node
from applecart.embedded.schema.pruning import unknown_fields

TEXT = {"type": "string"}
FREE = {"x-kubernetes-preserve-unknown-fields": True}


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


@pytest.mark.parametrize(
    ("schema", "document", "paths", "left"),
    [
        (
            properties(a=TEXT),
            {"a": "x", "b": 1, "kind": "K", "metadata": {"z": 1}},
            ["b"],
            {"a": "x", "kind": "K", "metadata": {"z": 1}},
        ),
        (properties(a=properties()), {"a": {"b": {"c": 1}}}, ["a.b"], {"a": {}}),
        (properties(a=properties()), {"a": {"kind": "x"}}, ["a.kind"], {"a": {}}),
        (
            properties(a={"type": "array", "items": properties(b=TEXT)}),
            {"a": [{"b": "", "c": 1}, {"d": 1}]},
            ["a[0].c", "a[1].d"],
            {"a": [{"b": ""}, {}]},
        ),
        (
            properties(a={"type": "object", "additionalProperties": properties()}),
            {"a": {"k": {"x": 1}}},
            ["a.k.x"],
            {"a": {"k": {}}},
        ),
        ({**properties(a=properties()), **FREE}, {"a": {"x": 1}, "b": {"c": 1}}, ["a.x"], {"a": {}, "b": {"c": 1}}),
        (properties(a=FREE), {"a": {"b": [{"c": 1}]}}, [], {"a": {"b": [{"c": 1}]}}),
        (properties(a=TEXT), {"a": {"b": 1}}, ["a.b"], {"a": {}}),
        (properties(a=TEXT), {"a": [{"b": 1}]}, ["a[0].b"], {"a": [{}]}),
        (
            properties(a={"type": "array", "items": {"type": "array", "items": properties()}}),
            {"a": [[{"x": 1}]]},
            ["a[0][0].x"],
            {"a": [[{}]]},
        ),
    ],
)
def test_unknown_fields_are_named_and_removed(schema: Any, document: Any, paths: list[str], left: Any) -> None:
    assert unknown_fields(Node(schema), document, removes=False) == paths
    assert unknown_fields(Node(schema), document, removes=True) == paths
    assert document == left
