"""The checker of structural schemas finds what Kubernetes would refuse."""

from typing import Any

import pytest

from applecart.api.structural import violations

OBJECT = {"type": "object"}


def root(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_a_good_schema_has_no_violations() -> None:
    rules = [{"rule": "self.a == oldSelf.a", "message": "a must not change", "fieldPath": ".a"}]
    items = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "x-kubernetes-validations": []}
    schema = {
        "type": "object",
        "required": ["a"],
        "x-kubernetes-validations": rules,
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
            "a": {"type": "string", "default": "x", "enum": ["x", "y"], "pattern": "^[a-z]$"},
            "b": {"x-kubernetes-int-or-string": True, "anyOf": [{"minimum": 1}]},
            "c": {
                "type": "array",
                "items": items,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
            },
            "d": {"type": "object", "additionalProperties": {"type": "integer", "default": 3, "maximum": 3}},
            "e": {"type": "string", "nullable": True, "default": None},
            "f": {"type": "object", "default": {"g": 1}, "properties": {"g": {"type": "integer"}}},
            "h": {"type": "array", "items": {"type": "string"}, "default": ["a"], "x-kubernetes-list-type": "set"},
            "i": {"x-kubernetes-preserve-unknown-fields": True, "default": True},
        },
    }
    assert violations(schema) == []


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "string"}, "the root: type must be object"),
        (root(a={}), ".a: type is missing"),
        (root(a={"type": "text"}), ".a: 'text' is no type"),
        (root(a={"$ref": "#/x", "type": "object"}), ".a: $ref is not allowed"),
        (root(a={"type": "array", "items": {"type": "string"}, "uniqueItems": True}), ".a: uniqueItems is not allowed"),
        (root(a={"type": "integer", "x-kubernetes-int-or-string": True}), ".a: int-or-string excludes type"),
        (
            root(a={"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            ".a: properties and additionalProperties exclude",
        ),
        (root(a={"type": "object", "additionalProperties": False}), ".a: additionalProperties must not be false"),
        ({**OBJECT, "required": ["b"], "properties": {}}, "the root: required field b is not among the properties"),
        (root(a={"type": "integer", "default": "1"}), ".a: default '1' does not fit"),
        (root(a={"type": "integer", "default": True}), ".a: default True does not fit"),
        (root(a={"type": "integer", "default": 0, "minimum": 1}), ".a: default 0 does not fit"),
        (root(a={"type": "string", "default": "", "minLength": 1}), ".a: default '' does not fit"),
        (root(a={"type": "string", "default": "A", "pattern": "^[a-z]$"}), ".a: default 'A' does not fit"),
        (root(a={"type": "string", "default": "c", "enum": ["a"]}), ".a: default 'c' does not fit"),
        (root(a={"type": "string", "default": None}), ".a: default None does not fit"),
        (root(a={"type": "array", "items": {"type": "string"}, "default": [1]}), ".a: default [1] does not fit"),
        (
            root(a={"type": "object", "default": {"b": "x"}, "properties": {"b": {"type": "integer"}}}),
            ".a: default {'b': 'x'} does not fit",
        ),
        (root(a={"type": "string", "enum": []}), ".a: enum is empty"),
        (root(a={"type": "string", "enum": [1]}), ".a: enum value 1 is no string"),
        (root(a={"type": "integer", "exclusiveMinimum": 0}), ".a: exclusiveMinimum must be a boolean"),
        (root(a={"type": "string", "pattern": "("}), ".a: pattern is no regular expression"),
        (root(a={"type": "array", "items": [{"type": "string"}]}), ".a: items must be one schema"),
        (root(a={"type": "string", "x-kubernetes-list-type": "atomic"}), ".a: only an array has a list type"),
        (
            root(a={"type": "array", "items": {**OBJECT}, "x-kubernetes-list-type": "set"}),
            ".a: a list of type set holds scalars",
        ),
        (
            root(a={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-map-keys": ["k"]}),
            ".a: list-map-keys need list-type map",
        ),
        (
            root(a={"type": "array", "items": {**OBJECT}, "x-kubernetes-list-type": "map"}),
            ".a: a list of type map holds objects and names their keys",
        ),
        (
            root(
                a={
                    "type": "array",
                    "items": root(k=OBJECT),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                }
            ),
            ".a: map key k must be a scalar field",
        ),
        (
            root(
                a={
                    "type": "array",
                    "items": root(k={"type": "string"}),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                }
            ),
            ".a: map key k must be required or have a default",
        ),
        (root(a={"type": "string", "anyOf": [{"type": "string"}]}), ".a: anyOf may only hold value validations"),
        (root(metadata=root(labels=OBJECT)), ".metadata: only name and generateName may be restricted, not labels"),
        (
            root(a={"type": "string", "x-kubernetes-validations": [{"rule": " ", "message": "a must be good"}]}),
            ".a: a CEL rule is empty",
        ),
        (
            root(a={"type": "string", "x-kubernetes-validations": [{"rule": "true", "message": "bad"}]}),
            ".a: the message of CEL rule 'true' must be a sentence",
        ),
        (
            root(
                a={
                    "type": "array",
                    "items": {
                        "type": "string",
                        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a must not change"}],
                    },
                }
            ),
            ".a[]: CEL rule 'self == oldSelf' uses oldSelf where",
        ),
        (
            root(a={**OBJECT, "x-kubernetes-validations": [{"rule": "true", "message": "a b c", "fieldPath": ".b"}]}),
            ".a: CEL rule 'true' points to .b, which is no field",
        ),
        (root(a=root(b={"type": "array", "items": {}})), ".a.b[]: type is missing"),
        (root(a={"type": "object", "additionalProperties": {}}), ".a.*: type is missing"),
    ],
)
def test_a_broken_rule_is_a_sentence_with_the_place(schema: dict[str, Any], sentence: str) -> None:
    found = violations(schema)
    assert any(violation.startswith(sentence) for violation in found), found
