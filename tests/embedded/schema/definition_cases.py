"""Definitions that a real server refuses; the embedded one must refuse them with the same causes."""

from collections.abc import Callable
from typing import Any

from tests.embedded.schema.definition_documents import definition

Definition = dict[str, Any]


def _schema(schema: dict[str, Any], **version: Any) -> Definition:
    return definition("badones", schema, **version)


def _of_spec(spec: dict[str, Any], **version: Any) -> Definition:
    return _schema({"type": "object", "properties": {"spec": spec}}, **version)


def _changed(change: Callable[[Definition], Any]) -> Definition:
    crd = _of_spec({"type": "object", "properties": {"a": {"type": "string"}}})
    change(crd)
    return crd


def _rules(*entries: dict[str, Any], **schema: Any) -> Definition:
    return _of_spec(
        {"type": "object", "properties": {"a": {"type": "integer"}}, **schema, "x-kubernetes-validations": list(entries)}
    )


_KEYED = {"type": "array", "x-kubernetes-list-type": "map"}
_A = {"a": {"type": "string"}}

BAD_DEFINITIONS: dict[str, Definition] = {
    "wrong-name": _changed(lambda crd: crd["metadata"].update(name="other.schema.applecart.dev")),
    "no-group": _changed(lambda crd: crd["spec"].pop("group")),
    "bare-group": _changed(lambda crd: (crd["spec"].update(group="local"), crd["metadata"].update(name="badones.local"))),
    "no-scope": _changed(lambda crd: crd["spec"].pop("scope")),
    "odd-scope": _changed(lambda crd: crd["spec"].update(scope="Galaxy")),
    "no-kind": _changed(lambda crd: crd["spec"]["names"].pop("kind")),
    "bad-kind": _changed(lambda crd: crd["spec"]["names"].update(kind="Bad_Kind")),
    "same-list-kind": _changed(lambda crd: crd["spec"]["names"].update(listKind="Badones")),
    "bad-short-name": _changed(lambda crd: crd["spec"]["names"].update(shortNames=["Bad"], categories=["_"])),
    "bad-version-name": _changed(lambda crd: crd["spec"]["versions"][0].update(name="V1.0")),
    "no-schema": _changed(lambda crd: crd["spec"]["versions"][0].pop("schema")),
    "no-storage": _changed(lambda crd: crd["spec"]["versions"][0].update(storage=False)),
    "two-storages": _changed(lambda crd: crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "name": "v2"})),
    "same-versions": _changed(lambda crd: crd["spec"]["versions"].append({**crd["spec"]["versions"][0], "storage": False})),
    "two-versions": _changed(
        lambda crd: crd["spec"]["versions"].append(
            {
                "name": "v2",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": {"type": "object", "nullable": True, "properties": {"a": {"type": "array"}}}},
                "subresources": {"scale": {"specReplicasPath": ".x", "statusReplicasPath": ".status.x"}},
                "additionalPrinterColumns": [{"name": "A", "type": "x", "jsonPath": ".a"}],
                "selectableFields": [{"jsonPath": ".b"}],
            }
        )
    ),
    "preserving": _changed(lambda crd: crd["spec"].update(preserveUnknownFields=True)),
    "protected-group": _changed(
        lambda crd: (crd["spec"].update(group="bad.k8s.io"), crd["metadata"].update(name="badones.bad.k8s.io"))
    ),
    "odd-strategy": _changed(lambda crd: crd["spec"].update(conversion={"strategy": "Guess"})),
    "deprecation": _changed(lambda crd: crd["spec"]["versions"][0].update(deprecationWarning="old")),
    "root-no-type": _schema({"properties": {"spec": {"type": "object"}}}),
    "root-array": _schema({"type": "array", "items": {"type": "string"}}),
    "root-additional": _schema({"type": "object", "additionalProperties": {"type": "string"}}),
    "root-nullable": _schema({"type": "object", "nullable": True}),
    "root-keyword-with-status": _schema({"type": "object", "maxProperties": 3}, subresources={"status": {}}),
    "metadata-labels": _schema(
        {"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}
    ),
    "kind-int": _schema({"type": "object", "properties": {"kind": {"type": "integer"}}}),
    "field-no-type": _of_spec({"type": "object", "properties": {"a": {}}}),
    "item-no-type": _of_spec({"type": "array", "items": {}}),
    "array-no-items": _of_spec({"type": "array"}),
    "items-list": _of_spec({"type": "array", "items": [{"type": "string"}]}),
    "unknown-type": _of_spec({"type": "text"}),
    "null-type": _of_spec({"type": "null"}),
    "both-properties": _of_spec({"type": "object", "properties": _A, "additionalProperties": {"type": "string"}}),
    "reference": _of_spec({"type": "object", "$ref": "#/definitions/x"}),
    "unique-items": _of_spec({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    "bad-pattern": _of_spec({"type": "string", "pattern": "a("}),
    "not-preserving": _of_spec({"type": "object", "x-kubernetes-preserve-unknown-fields": False}),
    "int-or-string-type": _of_spec({"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
    "embedded-text": _of_spec({"type": "string", "x-kubernetes-embedded-resource": True}),
    "embedded-empty": _of_spec({"type": "object", "x-kubernetes-embedded-resource": True}),
    "alternative-type": _of_spec({"type": "object", "properties": _A, "anyOf": [{"type": "object", "description": "x"}]}),
    "alternative-field": _of_spec({"type": "object", "properties": _A, "oneOf": [{"properties": {"b": {"minLength": 1}}}]}),
    "alternative-default": _of_spec({"type": "object", "properties": _A, "allOf": [{"properties": {"a": {"default": "x"}}}]}),
    "default-type": _of_spec({"type": "object", "properties": {"a": {"type": "string", "default": 1}}}),
    "default-enum": _of_spec({"type": "object", "properties": {"a": {"type": "string", "enum": ["a"], "default": "b"}}}),
    "default-unknown": _of_spec({"type": "object", "properties": _A, "default": {"b": 1}}),
    "default-rule": _of_spec({"type": "integer", "default": 3, "x-kubernetes-validations": [{"rule": "self < 3"}]}),
    "default-in-metadata": _schema(
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "default": "x"}}}},
        }
    ),
    "set-of-objects": _of_spec({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}),
    "list-type-on-object": _of_spec({"type": "object", "x-kubernetes-list-type": "set"}),
    "odd-list-type": _of_spec({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}),
    "map-no-keys": _of_spec({**_KEYED, "items": {"type": "object", "properties": _A}}),
    "map-of-texts": _of_spec({**_KEYED, "x-kubernetes-list-map-keys": ["a"], "items": {"type": "string"}}),
    "map-unknown-key": _of_spec({**_KEYED, "x-kubernetes-list-map-keys": ["b"], "items": {"type": "object", "properties": _A}}),
    "map-optional-key": _of_spec(
        {**_KEYED, "x-kubernetes-list-map-keys": ["a"], "items": {"type": "object", "properties": _A}}
    ),
    "keys-without-map": _of_spec({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-map-keys": ["a"]}),
    "odd-map-type": _of_spec({"type": "object", "properties": _A, "x-kubernetes-map-type": "soft"}),
    "column-type": _of_spec({"type": "object"}, additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}]),
    "column-path": _of_spec({"type": "object"}, additionalPrinterColumns=[{"name": "", "type": "string", "jsonPath": "a"}]),
    "column-format": _of_spec(
        {"type": "object"}, additionalPrinterColumns=[{"name": "A", "type": "string", "format": "x", "jsonPath": ""}]
    ),
    "scale-paths": _of_spec(
        {"type": "object"},
        subresources={"scale": {"specReplicasPath": ".status.x", "statusReplicasPath": "status", "labelSelectorPath": ".x"}},
    ),
    "scale-empty": _of_spec({"type": "object"}, subresources={"scale": {}}),
    "selectable": _of_spec(
        {"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "string"}}},
        selectableFields=[{"jsonPath": path} for path in (".spec.x", ".spec.a", ".spec.b", ".spec.b", "spec", ".spec['b']")],
    ),
    "selectable-many": _of_spec(
        {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(9)}},
        selectableFields=[{"jsonPath": f".spec.f{number}"} for number in range(9)],
    ),
    "rule-empty": _rules({"rule": " "}),
    "rule-message": _rules({"rule": "true", "message": " "}, {"rule": "true", "message": "a\nb"}, {"rule": "true &&\ntrue"}),
    "rule-reason": _rules({"rule": "self.a > 1", "reason": "Because"}),
    "rule-field-path": _rules({"rule": "self.a > 1", "fieldPath": ".b"}, {"rule": "self.a > 1", "fieldPath": "a"}),
    "rule-undefined-field": _rules({"rule": "self.b == 1"}),
    "rule-undefined-in-loop": _of_spec(
        {
            "type": "array",
            "maxItems": 3,
            "items": {"type": "object", "properties": _A},
            "x-kubernetes-validations": [{"rule": "self.all(x, x.b == 'x')"}],
        }
    ),
    "rule-select-on-int": _rules({"rule": "self.a.b == 1"}),
    "rule-not-bool": _rules({"rule": "self.a"}),
    "rule-message-not-text": _rules({"rule": "self.a > 1", "messageExpression": "1"}),
    "rule-root-metadata": _schema(
        {"type": "object", "x-kubernetes-validations": [{"rule": "size(self.metadata.labels) == 0"}]}
    ),
    "rule-unused-old": _rules({"rule": "self.a > 1", "optionalOldSelf": True}),
    "rule-uncorrelated": _of_spec(
        {
            "type": "array",
            "maxItems": 3,
            "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf"}]},
        }
    ),
    "rule-in-alternative": _of_spec(
        {"type": "object", "properties": _A, "allOf": [{"x-kubernetes-validations": [{"rule": "true"}]}]}
    ),
}

# Refused by both with the same cause; the CEL libraries word the reason differently.
UNCOMPILABLE: dict[str, Definition] = {
    "syntax": _rules({"rule": "self.a >"}),
    "undeclared": _rules({"rule": "this.a > 1"}),
    "function": _rules({"rule": "self.a.frobnicate()"}),
    "overload": _of_spec({"type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self > 1"}]}),
    "message": _rules({"rule": "self.a > 1", "messageExpression": "self.a +"}),
}
