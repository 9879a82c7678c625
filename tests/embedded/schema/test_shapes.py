"""Shapes of custom objects."""

from applecart.embedded.schema.node import Node
from applecart.embedded.schema.shapes import shape_of_schema
from applecart.embedded.shape import UNTYPED

TEXT = {"type": "string"}
SHAPE = shape_of_schema(
    Node(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "text": TEXT,
                        "free": {"x-kubernetes-preserve-unknown-fields": True},
                        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "map": {"type": "object", "additionalProperties": TEXT},
                        "whole": {"type": "object", "properties": {"a": TEXT}, "x-kubernetes-map-type": "atomic"},
                        "list": {"type": "array", "items": TEXT},
                        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                        "ports": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["port", "protocol"],
                            "items": {
                                "type": "object",
                                "properties": {"port": {"type": "integer"}, "protocol": {**TEXT, "default": "TCP"}},
                            },
                        },
                        "pod": {
                            "type": "object",
                            "x-kubernetes-embedded-resource": True,
                            "properties": {"spec": {"type": "object"}},
                        },
                    },
                }
            },
        }
    )
)
SPEC = SHAPE.child("spec")


def test_members_have_the_sort_their_type_gives_them() -> None:
    sorts = {name: shape.sort for name, shape in SPEC.fields.items()}
    assert sorts == {
        "text": "scalar",
        "free": "untyped",
        "any": "map",
        "map": "map",
        "whole": "struct",
        "pod": "struct",
        "list": "list",
        "set": "list",
        "ports": "list",
    }
    assert SPEC.child("whole").is_atomic
    assert SPEC.child("nothing") is UNTYPED


def test_lists_know_what_identifies_their_items() -> None:
    assert SPEC.child("list").list_type == "atomic"
    assert SPEC.child("set").list_type == "set"
    ports = SPEC.child("ports")
    assert (ports.list_type, ports.list_keys, ports.key_defaults) == ("map", ("port", "protocol"), {"protocol": "TCP"})
    assert ports.child("").child("port").sort == "scalar"


def test_metadata_of_roots_and_embedded_resources_is_that_of_every_object() -> None:
    for shape in (SHAPE, SPEC.child("pod")):
        metadata = shape.child("metadata")
        assert metadata.child("labels").sort == "map"
        assert metadata.child("finalizers").list_type == "set"
        assert metadata.child("ownerReferences").list_keys == ("uid",)
    assert SPEC.child("pod").child("spec").sort == "map"
