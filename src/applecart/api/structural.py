"""The rules a structural schema must keep, checked before an API server would refuse it.

`violations` gives one sentence per broken rule, with the path of the place. It knows the rules by which Kubernetes accepts a
CustomResourceDefinition (types everywhere, no references, honest defaults, list maps with usable keys, CEL rules with a
message), and ours: a CEL rule's message is a sentence. It does not compile CEL; an API server does.
"""

import re
from collections.abc import Iterator
from typing import Any

from applecart.api.schema import Schema

_KEYWORDS = {
    *("type", "format", "title", "description", "default", "nullable", "enum", "example", "externalDocs"),
    *("properties", "additionalProperties", "required", "minProperties", "maxProperties"),
    *("items", "minItems", "maxItems", "minLength", "maxLength", "pattern"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("allOf", "anyOf", "oneOf", "not"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string"),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-validations"),
}
_STRUCTURE = {"type", "description", "default", "nullable", "properties", "additionalProperties", "items"}
_PYTHON_TYPES: dict[str, Any] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
}
_SCALARS = {"string", "boolean", "integer", "number"}


def violations(schema: Schema) -> list[str]:
    """What Kubernetes would refuse in the schema of a version; empty when it would accept it."""
    found = list(_of_place(schema, "", is_correlatable=True))
    if schema.get("type") != "object":
        found.append("the root: type must be object")
    metadata = schema.get("properties", {}).get("metadata", {})
    if beyond := set(metadata.get("properties", {})) - {"name", "generateName"}:
        found.append(f".metadata: only name and generateName may be restricted, not {', '.join(sorted(beyond))}")
    return found


def _of_place(schema: Schema, path: str, *, is_correlatable: bool) -> Iterator[str]:
    here = path or "the root"
    kind = schema.get("type")
    for keyword in schema.keys() - _KEYWORDS:
        yield f"{here}: {keyword} is not allowed in a structural schema"
    free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
    if kind is None and not free:
        yield f"{here}: type is missing"
    elif kind is not None and kind not in _PYTHON_TYPES:
        yield f"{here}: {kind!r} is no type"
    if kind and schema.get("x-kubernetes-int-or-string"):
        yield f"{here}: int-or-string excludes type"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{here}: properties and additionalProperties exclude each other"
    if schema.get("additionalProperties") is False:
        yield f"{here}: additionalProperties must not be false"
    for name in set(schema.get("required", ())) - set(schema.get("properties", {})):
        yield f"{here}: required field {name} is not among the properties"
    yield from _of_values(schema, here)
    yield from _of_list(schema, here)
    yield from _of_rules(schema, here, is_correlatable=is_correlatable)
    for junctor in ("allOf", "anyOf", "oneOf", "not"):
        parts = schema.get(junctor, [])
        for part in parts if isinstance(parts, list) else [parts]:
            if forbidden := (_STRUCTURE - {"properties", "items"}) & set(part):
                yield f"{here}: {junctor} may only hold value validations, not {', '.join(sorted(forbidden))}"
    yield from _below(schema, path, is_correlatable=is_correlatable)


def _below(schema: Schema, path: str, *, is_correlatable: bool) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        yield from _of_place(child, f"{path}.{name}", is_correlatable=is_correlatable)
    if isinstance(values := schema.get("additionalProperties"), dict):
        yield from _of_place(values, f"{path}.*", is_correlatable=is_correlatable)
    if isinstance(items := schema.get("items"), dict):
        keeps = is_correlatable and schema.get("x-kubernetes-list-type") == "map"
        yield from _of_place(items, f"{path}[]", is_correlatable=keeps)
    elif items is not None:
        yield f"{path or 'the root'}: items must be one schema"


def _of_values(schema: Schema, here: str) -> Iterator[str]:
    if "default" in schema and not _fits(schema["default"], schema):
        yield f"{here}: default {schema['default']!r} does not fit the schema"
    if "enum" in schema and not schema["enum"]:
        yield f"{here}: enum is empty"
    for value in schema.get("enum", ()):
        if not _has_type(value, schema.get("type")):
            yield f"{here}: enum value {value!r} is no {schema.get('type')}"
    for keyword in ("exclusiveMinimum", "exclusiveMaximum"):
        if not isinstance(schema.get(keyword, False), bool):
            yield f"{here}: {keyword} must be a boolean"
    try:
        re.compile(schema.get("pattern", ""))
    except re.error:
        yield f"{here}: pattern is no regular expression"


def _fits(value: Any, schema: Schema) -> bool:
    if value is None:
        return bool(schema.get("nullable"))
    if not _has_type(value, schema.get("type")) or value not in schema.get("enum", [value]):
        return False
    if isinstance(value, str):
        return schema.get("minLength", 0) <= len(value) and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if isinstance(value, list):
        return all(_fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return all(_fits(item, properties[name]) for name, item in value.items() if name in properties)
    return True


def _has_type(value: Any, kind: str | None) -> bool:
    if kind is None:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(kind, object))


def _of_list(schema: Schema, here: str) -> Iterator[str]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", [])
    if kind is None and not keys:
        return
    if schema.get("type") != "array":
        yield f"{here}: only an array has a list type"
    items = schema.get("items", {})
    if kind == "set" and items.get("type") not in _SCALARS:
        yield f"{here}: a list of type set holds scalars"
    if kind != "map":
        if keys:
            yield f"{here}: list-map-keys need list-type map"
        return
    if items.get("type") != "object" or not keys:
        yield f"{here}: a list of type map holds objects and names their keys"
    for key in keys:
        place = items.get("properties", {}).get(key, {})
        if place.get("type") not in _SCALARS:
            yield f"{here}: map key {key} must be a scalar field of the items"
        elif key not in items.get("required", []) and "default" not in place:
            yield f"{here}: map key {key} must be required or have a default"


def _of_rules(schema: Schema, here: str, *, is_correlatable: bool) -> Iterator[str]:
    for entry in schema.get("x-kubernetes-validations", ()):
        rule, message = entry.get("rule", ""), entry.get("message", "")
        if not rule.strip():
            yield f"{here}: a CEL rule is empty"
        if len(message.split()) < 3 or "\n" in message:
            yield f"{here}: the message of CEL rule {rule!r} must be a sentence on one line"
        if re.search(r"\boldSelf\b", rule) and not is_correlatable:
            yield f"{here}: CEL rule {rule!r} uses oldSelf where old and new elements cannot be paired"
        if (field := entry.get("fieldPath")) and not _has_field(schema, field):
            yield f"{here}: CEL rule {rule!r} points to {field}, which is no field"


def _has_field(schema: Schema, path: str) -> bool:
    for name in path.removeprefix(".").split("."):
        schema = schema.get("properties", {}).get(name)
        if schema is None:
            return False
    return path.startswith(".")
