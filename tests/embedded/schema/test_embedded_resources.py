"""Objects inside objects."""

from typing import Any

import pytest

from applecart.embedded.schema.embedded_resources import embedded_errors, unknown_metadata
from applecart.embedded.schema.node import Node

EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
NODE = Node(
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


def test_metadata_that_no_object_has_is_named() -> None:
    document = {"map": {"k": {**GOOD, "metadata": {"name": "a", "nmae": "b"}}}}
    assert unknown_metadata(NODE, document, removes=False) == ["map.k.metadata.nmae"]
    assert document["map"]["k"]["metadata"] == {"name": "a", "nmae": "b"}
