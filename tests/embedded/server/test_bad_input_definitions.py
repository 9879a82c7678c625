"""No definition makes the server fail, nor any object of one: schemas, rules, columns and paths that are broken or hostile.

A definition is installed or refused. What was installed is then written, listed, changed under its objects and removed.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.embedded.server.strategies import CRD_PATH, PATCHES, TABLE, Call, Document, bear, broken, few_inputs, places, post

JSON_PATCH, MERGE_PATCH, _, APPLY_PATCH = PATCHES
NAME = "things.rich.applecart.dev"
THINGS = "/apis/rich.applecart.dev/v1/namespaces/default/things"
THING: Document = {
    "apiVersion": "rich.applecart.dev/v1",
    "kind": "Thing",
    "metadata": {"name": "t", "finalizers": ["a.b/c"]},
    "spec": {
        "color": "red",
        "replicas": 3,
        "items": [{"k": "a", "v": 1.5}, {"k": "b", "v": None}],
        "addresses": ["10.0.0.1"],
        "name": "abc",
        "when": "2026-01-02T03:04:05Z",
        "wait": "5s",
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
        "port": "5",
        "counts": {"a": 1},
        "choice": {"a": "x"},
    },
    "status": {"replicas": 1, "selector": "a=b"},
}
SPEC: Document = {
    "type": "object",
    "required": ["color"],
    "properties": {
        "color": {"type": "string", "enum": ["red", "blue"], "maxLength": 10, "default": "red"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 100, "exclusiveMaximum": True, "default": 1},
        "items": {
            "type": "array",
            "maxItems": 10,
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {
                    "k": {"type": "string", "maxLength": 5},
                    "v": {"type": "number", "multipleOf": 0.5, "nullable": True},
                },
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
        },
        "addresses": {
            "type": "array",
            "items": {"type": "string", "format": "ipv4"},
            "x-kubernetes-list-type": "set",
            "maxItems": 5,
        },
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1},
        "when": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "object": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "counts": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}, "maxProperties": 4},
        "choice": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "x-kubernetes-map-type": "atomic",
        },
    },
    "x-kubernetes-validations": [
        {"rule": 'self.color != "green"', "messageExpression": '"bad " + self.color', "fieldPath": ".color"},
        {"rule": "!has(oldSelf.color) || self.color == oldSelf.color"},
    ],
}
DEFINITION: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": NAME},
    "spec": {
        "group": "rich.applecart.dev",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "A", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "B", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    {"name": "C", "type": "integer", "jsonPath": '.spec.items[?(@.k=="a")].v'},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": SPEC,
                            "status": {
                                "type": "object",
                                "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}
KEYWORDS: list[tuple[str, Any]] = [
    ("pattern", "("), ("pattern", "(?<=a)"), ("pattern", "a{1000}{1000}"), ("pattern", "\\"), ("multipleOf", 0),
    ("multipleOf", 1e-300), ("minimum", 1e308), ("format", "uuid"), ("format", "byte"), ("default", None), ("default", {}),
    ("enum", []), ("enum", [None, {}, []]), ("type", ""), ("type", "any"), ("items", {}), ("additionalProperties", False),
    ("properties", {"": {"type": "string"}}), ("properties", {"a b": {"type": "string"}, "in": {"type": "string"}}),
    ("$ref", "#/x"), ("uniqueItems", True), ("x-kubernetes-list-map-keys", ["z"]), ("minLength", -1), ("maxItems", 2**62),
    ("allOf", [{}]), ("anyOf", [{"type": "integer"}]), ("not", {}), ("x-kubernetes-int-or-string", True), ("nullable", True),
]  # fmt: skip
RULES = [
    "", "self", "true", "self.", "self == oldSelf", "a(", "self.replicas / 0 == 1", '"a".matches("(")', "[][9]",
    'self.counts["z"] == 1', "has(self)", "timestamp(self.when) > timestamp('x')", "duration(self.wait) > duration('1s')",
    "quantity(self.color).isGreaterThan(quantity('1'))", "url(self.color).getHost() == ''", "ip(self.color).family() == 4",
    "int(self.color) == 1", "9223372036854775807 + 1 > 0", "self.color.substring(99) == ''", "self.color.charAt(-1) == ''",
    "'%d'.format(['a']) == ''", "'x'.replace('x','y',-5) == 'y'", "[1][5] == 1", "optional.none().value() == 1",
    "oldSelf.hasValue()", "(" * 300 + "1" + ")" * 300, "!" * 500 + "true", "true || " * 3000 + "true", 'string(b"\\xff") == ""',
    "-9223372036854775808 / -1 == 0", "uint(-1) == 1u", "int(1e300) == 1", "self.items.all(a, self.items.all(b, true))",
]  # fmt: skip
COLUMNS = [
    ".", "", "{", "{.}", ".spec[", ".spec[?(", ".spec[*]", ".spec.items[-1].k", ".spec.items[0:99]", ".spec.items[::0]", "..k",
    '.spec["color"]', ".spec.items[?(@.v>1)].k", '.spec.items[?(@.v>"a")].k', "." * 500, "[" * 500, ".spec.counts", ".spec",
]  # fmt: skip


def at(value: Any, place: tuple[Any, ...]) -> Any:
    for name in place:
        value = value[name]
    return value


@st.composite
def definitions(draw: st.DrawFn) -> Any:
    definition = msgspec.json.decode(msgspec.json.encode(DEFINITION))
    version = definition["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    nodes = [schema, *(node for node in (at(schema, place) for place in places(schema)) if isinstance(node, dict))]
    if draw(st.booleans()):
        name, value = draw(st.sampled_from(KEYWORDS))
        draw(st.sampled_from(nodes))[name] = msgspec.json.decode(msgspec.json.encode(value))
    if draw(st.booleans()):
        rule: Document = {"rule": draw(st.sampled_from(RULES))}
        if draw(st.booleans()):
            rule["messageExpression"] = draw(st.sampled_from(RULES))
        draw(st.sampled_from(nodes))["x-kubernetes-validations"] = [rule]
    if draw(st.booleans()):
        of_type = draw(st.sampled_from(["string", "integer", "date", "number", "boolean", "x"]))
        version["additionalPrinterColumns"] += [{"name": "Z", "type": of_type, "jsonPath": draw(st.sampled_from(COLUMNS))}]
    return draw(broken(definition, 2)) if draw(st.booleans()) else definition


@st.composite
def lives(draw: st.DrawFn) -> list[Call]:
    """A definition with its objects, from the first write to the last."""
    first, second = (msgspec.json.encode(draw(st.just(DEFINITION) | definitions())) for _ in range(2))
    one, definition = f"{THINGS}/t", f"{CRD_PATH}/{NAME}"
    things = [msgspec.json.encode(draw(broken(THING, 2))) for _ in range(2)]
    return [
        Call("POST", CRD_PATH, first),
        post(THINGS, THING),
        Call("PUT", one, things[0]),
        Call("PATCH", one, things[1], MERGE_PATCH),
        Call("PATCH", f"{one}/status", things[1], MERGE_PATCH),
        Call("PATCH", one, things[0], APPLY_PATCH, query={"fieldManager": "m", "force": "1"}),
        Call("GET", THINGS, accept=TABLE),
        Call("PATCH", f"{one}/scale", b'{"spec":{"replicas":5}}', MERGE_PATCH),
        Call("GET", THINGS, query={"fieldSelector": "spec.color=red"}),
        Call("GET", "/openapi/v3/apis/rich.applecart.dev/v1"),
        Call("PATCH", definition, second, MERGE_PATCH),
        Call("GET", THINGS, accept=TABLE),
        Call("PATCH", one, b'{"metadata":{"labels":{"a":"c"}}}', MERGE_PATCH),
        Call("DELETE", definition),
        Call("PATCH", one, b'{"metadata":{"finalizers":null}}', MERGE_PATCH),
    ]


@settings(few_inputs, max_examples=25)
@given(lives())
def test_any_definition_is_refused_or_serves_until_it_is_deleted(calls: list[Call]) -> None:
    bear(*calls)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule[:40])
def test_any_rule_is_refused_or_judges_the_objects(rule: str) -> None:
    steps = [
        {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/1/rule"}
    ]
    change = msgspec.json.encode([{**steps[0], "value": rule}])
    definition = f"{CRD_PATH}/{NAME}"
    touched = Call("PATCH", f"{THINGS}/t", b'{"spec":{"replicas":4}}', MERGE_PATCH)
    bear(post(CRD_PATH, DEFINITION), Call("PATCH", definition, change, JSON_PATCH), post(THINGS, THING), touched)


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column[:40])
def test_any_column_is_refused_or_shown(column: str) -> None:
    change = [{"op": "replace", "path": "/spec/versions/0/additionalPrinterColumns/0/jsonPath", "value": column}]
    patch = Call("PATCH", f"{CRD_PATH}/{NAME}", msgspec.json.encode(change), JSON_PATCH)
    answers = bear(post(CRD_PATH, DEFINITION), patch, post(THINGS, THING), Call("GET", THINGS, accept=TABLE))
    assert [answers[0].status, answers[2].status, answers[3].status] == [201, 201, 200]
