"""What makes a schema structural: every place has one type, and alternatives only narrow what is already there.

The texts are the real server's. Works on the schema as it is written; `definition_types.py` has checked the types of its
keywords before.
"""

from collections.abc import Iterator
from typing import Any, Literal

from applecart.embedded.field_errors import FieldError, forbidden, invalid, required
from applecart.embedded.schema.patterns import problem_of

Schema = dict[str, Any]
Level = Literal["root", "item", "field"]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_NO_TYPE: dict[Level, str] = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# What alternatives may not say, and how the real server puts it.
_FORBIDDEN_INSIDE = {
    "type": "must be empty to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    found = [*_of_place(schema, "root", path), *_incomplete(schema, schema, path, path)]
    return sorted(found, key=str)


def _of_place(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    kind, items = schema.get("type") or "", schema.get("items")
    if kind == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _of_place(items, "item", f"{path}.items")
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _of_place(inner, "field", f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == "root":
            yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(additional, dict):
            yield from _of_place(additional, "field", f"{path}.additionalProperties")
    is_int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if is_int_or_string:
        for keyword, is_set in (("preserve-unknown-fields", preserves), ("embedded-resource", is_embedded)):
            if is_set:
                yield invalid(f"{path}.x-kubernetes-{keyword}", True, "must be false if x-kubernetes-int-or-string is true")
    yield from _of_alternatives(schema, level, path, skips_any_of=schema.get("anyOf") == _INT_OR_STRING)
    yield from _of_type(kind, is_embedded, is_int_or_string or preserves, level, path)
    if is_embedded and additional is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    yield from _of_identity(properties, level, is_embedded, path)
    if is_embedded and not preserves and not properties:
        reason = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", reason)


def _of_type(kind: str, is_embedded: bool, is_free: bool, level: Level, path: str) -> Iterator[FieldError]:
    if is_embedded and kind != "object":
        reason = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, reason) if kind else required(f"{path}.type", reason)
    elif not kind and not is_free:
        yield required(f"{path}.type", _NO_TYPE[level])


def _of_identity(properties: Schema, level: Level, is_embedded: bool, path: str) -> Iterator[FieldError]:
    is_resource = level == "root" or is_embedded
    for name in ("kind", "apiVersion"):
        if name in properties and is_resource and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
    if "metadata" not in properties:
        return
    at, metadata = f"{path}.properties[metadata]", properties["metadata"]
    if is_resource and metadata.get("type") != "object":
        yield invalid(f"{at}.type", metadata.get("type") or "", "must be object")
    if level == "root":
        names = set(metadata.get("properties") or {})
        beyond = {keyword for keyword, value in metadata.items() if value not in (None, "", [], {}, False)}
        if names - {"name", "generateName"} or beyond - {"type", "default", "properties"}:
            reason = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(at, reason)


def _of_alternatives(schema: Schema, level: Level, path: str, *, skips_any_of: bool) -> Iterator[FieldError]:
    if not skips_any_of:
        for index, inner in enumerate(schema.get("anyOf") or ()):
            yield from _of_alternative(inner, level, f"{path}.anyOf[{index}]", skips_any_of=False)
    for index, inner in enumerate(schema.get("allOf") or ()):
        skips = index == 0 and inner.get("anyOf") == _INT_OR_STRING
        yield from _of_alternative(inner, level, f"{path}.allOf[{index}]", skips_any_of=skips)
    for index, inner in enumerate(schema.get("oneOf") or ()):
        yield from _of_alternative(inner, level, f"{path}.oneOf[{index}]", skips_any_of=False)
    if schema.get("not") is not None:
        yield from _of_alternative(schema["not"], level, f"{path}.not", skips_any_of=False)
    if (pattern := schema.get("pattern")) and (problem := problem_of(pattern)):
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}")


def _of_alternative(schema: Schema, level: Level, path: str, *, skips_any_of: bool) -> Iterator[FieldError]:
    yield from _of_alternatives(schema, level, path, skips_any_of=skips_any_of)
    if isinstance(schema.get("items"), dict):
        yield from _of_alternative(schema["items"], level, f"{path}.items", skips_any_of=False)
    properties = schema.get("properties") or {}
    for name, inner in properties.items():
        yield from _of_alternative(inner, "field", f"{path}.properties[{name}]", skips_any_of=False)
    for keyword, reason in _FORBIDDEN_INSIDE.items():
        if schema.get(keyword) or (keyword == "default" and schema.get(keyword) is not None):
            yield forbidden(f"{path}.{keyword}", reason)
    if schema.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must be undefined to be structural")
    if "metadata" in properties:
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _incomplete(said: Schema, place: Schema | None, path: str, said_path: str) -> Iterator[FieldError]:
    """What an alternative speaks of must exist outside of it."""
    parts: list[tuple[Schema, str]] = []
    if said.get("not") is not None:
        parts.append((said["not"], f"{said_path}.not"))
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts += [(inner, f"{said_path}.{keyword}[{index}]") for index, inner in enumerate(said.get(keyword) or ())]
    for inner, inner_path in parts:
        yield from _incomplete_alternative(inner, place, path, inner_path)


def _incomplete_alternative(said: Schema, place: Schema | None, path: str, said_path: str) -> Iterator[FieldError]:
    if place is None:
        yield required(path, f"because it is defined in {said_path}")
        return
    yield from _incomplete(said, place, path, said_path)
    if isinstance(said.get("items"), dict):
        items = place.get("items")
        yield from _incomplete_alternative(
            said["items"], items if isinstance(items, dict) else None, f"{path}.items", f"{said_path}.items"
        )
    for name, inner in (said.get("properties") or {}).items():
        known = (place.get("properties") or {}).get(name)
        below, said_below = f"{path}.properties[{name}]", f"{said_path}.properties[{name}]"
        yield from _incomplete_alternative(inner, known, below, said_below)
