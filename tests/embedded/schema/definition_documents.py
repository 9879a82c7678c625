"""Definitions and objects of them, for tests."""

from typing import Any

GROUP = "schema.applecart.dev"


def definition(plural: str, schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}],
        },
    }


def resource(plural: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": name}, **content}


SCALED = definition(
    "scales",
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer", "minimum": 0, "format": "int32", "default": 1},
                    "class": {"type": "string"},
                    "spot": {"type": "boolean"},
                },
            },
            "status": {
                "type": "object",
                "properties": {
                    "replicas": {"type": "integer"},
                    "selector": {"type": "string"},
                    "phase": {"type": "string", "maxLength": 3, "x-kubernetes-validations": [{"rule": "self != 'no'"}]},
                },
            },
        },
    },
    subresources={
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    },
    selectableFields=[{"jsonPath": ".spec.class"}, {"jsonPath": ".spec.spot"}, {"jsonPath": ".spec.replicas"}],
    additionalPrinterColumns=[{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}],
)
