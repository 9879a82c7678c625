"""Objects inside objects, and lists that hold nothing twice."""

from typing import Any

import pytest

from applecart.embedded.schema.extensions import duplicate_errors, embedded_errors, prune_metadata
from applecart.embedded.schema.schema_node import SchemaNode

EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
NODE = SchemaNode(
    {
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": EMBEDDED},
            "map": {"type": "object", "additionalProperties": EMBEDDED},
        },
    }
)
GOOD = {"apiVersion": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"apiVersion": 5}, ".apiVersion"),
        ({"apiVersion": ""}, ".apiVersion"),
        ({"apiVersion": "a/b/c"}, ".apiVersion"),
        ({"kind": None}, ".kind"),
        ({"kind": "no kind"}, ".kind"),
        ({"metadata": 5}, ".metadata"),
        ({"metadata": {"name": 5}}, ".metadata"),
        ({"metadata": {"labels": {"a": 1}}}, ".metadata"),
        ({"metadata": {"ownerReferences": [1]}}, ".metadata"),
        ({"metadata": {"name": "a/b"}}, ".metadata.name"),
        ({"metadata": {"labels": {"a b": "c"}}}, ".metadata.labels"),
    ],
)
def test_an_identity_that_is_none_is_refused_at_its_place(changes: dict[str, Any], field: str) -> None:
    document = {"list": [GOOD, {**GOOD, **changes}], "map": {"k": {**GOOD, **changes}}}
    assert [error.field for error in embedded_errors(NODE, document)] == [f"list[1]{field}", f"map[k]{field}"]


def test_good_identities_pass_with_or_without_a_name() -> None:
    metadata = {"generateName": "a-", "namespace": "n", "labels": None, "annotations": {"x/y": "z"}}
    assert embedded_errors(NODE, {"list": [GOOD, {**GOOD, "metadata": metadata}, {**GOOD, "metadata": {}}]}) == []


def test_metadata_that_no_object_has_is_named_and_removed() -> None:
    document = {"map": {"k": {**GOOD, "metadata": {"name": "a", "nmae": "b"}}}}
    assert prune_metadata(NODE, document) == ["map.k.metadata.nmae"]
    assert document["map"]["k"]["metadata"] == {"name": "a"}


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"x-kubernetes-preserve-unknown-fields": True}}
KEYED = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object"}}


def texts(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(error) for error in duplicate_errors(SchemaNode({"type": "object", "properties": {"a": schema}}), {"a": value})]


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
