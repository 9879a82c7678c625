"""The custom kinds that all checks share, and the objects that checks are made of.

Widgets carry one of everything a schema can ask of a server; Gadgets are served in two versions; Realms are cluster-wide.
Plain data: nothing here talks to a server.
"""

from typing import Any

GROUP = "conformance.applecart.dev"
WIDGET = f"{GROUP}/v1"

SPEC_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What a widget shall be.",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10, "description": "How big."},
        "replicas": {"type": "integer", "format": "int32", "default": 1, "minimum": 0},
        "color": {"type": "string", "default": "red", "enum": ["red", "green", "blue"]},
        "nickname": {
            "type": "string",
            "maxLength": 12,
            "pattern": "^[a-z]+$",
            "x-kubernetes-validations": [{"rule": "self != 'bad'", "message": "bad is no nickname"}],
        },
        "note": {"type": "string", "nullable": True},
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "settings": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 3},
        "parts": {
            "type": "array",
            "maxItems": 10,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "count": {"type": "integer", "default": 1},
                    "grade": {"type": "string"},
                },
            },
        },
        "tags": {"type": "array", "maxItems": 10, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "steps": {"type": "array", "items": {"type": "string"}},
        "limits": {
            "type": "object",
            "default": {"low": 0, "high": 5},
            "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
            "x-kubernetes-validations": [
                {"rule": "self.low <= self.high", "message": "low must not be above high", "fieldPath": ".low"}
            ],
        },
        "frozen": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "frozen may not change"}],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "self.replicas <= self.size", "messageExpression": "self.size > 2 ? 'too many' : 'too many of a small one'"},
        {"rule": "!has(self.nickname) || self.size > 1", "message": "a nickname needs a size", "reason": "FieldValueForbidden"},
    ],
}
STATUS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "phase": {"type": "string"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"}},
            },
        },
    },
}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "Of the paint."},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Parts", "type": "string", "jsonPath": ".spec.parts[*].name", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(
    plural: str, kind: str, versions: list[dict[str, Any]], *, group: str = GROUP, scope: str = "Namespaced", **names: Any
) -> dict[str, Any]:
    """A CustomResourceDefinition."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List", **names},
            "versions": versions,
        },
    }


def version(name: str, properties: dict[str, Any], *, storage: bool = True, **more: Any) -> dict[str, Any]:
    """One served version of a kind."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {"name": name, "served": True, "storage": storage, "schema": schema, **more}


SIZE_ONLY = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}, "old": {"type": "string"}}}}
SHARED_CRDS = (
    definition(
        "widgets",
        "Widget",
        [
            version(
                "v1",
                {"spec": SPEC_SCHEMA, "status": STATUS_SCHEMA},
                subresources={
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                additionalPrinterColumns=COLUMNS,
                selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}],
            )
        ],
        shortNames=["wi"],
        categories=["all", "toys"],
    ),
    definition(
        "gadgets",
        "Gadget",
        [
            version("v1", SIZE_ONLY),
            version("v1alpha1", {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}, storage=False),
        ],
    ),
    definition("realms", "Realm", [version("v1", SIZE_ONLY)], scope="Cluster"),
)


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return made if data is None else {**made, "data": data}


def secret(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **more}


def pod(name: str, *, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.invalid/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"containers": containers, **spec},
    }


def node(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"kind": "mac"}}, **more}


def widget(name: str, *, metadata: dict[str, Any] | None = None, status: Any = None, **spec: Any) -> dict[str, Any]:
    made = {
        "apiVersion": WIDGET,
        "kind": "Widget",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"size": 3, **spec},
    }
    return made if status is None else {**made, "status": status}


def lease(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **metadata},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 40},
    }
