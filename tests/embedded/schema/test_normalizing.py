"""What a schema does not know, and what absence and null become."""

from typing import Any

import pytest

from applecart.embedded.schema.normalizing import fill_defaults, prune
from applecart.embedded.schema.schema_node import SchemaNode

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
    assert prune(SchemaNode(schema), document) == paths
    assert document == left


INT = {"type": "integer"}


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
    fill_defaults(document, SchemaNode(schema))
    assert document == filled


def test_two_documents_never_share_a_default() -> None:
    node = SchemaNode(properties(a={"type": "object", "default": {"x": [1]}}))
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    fill_defaults(one, node)
    fill_defaults(other, node)
    one["a"]["x"].append(2)
    assert other == {"a": {"x": [1]}}
