"""The schemas of OpenAPI documents: whole ones for custom kinds, taken from their CRDs, and names only for built-in kinds.

Nobody but `kubectl explain` reads schemas of built-in kinds, and they would be a megabyte and a half; a schema without members
says so instead. Schemas are never changed in place: the CRD they come from is somebody else's.
"""

from typing import Any

from applecart.embedded.surface.served import Served

Document = dict[str, Any]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
BUILT_IN_NOTE = "The members of built-in kinds are not described by this server; they are those of Kubernetes."

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}


def _text(description: str) -> Document:
    return {"description": description, "type": "string"}


_API_VERSION = _text("Group and version of this representation of the object.")
_KIND = _text("Kind of the object.")

OBJECT_META_SCHEMA: Document = {
    "description": "What every object has: its name, its labels, who owns it.",
    "type": "object",
    "properties": {
        "name": _text("Name, unique within the namespace and kind."),
        "generateName": _text("Beginning of a name that the server completes."),
        "namespace": _text("Namespace; absent for objects of the whole cluster."),
        "uid": _text("Set by the server; no other object ever has it."),
        "resourceVersion": _text("Set by the server; changes with every write."),
        "generation": {"description": "Counts changes of what is wanted.", "type": "integer", "format": "int64"},
        "creationTimestamp": {**_text("When the object was created."), "format": "date-time"},
        "deletionTimestamp": {**_text("When the object was asked to go."), "format": "date-time"},
        "deletionGracePeriodSeconds": {
            "description": "How long the object may take to go.",
            "type": "integer",
            "format": "int64",
        },
        "labels": {"description": "Names and values that selectors match.", **_TEXTS},
        "annotations": {"description": "Names and values for tools and people.", **_TEXTS},
        "finalizers": {"description": "Who must act before the object may go.", "type": "array", "items": _TEXT},
        "ownerReferences": {"description": "Objects this one goes with.", "type": "array", "items": {"type": "object"}},
        "managedFields": {"description": "Who owns which fields.", "type": "array", "items": {"type": "object"}},
    },
}


def schema_name(group: str, version: str, kind: str) -> str:
    """The component of a kind, named as the real server names those of custom kinds: the group backwards."""
    return ".".join([*reversed(group.split(".")), version, kind]) if group else f"io.k8s.api.core.{version}.{kind}"


def schemas_of(kind: Served, list_kind: str, schema: Document | None) -> dict[str, Document]:
    """The components of a kind: of its objects and, where they are described, of their list."""
    resource = kind.resource
    name = schema_name(resource.group, resource.version, resource.kind)
    if schema is None:
        return {name: {"description": BUILT_IN_NOTE, "type": "object", **_extension(kind, resource.kind)}}
    properties = schema.get("properties")
    described = {
        **schema,
        "properties": {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": {
                "description": "What every object has.",
                "allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}],
            },
        },
        **_extension(kind, resource.kind),
    }
    items = {
        "description": f"{list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
        **_extension(kind, list_kind),
    }
    return {name: described, schema_name(resource.group, resource.version, list_kind): items}


def _extension(kind: Served, name: str) -> Document:
    resource = kind.resource
    return {
        "x-kubernetes-group-version-kind": [{"group": resource.group, "kind": name, "version": resource.version}],
    }
