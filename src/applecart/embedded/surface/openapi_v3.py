"""OpenAPI v3: the index of documents and one document per group and version.

A document's address carries the hash of its content, so that clients keep it for good. An `OpenApi` is made from one set
of kinds and never changes; its documents are made when they are first asked for.

Schemas are whole for custom kinds, taken from their CRDs, and names only for built-in ones, which would be a megabyte and a
half that nobody but `kubectl explain` reads. kubectl reads three things of a path: that PATCH takes `fieldValidation` (else it
refuses to create or apply), which kind it is about, and which patches that kind takes. Strategic merge is left out on purpose:
a client that sees it would compute the patch from schemas that are not sent; without it, it uses its own.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from applecart.embedded.schema.budget import spend
from applecart.embedded.surface import openapi
from applecart.embedded.surface.openapi import Document
from applecart.embedded.surface.served import MAJOR, MINOR, Served

PREFIX = "/openapi/v3"


class OpenApi:
    """The documents of one set of kinds. `schema_of` gives the schema of a custom kind, None for a built-in one.

    What `previous` made for the very same kinds is taken over: a new CRD changes one document of many.
    """

    def __init__(
        self,
        kinds: Iterable[Served],
        schema_of: Callable[[Any], Document | None],
        previous: "OpenApi | None" = None,
    ) -> None:
        self._schema_of = schema_of
        self._kinds: dict[str, list[Served]] = {}
        for kind in kinds:
            self._kinds.setdefault(openapi.base_path(kind.resource).removeprefix("/"), []).append(kind)
        self._documents: dict[str, tuple[bytes, str]] = {}
        if previous is not None:
            made = dict(previous._documents)  # which may be growing, beside the loop
            old = previous._kinds
            same = {path for path, found in self._kinds.items() if [*map(id, found)] == [*map(id, old.get(path, ()))]}
            self._documents = {path: made[path] for path in same & made.keys()}
        self._index = b""

    def index(self) -> bytes:
        """`/openapi/v3`."""
        if not self._index:
            paths = {path: {"serverRelativeURL": self.address(path)} for path in sorted(self._kinds)}
            self._index = msgspec.json.encode({"paths": paths})
        return self._index

    def address(self, path: str) -> str:
        """Where the document of a path, such as `api/v1`, is kept for good."""
        return f"{PREFIX}/{path}?hash={self._document(path)[1]}"

    def document(self, path: str) -> tuple[bytes, str] | None:
        """`/openapi/v3/{path}` and its hash; None when there is none."""
        return self._document(path) if path in self._kinds else None

    def _document(self, path: str) -> tuple[bytes, str]:
        if path not in self._documents:
            body = msgspec.json.encode(_document(self._kinds[path], self._schema_of))
            self._documents[path] = (body, hashlib.sha512(body).hexdigest().upper())
        return self._documents[path]


def _document(kinds: list[Served], schema_of: Callable[[Any], Document | None]) -> Document:
    paths: Document = {}
    schemas: Document = {OBJECT_META: OBJECT_META_SCHEMA}
    for kind in kinds:
        spend(openapi.STEPS_OF_A_KIND)
        resource = kind.resource
        paths.update(paths_of(kind, openapi.schema_name(resource.group, resource.version, resource.kind)))
        schemas.update(schemas_of(kind, schema_of(kind)))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"{MAJOR}.{MINOR}"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items())), "parameters": PARAMETERS},
    }


OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
BUILT_IN_NOTE = "The members of built-in kinds are not described by this server; they are those of Kubernetes."
_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _text(description: str) -> Document:
    return {"description": description, "type": "string"}


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


def schemas_of(kind: Served, schema: Document | None) -> dict[str, Document]:
    """The components of a kind: of its objects and, where they are described, of their list."""
    resource = kind.resource
    name = openapi.schema_name(resource.group, resource.version, resource.kind)
    if schema is None:
        return {name: {"description": BUILT_IN_NOTE, "type": "object", **openapi.group_version_kind(kind, resource.kind)}}
    schema = openapi.everywhere(schema, _unfolded)
    properties = schema.get("properties")
    described = {
        **schema,
        "properties": {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": openapi.API_VERSION,
            "kind": openapi.KIND,
            "metadata": {
                "description": "What every object has.",
                "allOf": [{"$ref": f"#/components/schemas/{OBJECT_META}"}],
            },
        },
        **openapi.group_version_kind(kind, resource.kind),
    }
    listed = openapi.list_schema(kind, {"type": "object"}, {"$ref": f"#/components/schemas/{name}"})
    return {name: described, openapi.schema_name(resource.group, resource.version, kind.list_kind): listed}


def _unfolded(schema: Document) -> Document:
    """Whatever is an int or a string says so in words of OpenAPI too, as on the real server."""
    if schema.get("x-kubernetes-int-or-string") is not True or schema.get("anyOf") == _INT_OR_STRING:
        return schema
    if not schema.get("anyOf"):
        return {**schema, "anyOf": _INT_OR_STRING}
    all_of = schema.get("allOf") or []
    return schema if all_of[:1] == [{"anyOf": _INT_OR_STRING}] else {**schema, "allOf": [{"anyOf": _INT_OR_STRING}, *all_of]}


# What many operations share is referred to. Those of writes are not: kubectl looks for them in the operation itself.
PARAMETERS: dict[str, Document] = {one["name"]: one for one in (*openapi.LISTING, *openapi.DELETING)}
# verb -> parameters, request bodies
_TAKEN: dict[str, tuple[tuple[Document, ...], tuple[str, ...]]] = {
    "create": (openapi.WRITING, openapi.BODIES),
    "update": (openapi.WRITING, openapi.BODIES),
    "patch": (openapi.PATCHING, openapi.PATCHES),
    **{
        verb: (tuple({"$ref": f"#/components/parameters/{one['name']}"} for one in parameters), ())
        for verb, parameters in (
            ("list", openapi.LISTING),
            ("deletecollection", (*openapi.LISTING, *openapi.DELETING)),
            ("get", ()),
            ("delete", openapi.DELETING),
        )
    },
}


def paths_of(kind: Served, component: str) -> Iterator[tuple[str, Document]]:
    """Every path of a kind. `component` is the component that describes its objects."""
    resource = kind.resource
    own = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    for path, verbs, parameters, sub, _ in openapi.places_of(kind):
        about = own
        if sub is not None:
            about = {**own, **({"group": sub.group, "version": sub.version} if sub.version else {}), "kind": sub.kind}
        operations = {openapi.METHODS[verb]: _operation(verb, about, component if about == own else "") for verb in verbs}
        yield path, {**operations, **({"parameters": list(parameters)} if parameters else {})}


def _operation(verb: str, gvk: Document, component: str) -> Document:
    parameters, bodies = _TAKEN[verb]
    schema: Document = {"$ref": f"#/components/schemas/{component}"} if component else {"type": "object"}
    body_schema: Document = {"type": "object"} if verb == "patch" else schema
    body = {"content": {media_type: {"schema": body_schema} for media_type in bodies}, "required": True}
    answer = {"description": "OK", "content": {media_type: {"schema": schema} for media_type in openapi.BODIES}}
    return {
        **({"parameters": list(parameters)} if parameters else {}),
        **({"requestBody": body} if bodies else {}),
        "responses": {"200": {"description": "OK"} if verb in ("list", "deletecollection") else answer},
        "x-kubernetes-action": openapi.action_of(verb),
        "x-kubernetes-group-version-kind": gvk,
    }
