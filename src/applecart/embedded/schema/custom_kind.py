"""Custom kinds, made from an established CustomResourceDefinition: one per served version, all over the same stored objects.

Versions differ in what they allow, never in what they mean: conversion is only the exchange of apiVersion. An update is judged
together with the old object, so that what a schema became stricter about does not lock up what exists.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.field_errors import FieldError, quoted
from applecart.embedded.kinds.kind import Kind, Subresource, View
from applecart.embedded.kinds.strategy import Document, Strategy
from applecart.embedded.schema.compiled import CompiledSchema
from applecart.embedded.schema.scale import ScalePaths, found_at, replica_errors, scale_paths, status_errors
from applecart.embedded.tables.printer_columns import table_of_columns

SCALE = Subresource("scale", "Scale", group="autoscaling", version="v1")


class CustomStrategy(Strategy):
    """How objects of one version behave."""

    updates_unconditionally = False
    counts_generations = True
    names_finalizers_freely = True

    def __init__(
        self,
        schema: CompiledSchema,
        *,
        has_status: bool = False,
        scale: ScalePaths | None = None,
        selectable: tuple[str, ...] = (),
        deprecation: str = "",
    ) -> None:
        self.schema = schema
        self.has_status = has_status
        self.scale = scale
        self._selectable = selectable
        self._deprecation = deprecation

    def drop_unknown(self, obj: Document) -> list[str]:
        return [f"unknown field {quoted(path)}" for path in self.schema.prune(obj)]

    def default(self, obj: Document) -> None:
        self.schema.default(obj)

    def default_applied(self, obj: Document) -> None:
        self.schema.default(obj, keeps_nulls=True)

    def validate_with(self, found: list[FieldError], obj: Document, old: Document | None) -> list[FieldError]:
        """Together with the old object, whose flaws are forgiven; what its metadata lacks keeps rules from being asked."""
        scale = self.scale
        more = replica_errors(obj, scale.spec_replicas) + status_errors(obj, scale) if scale else []
        return self.schema.validate(obj, old, found=found, more=more)

    def validate_status(self, obj: Document, old: Document) -> list[FieldError]:
        return self.schema.validate_status(obj, old, more=status_errors(obj, self.scale) if self.scale else [])

    def wanted(self, obj: Document) -> Any:
        """Everything but the metadata; where there is no `/status`, the status counts as well."""
        left_out = ("metadata", "apiVersion", "kind", "status") if self.has_status else ("metadata", "apiVersion", "kind")
        return {name: value for name, value in obj.items() if name not in left_out}

    def warnings(self, obj: Document) -> list[str]:
        return [self._deprecation] if self._deprecation else []

    def fields(self, obj: Document) -> dict[str, str]:
        return {path: _text_at(obj, path) for path in self._selectable}


def custom_kinds(crd: Document) -> list[Kind]:
    """One kind per served version; a definition without any has none."""
    spec = crd["spec"]
    stored = next((version for version in spec.get("versions") or () if version.get("storage")), None)
    if stored is None:
        return []
    storage = _resource(spec, stored)
    schemas = compiled_schemas(crd)
    return [_kind(crd, version, storage, schemas) for version in spec["versions"] if version.get("served")]


def compiled_schemas(crd: Document) -> Mapping[str, CompiledSchema]:
    """By version. Whoever checks a large definition beside the loop has them ready for whoever serves it on the loop."""
    return _compiled(msgspec.json.encode(crd["spec"].get("versions") or ()))


@lru_cache(maxsize=2)  # from the check of a definition to its commit
def _compiled(versions: bytes) -> Mapping[str, CompiledSchema]:
    used = [one for one in msgspec.json.decode(versions) if one.get("served") or one.get("storage")]
    return {one["name"]: CompiledSchema(_schema(one)) for one in used}


def _kind(crd: Document, version: Document, storage: Resource, schemas: Mapping[str, CompiledSchema]) -> Kind:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    resource = _resource(spec, version)
    schema, kept = schemas[resource.version], schemas[storage.version]
    has_status = (version.get("subresources") or {}).get("status") is not None
    scale = scale_paths(version)
    strategy = CustomStrategy(
        schema,
        has_status=has_status,
        scale=scale,
        selectable=tuple(one["jsonPath"].removeprefix(".") for one in version.get("selectableFields") or ()),
        deprecation=_deprecation(version, resource),
    )
    subresources = (*((Subresource("status", resource.kind),) if has_status else ()), *((SCALE,) if scale else ()))
    return Kind(
        resource=resource,
        storage=storage,
        singular=names.get("singular") or resource.kind.lower(),
        list_kind=names.get("listKind") or f"{resource.kind}List",
        strategy=strategy,
        shape=schema.shape,
        table=table_of_columns(version.get("additionalPrinterColumns") or []),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        is_custom=True,
        view=None if resource == storage else _view(schema, resource, kept, storage),
        schema=_published(version),
        scale=scale,
    )


def _view(schema: CompiledSchema, resource: Resource, kept: CompiledSchema, storage: Resource) -> View:
    """Another version of the same objects: what its schema does not know is not shown, nor kept by the stored one's.

    What is not set has the stored version's default in all versions; another one's fills in only what is written in it."""

    def to_stored(document: Document) -> Document:
        stored = _converted(document, storage, kept)
        kept.default(stored)
        return stored

    def from_stored(document: Document) -> Document:
        return _converted(document, resource, schema)

    return View(to_stored, from_stored)


def _converted(document: Document, to: Resource, schema: CompiledSchema) -> Document:
    converted: Document = msgspec.json.decode(msgspec.json.encode({**document, "apiVersion": to.api_version}))
    schema.prune(converted)
    return converted


def _published(version: Document) -> Document:
    """The schema as OpenAPI shows it: with the fields that selectors may name."""
    fields = [{"fieldPath": one["jsonPath"].removeprefix(".")} for one in version.get("selectableFields") or ()]
    return {**_schema(version), **({"x-kubernetes-selectable-fields": fields} if fields else {})}


def _schema(version: Document) -> Document:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _resource(spec: Document, version: Document) -> Resource:
    names = spec["names"]
    is_namespaced = spec.get("scope") == "Namespaced"
    return Resource(spec["group"], version["name"], names["kind"], names["plural"], namespaced=is_namespaced)


def _deprecation(version: Document, resource: Resource) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated"


def _text_at(obj: Document, path: str) -> str:
    value = found_at(obj, path)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
