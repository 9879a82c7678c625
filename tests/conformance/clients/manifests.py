"""Objects that scripts start from, one of each kind; `{ns}` becomes the script's namespace."""

from typing import Any

from tests.conformance.clients.script import document

GROUP = "{ns}.example.test"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "example.test/image:1", "env": [{"name": "A", "value": "1"}]}
    return document("Pod", name, metadata={"labels": {"app": name}}, spec={"containers": [container], **spec})


def config_map(name: str, **data: str) -> dict[str, Any]:
    return document("ConfigMap", name, data=data)


def node(name: str) -> dict[str, Any]:
    return document("Node", name, metadata={"labels": {"kubernetes.io/os": "darwin"}}, spec={"podCIDR": "10.1.0.0/24"})


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return document("Widget", name, f"{GROUP}/v1", spec=spec)


def widgets() -> dict[str, Any]:
    """A kind with everything that kubectl looks at: columns, scale, status, descriptions, a category."""
    spec = {
        "type": "object",
        "description": "What the widget shall be.",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "description": "How many.", "minimum": 0},
            "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "parts": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        },
    }
    status = {"type": "object", "properties": {"size": {"type": "integer"}, "phase": {"type": "string"}}}
    schema = {"type": "object", "description": "A thing.", "properties": {"spec": spec, "status": status}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["things"]}
    return document(
        "CustomResourceDefinition",
        f"widgets.{GROUP}",
        "apiextensions.k8s.io/v1",
        spec={"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    )


def event(name: str, about: str) -> dict[str, Any]:
    return document(
        "Event",
        name,
        involvedObject={"kind": "Pod", "name": about, "namespace": "{ns}", "apiVersion": "v1"},
        reason="Started",
        message="it runs",
        type="Normal",
        count=2,
        source={"component": "agent"},
        firstTimestamp="2026-01-02T03:04:05Z",
        lastTimestamp="2026-01-02T03:05:05Z",
    )


def one_of_each() -> list[dict[str, Any]]:
    """Kinds that `kubectl create` has no command for."""
    return [
        node("{ns}-mac"),
        document("Lease", "lease", "coordination.k8s.io/v1", spec={"holderIdentity": "me", "leaseDurationSeconds": 40}),
        document("RuntimeClass", "{ns}-tart", "node.k8s.io/v1", handler="tart"),
        event("event-1", "ghost"),
    ]
