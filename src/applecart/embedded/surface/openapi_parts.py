"""The schemas and paths of OpenAPI documents.

Schemas are whole for custom kinds, taken from their CRDs, and names only for built-in ones, which would be a megabyte and a
half that nobody but `kubectl explain` reads. They are never changed in place: the CRD they come from is somebody else's.
kubectl reads three things of a path: that PATCH takes `fieldValidation` (else it refuses to create or apply), which kind it is
about, and which patches that kind takes. Strategic merge is left out on purpose: a client that sees it would compute the patch
from schemas that are not sent; without it, it uses its own.
"""

from collections.abc import Callable, Iterator
from typing import Any

from applecart.api.meta import Resource
from applecart.embedded.surface.served import Served

Document = dict[str, Any]

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
BUILT_IN_NOTE = "The members of built-in kinds are not described by this server; they are those of Kubernetes."

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}


def _text(description: str) -> Document:
    return {"description": description, "type": "string"}


_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
API_VERSION = _text("Group and version of this representation of the object.")
KIND = _text("Kind of the object.")

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
        return {name: {"description": BUILT_IN_NOTE, "type": "object", **group_version_kind(kind, resource.kind)}}
    schema = everywhere(schema, _unfolded)
    properties = schema.get("properties")
    described = {
        **schema,
        "properties": {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {
                "description": "What every object has.",
                "allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}],
            },
        },
        **group_version_kind(kind, resource.kind),
    }
    items = {
        "description": f"{list_kind} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"type": "object"},
            "items": {"type": "array", "items": {"$ref": f"#/components/schemas/{name}"}},
        },
        **group_version_kind(kind, list_kind),
    }
    return {name: described, schema_name(resource.group, resource.version, list_kind): items}


def _unfolded(schema: Document) -> Document:
    """Whatever is an int or a string says so in words of OpenAPI too, as on the real server."""
    if schema.get("x-kubernetes-int-or-string") is not True or schema.get("anyOf") == _INT_OR_STRING:
        return schema
    if not schema.get("anyOf"):
        return {**schema, "anyOf": _INT_OR_STRING}
    all_of = schema.get("allOf") or []
    return schema if all_of[:1] == [{"anyOf": _INT_OR_STRING}] else {**schema, "allOf": [{"anyOf": _INT_OR_STRING}, *all_of]}


def everywhere(schema: Document, change: Callable[[Document], Document]) -> Document:
    """A schema with all its places changed, the outer before the inner."""
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
    resource = kind.resource
    """The extension by which clients find the schema of a kind."""
    return {
        "x-kubernetes-group-version-kind": [{"group": resource.group, "kind": name, "version": resource.version}],
    }


PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
BODIES = ("application/json", "application/yaml")


def _query(name: str, description: str, kind: str = "string") -> Document:
    return {"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": True}}


def _in_path(name: str, description: str) -> Document:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "description": description, "required": True, "schema": schema}


_DRY_RUN = _query("dryRun", "All checks the request and stores nothing.")
_WRITING = (
    _DRY_RUN,
    _query("fieldManager", "Who makes the change, for the ownership of fields."),
    _query("fieldValidation", "What becomes of unknown and repeated fields: Ignore, Warn or Strict."),
)
_PATCHING = (*_WRITING, _query("force", "Take over fields that others own; apply patches only.", "boolean"))
_LISTING = (
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
_DELETING = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "How long the object may take to end.", "integer"),
    _query("propagationPolicy", "What becomes of what the object owns: Orphan, Background or Foreground."),
)
_ORPHANS = _query("orphanDependents", "What propagationPolicy was before it had a name.", "boolean")
_NAME = _in_path("name", "name of the object")
_NAMESPACE = _in_path("namespace", "namespace of the object")
# Of OpenAPI v2, where all are referred to: there a parameter's schema stands in the parameter itself.
PUBLISHED_PARAMETERS: dict[str, Document] = {
    one["name"]: {**{key: value for key, value in one.items() if key != "schema"}, **one["schema"]}
    for one in (*_PATCHING, *_LISTING, *_DELETING, _NAME, _NAMESPACE, _ORPHANS)
}
# What many operations share is referred to. Those of writes are not: kubectl looks for them in the operation itself.
PARAMETERS: dict[str, Document] = {one["name"]: one for one in (*_LISTING, *_DELETING)}


def _references(parameters: tuple[Document, ...]) -> tuple[Document, ...]:
    return tuple({"$ref": f"#/components/parameters/{one['name']}"} for one in parameters)


# verb -> method, what the extension calls it, parameters, request bodies
_OPERATIONS: dict[str, tuple[str, str, tuple[Document, ...], tuple[str, ...]]] = {
    "list": ("get", "list", _references(_LISTING), ()),
    "create": ("post", "post", _WRITING, BODIES),
    "deletecollection": ("delete", "deletecollection", _references((*_LISTING, *_DELETING)), ()),
    "get": ("get", "get", (), ()),
    "update": ("put", "put", _WRITING, BODIES),
    "patch": ("patch", "patch", _PATCHING, PATCHES),
    "delete": ("delete", "delete", _references(_DELETING), ()),
}
_ON_COLLECTIONS = ("list", "create", "deletecollection")
_ON_OBJECTS = ("get", "update", "patch", "delete")


def base_path(resource: Resource) -> str:
    """Where the group and version of a kind begin."""
    return f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"


def paths_of(kind: Served, schema_name: str) -> Iterator[tuple[str, Document]]:
    """Every path of a kind. `schema_name` is the component that describes its objects."""
    resource = kind.resource
    base = base_path(resource)
    here: tuple[Document, ...] = ()
    collection = f"{base}/{resource.plural}"
    gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    if resource.namespaced:
        if "list" in kind.verbs:
            yield collection, {"get": _operation("list", gvk, schema_name)}
        collection = f"{base}/namespaces/{{namespace}}/{resource.plural}"
        here = (_NAMESPACE,)
    if item := _item(_ON_COLLECTIONS, kind.verbs, gvk, schema_name, here):
        yield collection, item
    if item := _item(_ON_OBJECTS, kind.verbs, gvk, schema_name, (_NAME, *here)):
        yield f"{collection}/{{name}}", item
    for sub in kind.subresources:
        of = {"group": sub.group, "version": sub.version} if sub.version else gvk
        about = {"group": of["group"], "version": of["version"], "kind": sub.kind}
        name = schema_name if about == gvk else ""
        if item := _item(("create", *_ON_OBJECTS), sub.verbs, about, name, (_NAME, *here)):
            yield f"{collection}/{{name}}/{sub.name}", item


def _item(
    possible: tuple[str, ...], verbs: tuple[str, ...], gvk: Document, schema_name: str, parameters: tuple[Document, ...]
) -> Document | None:
    operations = {_OPERATIONS[verb][0]: _operation(verb, gvk, schema_name) for verb in possible if verb in verbs}
    if not operations:
        return None
    return {**operations, **({"parameters": list(parameters)} if parameters else {})}


def _operation(verb: str, gvk: Document, schema_name: str) -> Document:
    _, action, parameters, bodies = _OPERATIONS[verb]
    schema: Document = {"$ref": f"#/components/schemas/{schema_name}"} if schema_name else {"type": "object"}
    body_schema: Document = {"type": "object"} if verb == "patch" else schema
    body = {"content": {media_type: {"schema": body_schema} for media_type in bodies}, "required": True}
    answer = {"description": "OK", "content": {media_type: {"schema": schema} for media_type in BODIES}}
    return {
        **({"parameters": list(parameters)} if parameters else {}),
        **({"requestBody": body} if bodies else {}),
        "responses": {"200": {"description": "OK"} if action in ("list", "deletecollection") else answer},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
