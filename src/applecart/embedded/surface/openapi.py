"""What both versions of OpenAPI say of a kind: its paths, the parameters they take, and what its schema is called.

Nothing here is ever changed in place: the CRD that a schema comes from is somebody else's.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from applecart.api.meta import Resource
from applecart.embedded.kinds.kind import Subresource
from applecart.embedded.schema.budget import spend
from applecart.embedded.surface.served import Served

Document = dict[str, Any]
STEPS_OF_A_KIND = 200  # to say what can be done at its paths
STEPS_OF_A_PLACE = 5  # in a schema

API_VERSION: Document = {"description": "Group and version of this representation of the object.", "type": "string"}
KIND: Document = {"description": "Kind of the object.", "type": "string"}


def schema_name(group: str, version: str, kind: str) -> str:
    """The component of a kind, named as the real server names those of custom kinds: the group backwards."""
    return ".".join([*reversed(group.split(".")), version, kind]) if group else f"io.k8s.api.core.{version}.{kind}"


def everywhere(schema: Document, change: Callable[[Document], Document]) -> Document:
    """A schema with all its places changed, the outer before the inner."""
    spend(STEPS_OF_A_PLACE)
    schema = dict(change(schema))
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            schema[keyword] = everywhere(schema[keyword], change)
    if isinstance(properties := schema.get("properties"), dict):
        schema["properties"] = {
            name: everywhere(one, change) if isinstance(one, dict) else one for name, one in properties.items()
        }
    return schema


def group_version_kind(kind: Served, name: str) -> Document:
    """The extension by which clients find the schema of a kind."""
    resource = kind.resource
    return {
        "x-kubernetes-group-version-kind": [{"group": resource.group, "kind": name, "version": resource.version}],
    }


def list_schema(kind: Served, metadata: Document, item: Document) -> Document:
    """The schema of a kind's list; what its metadata and an item are differs between the versions."""
    return {
        "description": f"{kind.list_kind} is a list of {kind.resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": metadata,
            "items": {"type": "array", "items": item},
        },
        **group_version_kind(kind, kind.list_kind),
    }


PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
BODIES = ("application/json", "application/yaml")


def _query(name: str, description: str, kind: str = "string") -> Document:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _in_path(name: str, description: str) -> Document:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}


_DRY_RUN = _query("dryRun", "All checks the request and stores nothing.")
WRITING = (
    _DRY_RUN,
    _query("fieldManager", "Who makes the change, for the ownership of fields."),
    _query("fieldValidation", "What becomes of unknown and repeated fields: Ignore, Warn or Strict."),
)
PATCHING = (*WRITING, _query("force", "Take over fields that others own; apply patches only.", "boolean"))
LISTING = (
    _query("allowWatchBookmarks", "Send bookmarks in a watch.", "boolean"),
    _query("continue", "Where the next page begins, from the answer before."),
    _query("fieldSelector", "Only objects whose fields match."),
    _query("labelSelector", "Only objects whose labels match."),
    _query("limit", "The most objects of one page.", "integer"),
    _query("resourceVersion", "How new the answer must be, or where a watch begins."),
    _query("resourceVersionMatch", "How resourceVersion is meant."),
    _query("sendInitialEvents", "Begin a watch with the objects that exist.", "boolean"),
    _query("timeoutSeconds", "When the answer ends.", "integer"),
    _query("watch", "Send changes as they happen.", "boolean"),
)
DELETING = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "How long the object may take to end.", "integer"),
    _query("propagationPolicy", "What becomes of what the object owns: Orphan, Background or Foreground."),
)
ORPHANS = _query("orphanDependents", "What propagationPolicy was before it had a name.", "boolean")
NAME = _in_path("name", "name of the object")
NAMESPACE = _in_path("namespace", "namespace of the object")
METHODS = {
    "list": "get",
    "create": "post",
    "deletecollection": "delete",
    "get": "get",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
}
_ON_COLLECTIONS = ("list", "create", "deletecollection")
_ON_OBJECTS = ("get", "update", "patch", "delete")


def action_of(verb: str) -> str:
    """What the extension `x-kubernetes-action` calls a verb."""
    return verb if verb in ("list", "deletecollection") else METHODS[verb]


def base_path(resource: Resource) -> str:
    """Where the group and version of a kind begin."""
    return f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"


class Place(NamedTuple):
    """A path of a kind, and what can be done there."""

    path: str
    verbs: tuple[str, ...]
    parameters: tuple[Document, ...]  # that the path itself has
    subresource: Subresource | None = None
    in_all_namespaces: bool = False


def places_of(kind: Served) -> Iterator[Place]:
    """Every path of a kind at which something can be done."""
    resource = kind.resource
    base = base_path(resource)
    collection = f"{base}/{resource.plural}"
    here: tuple[Document, ...] = ()
    if resource.namespaced:
        if "list" in kind.verbs:
            yield Place(collection, ("list",), (), in_all_namespaces=True)
        collection = f"{base}/namespaces/{{namespace}}/{resource.plural}"
        here = (NAMESPACE,)
    one, of_one = f"{collection}/{{name}}", (NAME, *here)
    for place in (
        Place(collection, _shared(_ON_COLLECTIONS, kind.verbs), here),
        Place(one, _shared(_ON_OBJECTS, kind.verbs), of_one),
        *(Place(f"{one}/{sub.name}", _shared(("create", *_ON_OBJECTS), sub.verbs), of_one, sub) for sub in kind.subresources),
    ):
        if place.verbs:
            yield place


def _shared(possible: tuple[str, ...], verbs: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(verb for verb in possible if verb in verbs)
