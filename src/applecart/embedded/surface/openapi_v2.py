"""OpenAPI v2: one document of all kinds, for Terraform and other tools that are older than v3.

Custom kinds are described as the real server describes them: what v2 cannot say (alternatives, null) and what would mislead old
clients (defaults, members beside unknown ones) is left out. Built-in kinds have the members, types and merge keys of the
published Go API, without its texts. The document is put together from encoded pieces, one for each kind, which are kept while
the kind is.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.kinds.kind import Subresource
from applecart.embedded.schema.budget import spend
from applecart.embedded.structure.types import Field, StructType, ValueType, all_structs, built_in_kinds, struct_name
from applecart.embedded.surface import openapi
from applecart.embedded.surface.openapi import Document
from applecart.embedded.surface.served import MAJOR, MINOR, Served

HASHED_IN_A_STEP = 500  # bytes
STRATEGIC = "application/strategic-merge-patch+json"
META, API = "io.k8s.apimachinery.pkg.apis.meta.v1", "io.k8s.apimachinery.pkg.api.resource"
_PACKAGES = {
    "meta/v1": META,
    "resource": API,
    "intstr": "io.k8s.apimachinery.pkg.util.intstr",
    "apiextensions/v1": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
}
_SPECIALS: dict[str, Document] = {
    "meta/v1.FieldsV1": {"type": "object"},
    "meta/v1.MicroTime": {"type": "string", "format": "date-time"},
    "meta/v1.Time": {"type": "string", "format": "date-time"},
    "resource.Quantity": {"type": "string"},
    "intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    "apiextensions/v1.JSON": {},
    "apiextensions/v1.JSONSchemaPropsOrArray": {},
    "apiextensions/v1.JSONSchemaPropsOrBool": {},
    "apiextensions/v1.JSONSchemaPropsOrStringArray": {},
}
_SCALARS: dict[str, Document] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "float64": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
}
_ONLY_GO = frozenset({"meta/v1.TypeMeta", "meta/v1.PartialObjectMetadata"})  # has a name in Go and none on the wire
_NO_JUNCTIONS = ("allOf", "anyOf", "oneOf", "not", "default", "nullable")
_ROOT: Document = {
    "swagger": "2.0",
    "info": {"title": "Kubernetes", "version": f"{MAJOR}.{MINOR}"},
    "securityDefinitions": {
        "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header", "description": "A bearer token."}
    },
    "security": [{"BearerToken": []}],
}
Pieces = tuple[list[bytes], list[bytes]]  # paths and definitions, each as a member of its object
_encode = msgspec.json.encode


class OpenApiV2:
    """The document of one set of kinds, made when it is first asked for. Pieces of `previous` are taken over."""

    def __init__(
        self, kinds: Iterable[Served], schema_of: Callable[[Any], Document | None], previous: "OpenApiV2 | None" = None
    ) -> None:
        self._kinds = list(kinds)
        self._schema_of = schema_of
        self._pieces: dict[int, tuple[Served, Pieces]] = {}
        self._known: dict[int, tuple[Served, Pieces]] = {**previous._known, **previous._pieces} if previous else {}
        self._made: tuple[bytes, str] | None = None

    def document(self) -> tuple[bytes, str]:
        """The document as JSON, and its ETag."""
        if self._made is None:
            paths: list[bytes] = []
            definitions = list(_builtin_definitions())
            for kind in self._kinds:
                kept = self._pieces.get(id(kind)) or self._known.get(id(kind)) or (kind, _pieces(kind, self._schema_of(kind)))
                self._pieces[id(kind)] = kept  # also for a second try, where the first was too much for the loop
                paths += kept[1][0]
                definitions += kept[1][1]
            spend((sum(map(len, paths)) + sum(map(len, definitions))) // HASHED_IN_A_STEP)
            root = _encode({**_ROOT, "parameters": PARAMETERS})
            body = b'%b,"paths":{%b},"definitions":{%b}}' % (root[:-1], b",".join(paths), b",".join(definitions))
            self._known = {}
            self._made = body, f'"{hashlib.sha512(body).hexdigest().upper()}"'
        return self._made


def _pieces(kind: Served, schema: Document | None) -> Pieces:
    spend(openapi.STEPS_OF_A_KIND)
    paths = [_member(path, item) for path, item in paths_of(kind)]
    return paths, [_member(name, one) for name, one in definitions_of(kind, schema).items()]


def _member(name: str, value: Document) -> bytes:
    return _encode(name) + b":" + _encode(value)


# Definitions


def definition_name(resource: Resource, kind: str) -> str:
    """Custom kinds go by their group backwards, built-in ones by their Go package."""
    struct = struct_name(resource.api_version, resource.kind)
    if struct is None:
        return openapi.schema_name(resource.group, resource.version, kind)
    return f"{_go_name(struct).rpartition('.')[0]}.{kind}"


def definitions_of(kind: Served, schema: Document | None) -> dict[str, Document]:
    """Of a kind's list and, where the kind is custom, of its objects."""
    resource = kind.resource
    found: dict[str, Document] = {}
    selectable: Document = {}
    name = definition_name(resource, resource.kind)
    if schema is not None:
        found[name] = {**_custom(schema), **openapi.group_version_kind(kind, resource.kind)}
        selectable = {key: one for key, one in schema.items() if key == "x-kubernetes-selectable-fields"}
    elif struct_name(resource.api_version, resource.kind) is None:  # computed, such as metrics
        found[name] = {"type": "object", **openapi.group_version_kind(kind, resource.kind)}
    if "list" in kind.verbs:
        listed = openapi.list_schema(kind, _reference(f"{META}.ListMeta"), _reference(name))
        found[definition_name(resource, kind.list_kind)] = {**listed, **selectable}
    return found


def _custom(schema: Document) -> Document:
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"type": "object"}  # clients would take members that are named for the only ones
    described = openapi.everywhere(schema, _in_v2)
    described["properties"] = {**described.get("properties", {}), **_identity()}
    return described


def _identity() -> Document:
    return {"apiVersion": openapi.API_VERSION, "kind": openapi.KIND, "metadata": _reference(f"{META}.ObjectMeta")}


def _in_v2(schema: Document) -> Document:
    """One place of a schema, without what v2 cannot say or old clients misread."""
    keeps_unknown = schema.get("x-kubernetes-preserve-unknown-fields")
    out = {name: value for name, value in schema.items() if name not in _NO_JUNCTIONS}
    if schema.get("nullable") or keeps_unknown:
        out.pop("items", None)
        out.pop("properties", None)
    kind = out.get("type")
    if schema.get("nullable") or (kind == "array" and "items" not in out) or (keeps_unknown and kind == "object"):
        out.pop("type", None)
    members, additional = out.get("properties") or {}, out.get("additionalProperties")
    required = [name for name in out.get("required") or () if not _is_nullable(members.get(name))]
    out.pop("required", None)
    if required and not _is_nullable(additional):
        out["required"] = required
    if out.get("x-kubernetes-embedded-resource") and not keeps_unknown:
        out["properties"] = {**members, **_identity()}
        out["required"] = [*required, *(name for name in ("kind", "apiVersion") if name not in required)]
    return out


def _is_nullable(schema: Any) -> bool:
    return isinstance(schema, dict) and bool(schema.get("nullable"))


@cache
def _builtin_definitions() -> tuple[bytes, ...]:
    kinds: dict[str, list[Document]] = {}
    for api_version, kind in built_in_kinds():
        group, _, version = api_version.rpartition("/")
        kinds.setdefault(struct_name(api_version, kind) or "", []).append({"group": group, "kind": kind, "version": version})
    found = {_go_name(name): one for name, one in _SPECIALS.items()}
    found[f"{META}.Patch"] = {"type": "object"}
    texts = ("continue", "resourceVersion", "selfLink")
    counted = {"remainingItemCount": {"type": "integer", "format": "int64"}}
    found[f"{META}.ListMeta"] = {"type": "object", "properties": {**dict.fromkeys(texts, _SCALARS["string"]), **counted}}
    for struct in all_structs():
        if struct.name not in _ONLY_GO:
            found[_go_name(struct.name)] = _struct(struct, kinds.get(struct.name, []))
    return tuple(_member(name, one) for name, one in found.items())


def _struct(struct: StructType, kinds: list[Document]) -> Document:
    return {
        "type": "object",
        **({"properties": {name: _field(one) for name, one in struct.fields.items()}} if struct.fields else {}),
        **({"x-kubernetes-map-type": "atomic"} if struct.is_atomic else {}),
        **({"x-kubernetes-group-version-kind": kinds} if kinds else {}),
    }


def _field(field: Field) -> Document:
    facts = field.facts
    named = {
        "x-kubernetes-list-type": facts.get("list"),
        "x-kubernetes-list-map-keys": facts.get("keys"),
        "x-kubernetes-patch-strategy": facts.get("patch"),
        "x-kubernetes-patch-merge-key": facts.get("key"),
        "x-kubernetes-map-type": "atomic" if facts.get("atomic") else None,
    }
    return {**_value(field.type), **{name: value for name, value in named.items() if value is not None}}


def _value(type: ValueType) -> Document:
    match type.form:
        case "struct" | "special":
            return _reference(_go_name(type.name))
        case "list":
            return {"type": "array", "items": _value(type.inner)}
        case "map":
            return {"type": "object", "additionalProperties": _value(type.inner)}
        case "int":
            return {"type": "integer", "format": "int32" if type.name == "int32" else "int64"}
        case "float":
            return _SCALARS["float64"]
        case _:
            return _SCALARS[type.form]


def _go_name(struct: str) -> str:
    package, _, name = struct.rpartition(".")
    return f"{_PACKAGES.get(package) or 'io.k8s.api.' + package.replace('/', '.')}.{name}"


def _reference(name: str) -> Document:
    return {"$ref": f"#/definitions/{name}"}


# Paths

# Here all are referred to, and a parameter's schema stands in the parameter itself.
PARAMETERS: dict[str, Document] = {
    one["name"]: {**{key: value for key, value in one.items() if key != "schema"}, **one["schema"]}
    for one in (*openapi.PATCHING, *openapi.LISTING, *openapi.DELETING, openapi.NAME, openapi.NAMESPACE, openapi.ORPHANS)
}
# verb -> the verb of operation ids, answers beside 200
_SPOKEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "list": ("list", ()),
    "create": ("create", ("201", "202")),
    "deletecollection": ("delete", ()),
    "get": ("read", ()),
    "update": ("replace", ("201",)),
    "patch": ("patch", ()),
    "delete": ("delete", ("202",)),
}
_ANSWERS = {"200": "OK", "201": "Created", "202": "Accepted"}
_QUERIES = {
    "list": openapi.LISTING,
    "deletecollection": openapi.LISTING,
    "create": openapi.WRITING,
    "update": openapi.WRITING,
    "patch": openapi.PATCHING,
    "delete": (*openapi.DELETING, openapi.ORPHANS),
    "get": tuple(one for one in openapi.LISTING if one["name"] == "resourceVersion"),
}


def paths_of(kind: Served) -> Iterator[tuple[str, Document]]:
    """Every path of a kind."""
    for path, verbs, parameters, sub, in_all in openapi.places_of(kind):
        operations = {openapi.METHODS[verb]: _operation(kind, verb, sub, in_all=in_all) for verb in verbs}
        yield path, {**operations, **({"parameters": _referred(parameters)} if parameters else {})}


def _referred(parameters: Iterable[Document]) -> list[Document]:
    return [{"$ref": f"#/parameters/{one['name']}"} for one in parameters]


def _operation(kind: Served, verb: str, sub: Subresource | None = None, *, in_all: bool = False) -> Document:
    resource = kind.resource
    spoken, more = _SPOKEN[verb]
    group = "".join(part.capitalize() for part in (resource.group or "core").removesuffix(".k8s.io").split("."))
    version = resource.version
    is_shown = sub.name.capitalize() if sub else ""
    middle = "Collection" if verb == "deletecollection" else ""
    space = "Namespaced" if resource.namespaced and not in_all else ""
    name = definition_name(resource, resource.kind)
    about = {"group": resource.group, "kind": resource.kind, "version": version}
    if sub and sub.kind != resource.kind:
        group_of, version_of = (sub.group, sub.version) if sub.version else (resource.group, version)
        name = definition_name(Resource(group_of, version_of, sub.kind, "", namespaced=True), sub.kind)
        about = about if kind.is_custom else {"group": group_of, "kind": sub.kind, "version": version_of}
    is_stream = (
        sub is not None
        and not kind.is_custom
        and struct_name(f"{about['group']}/{about['version']}".lstrip("/"), sub.kind) is None
    )
    shown: Document = {"type": "string"} if is_stream else _reference(name)
    bodies: dict[str, Document] = {"create": shown, "update": shown, "patch": _reference(f"{META}.Patch")}
    parameters = _referred(_QUERIES[verb])
    if verb in bodies:
        parameters.insert(0, {"name": "body", "in": "body", "required": True, "schema": bodies[verb]})
    elif verb == "delete":
        parameters.insert(0, {"name": "body", "in": "body", "schema": _reference(f"{META}.DeleteOptions")})
    if verb == "list":
        shown = _reference(definition_name(resource, kind.list_kind))
    elif verb in ("delete", "deletecollection"):
        shown = _reference(f"{META}.Status")
    patches = openapi.PATCHES if kind.is_custom else (*openapi.PATCHES[:2], STRATEGIC, *openapi.PATCHES[2:])
    return {
        "description": _described(verb, spoken, resource.kind, sub),
        "consumes": list(patches if verb == "patch" else openapi.BODIES),
        "produces": list(openapi.BODIES),
        "schemes": ["https"],
        "tags": [f"{group[0].lower()}{group[1:]}_{version}"],
        "operationId": "".join(
            (spoken, group, version.capitalize(), middle, space, resource.kind, is_shown, "ForAllNamespaces" if in_all else "")
        ),
        "parameters": parameters,
        "responses": {
            **{code: {"description": _ANSWERS[code], "schema": shown} for code in ("200", *more)},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": openapi.action_of(verb),
        "x-kubernetes-group-version-kind": about,
    }


def _described(verb: str, spoken: str, kind: str, sub: Subresource | None) -> str:
    of = f" {sub.name} of" if sub else ""
    match verb:
        case "list":
            return f"list objects of kind {kind}"
        case "deletecollection":
            return f"delete collection of {kind}"
        case "create" | "delete":
            return f"{spoken}{of} {'an' if kind[0] in 'AEIOU' else 'a'} {kind}"
        case "patch":
            return f"partially update{of} the specified {kind}"
    return f"{spoken}{of} the specified {kind}"
