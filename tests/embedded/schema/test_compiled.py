"""The compiled schema as a whole: the order of a write, the shape it gives, and that no document can break it."""

import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.field_errors import FieldError
from applecart.embedded.schema import compiled
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop
from applecart.embedded.schema.checking import schema_errors
from applecart.embedded.schema.compiled import NOT_CHECKED, TOO_COSTLY, CompiledSchema, shape_of_schema
from applecart.embedded.schema.schema_keywords import keyword_errors
from applecart.embedded.schema.schema_node import SchemaNode
from applecart.embedded.shape import UNTYPED
from tests.embedded.schema.judged import refusal_of

TEXT = {"type": "string"}


def schema(**spec: Any) -> CompiledSchema:
    return CompiledSchema({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}})


def test_unknown_fields_are_named_and_removed() -> None:
    document = {"spec": {"a": "x", "b": [{"c": 1}]}, "extra": 1, "metadata": {"anything": 1}}
    compiled = schema(a=TEXT)
    assert compiled.prune(document) == ["extra", "spec.b"]
    assert document == {"spec": {"a": "x"}, "metadata": {"anything": 1}}


def test_unknown_metadata_of_an_embedded_resource_is_named_and_removed() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    document = {"spec": {"pods": [{"kind": "Pod", "metadata": {"name": "a", "bogus": 1}, "free": 1}]}}
    compiled = schema(pods={"type": "array", "items": embedded})
    assert compiled.prune(document) == ["spec.pods[0].metadata.bogus"]
    assert document["spec"]["pods"][0] == {"kind": "Pod", "metadata": {"name": "a"}, "free": 1}


def test_rules_are_asked_although_a_limit_is_broken_but_not_when_a_type_is_wrong() -> None:
    rule = {"type": "integer", "minimum": 5, "x-kubernetes-validations": [{"rule": "self != 3", "message": "not three"}]}
    compiled = schema(a=rule, b=TEXT)
    assert [error.detail for error in compiled.validate({"spec": {"a": 3}})] == [
        "spec.a in body should be greater than or equal to 5",
        "not three",
    ]
    assert [error.detail for error in compiled.validate({"spec": {"a": 3, "b": 1}})][-1] == NOT_CHECKED


def test_a_schema_without_rules_never_says_that_rules_were_not_checked() -> None:
    assert [error.field for error in schema(b=TEXT).validate({"spec": {"b": 1}})] == ["spec.b"]


def test_what_was_found_elsewhere_is_reported_in_the_usual_order() -> None:
    compiled = schema(a={"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]}, b=TEXT)
    more = [FieldError("Invalid", ".spec.a", "elsewhere", 1)]
    before = [FieldError("Invalid", "metadata.name", "elsewhere", 1)]
    fields = [error.field for error in compiled.validate({"spec": {"a": 1}}, found=before, more=more)]
    assert fields == ["metadata.name", ".spec.a", "spec.a"]


def test_names_may_be_limited_by_the_schema() -> None:
    name = {"type": "string", "maxLength": 3}
    compiled = CompiledSchema({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": name}}}})
    assert [str(error) for error in compiled.validate({"metadata": {"name": "long"}})] == [
        "metadata.name: Too long: may not be more than 3 bytes"
    ]


def test_validation_changes_nothing() -> None:
    compiled = schema(a={"type": "number", "x-kubernetes-validations": [{"rule": "self < 1.0"}]})
    document = {"spec": {"a": 3}}
    before = deepcopy(document)
    compiled.validate(document, {"spec": {"a": 4}})
    assert document == before
    assert type(document["spec"]["a"]) is int


def test_a_status_is_judged_alone_and_reported_with_its_place() -> None:
    compiled = CompiledSchema(
        {
            "type": "object",
            "properties": {
                "spec": {"type": "object", "required": ["a"], "properties": {"a": TEXT}},
                "status": {"type": "object", "properties": {"phase": TEXT}},
            },
        }
    )
    errors = compiled.validate_status({"spec": {}, "status": {"phase": 1}}, {"spec": {}})
    assert [str(error) for error in errors] == [
        'status.phase: Invalid value: "integer": phase in body must be of type string: "integer"'
    ]


def test_a_deeply_nested_document_is_refused_or_taken_but_never_an_accident() -> None:
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    compiled = schema(a={"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}}, b={"type": "array"})
    for name in ("a", "b"):
        for call in (compiled.prune, compiled.default, lambda one: compiled.validate(one, one)):
            assert refusal_of(partial(call, {"spec": {name: nested}})) in (0, 400)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**63, -(2**63), 2**64, 1e308])
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["a", "b", "10.0.0.1"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "name", "metadata"]), inner, max_size=3)
    ),
    max_leaves=12,
)
KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "array", "object"]),
        "nullable": st.booleans(),
        "enum": st.lists(JSON, max_size=2),
        "minimum": st.floats(allow_nan=False) | st.integers(),
        "maximum": st.floats(allow_nan=False) | st.integers(),
        "exclusiveMinimum": st.booleans(),
        "multipleOf": st.floats(allow_nan=False, min_value=-2) | st.integers(-2, 5),
        "minLength": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "maxItems": st.integers(0, 3),
        "minProperties": st.integers(0, 3),
        "pattern": st.sampled_from(["^a", "b$", "a(", r"\d+", "(a+)+$"]),
        "format": st.sampled_from(["int32", "int64", "float", "date-time", "ipv4", "byte", "uuid", "duration", "odd"]),
        "required": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "default": JSON,
        "x-kubernetes-preserve-unknown-fields": st.booleans(),
        "x-kubernetes-int-or-string": st.booleans(),
        "x-kubernetes-embedded-resource": st.booleans(),
        "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic"]),
        "x-kubernetes-list-map-keys": st.just(["name"]),
        "x-kubernetes-validations": st.lists(
            st.fixed_dictionaries(
                {"rule": st.sampled_from(["self.a == 1", "self == oldSelf", "size(self) > 0", "self.all(x, x == x)"])}
            ),
            max_size=1,
        ),
    },
)
SCHEMAS = st.recursive(
    KEYWORDS,
    lambda inner: st.builds(
        lambda base, members: {**base, **members},
        KEYWORDS,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(st.sampled_from(["a", "b", "name"]), inner, max_size=2),
                "additionalProperties": inner | st.booleans(),
                "items": inner,
                "anyOf": st.lists(inner, max_size=2),
                "oneOf": st.lists(inner, max_size=2),
                "allOf": st.lists(inner, max_size=2),
                "not": inner,
            },
        ),
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b", "name", "metadata", "status"]), JSON, max_size=4)


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, OBJECTS, OBJECTS)
def test_no_document_breaks_any_schema(raw: dict[str, Any], document: dict[str, Any], old: dict[str, Any]) -> None:
    compiled = CompiledSchema({**raw, "type": "object"})
    compiled.prune(document)
    compiled.default(document)
    for errors in (compiled.validate(document), compiled.validate(document, old), compiled.validate_status(document, old)):
        for error in errors:
            assert str(error)
            assert error.field
    assert compiled.shape is not None


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, OBJECTS)
def test_pruning_and_defaulting_twice_changes_nothing_more(raw: dict[str, Any], document: dict[str, Any]) -> None:
    compiled = CompiledSchema({**raw, "type": "object"})
    compiled.prune(document)
    assert compiled.prune(document) == []
    compiled.default(document)
    once = deepcopy(document)
    compiled.default(document)
    assert document == once


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, OBJECTS)
def test_what_did_not_change_is_never_refused_by_the_schema(raw: dict[str, Any], document: dict[str, Any]) -> None:
    assert schema_errors(SchemaNode({**raw, "type": "object"}), document, deepcopy(document)) == []


def test_what_would_take_too_many_steps_is_refused_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand alternatives for each item of a list, and a pattern for which no table of states is small enough."""
    monkeypatch.setattr(compiled, "OF_AN_OBJECT", 100_000)
    narrow = [{"maxLength": length} for length in range(1000)]
    wide = schema(names={"type": "array", "items": {"type": "string", "anyOf": narrow}})
    (error,) = wide.validate({"spec": {"names": ["x" * 2000] * 100}})
    assert error.detail == TOO_COSTLY
    assert wide.validate({"spec": {"names": ["x" * 20] * 9}}) == []
    (error,) = schema(name={"type": "string", "pattern": "(a|b)*a(a|b){900}"}).validate({"spec": {"name": "ab" * 70_000}})
    assert error.detail == TOO_COSTLY


@pytest.mark.parametrize("raw", [{}, {"type": 5, "properties": [1], "items": "x", "required": {}, "enum": 1, "default": None}])
def test_a_schema_that_is_none_lets_everything_pass(raw: dict[str, Any]) -> None:
    assert CompiledSchema(raw).validate({"a": 1}) == []


SHAPE = shape_of_schema(
    SchemaNode(
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
    ),
    is_resource=True,
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


RULED = {"type": "object", "x-kubernetes-validations": [{"rule": "true"}]}


@pytest.mark.parametrize("asks", [lambda: CompiledSchema(RULED), lambda: keyword_errors(RULED, "", compiles_rules=True)])
def test_the_library_of_rules_is_not_imported_on_the_loop(asks: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """247 ms, in which nobody else was served."""
    asks()
    with on_the_loop():
        asks()
    monkeypatch.delitem(sys.modules, "applecart.embedded.schema.cel_rules")
    with on_the_loop(), pytest.raises(TooMuchForTheLoop):
        asks()
