"""One version of a CustomResourceDefinition: schema, subresources, printer columns, selectable fields.

The real server keeps what all versions share once, above them, and reports problems of it there: `spec.validation` instead of
`spec.versions[0].schema`. So `version_errors` is asked twice: for what is shared, and for what is a version's own. A schema is
structural when every place has one type and alternatives only narrow what is already there.
"""

from collections.abc import Iterator
from typing import Any, Literal

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, required
from applecart.embedded.schema.patterns import Pattern
from applecart.embedded.schema.schema_keywords import default_errors, keyword_errors
from applecart.embedded.schema.schema_node import BadPath, SchemaNode, follow

Document = dict[str, Any]
MAX_SELECTABLE_FIELDS = 8
MAX_WARNING_LENGTH = 256
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
_PARTS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_ROOT_KEYWORDS = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum", "MaxLength"),
    *("MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties"),
    *("ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)
_ROOT_NAMES = {name.lower() for name in _ROOT_KEYWORDS} | {
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}


def shared_parts(versions: list[Document]) -> frozenset[str]:
    """The members that are the same in all versions."""
    return frozenset(part for part in _PARTS if all(one.get(part) == versions[0].get(part) for one in versions))


def version_errors(version: Document, path: str, shared: frozenset[str], *, is_shared: bool) -> Iterator[FieldError]:
    """What is wrong with the shared parts (reported below `path`, the spec) or with a version's own."""

    def own(part: str) -> Any:
        return version.get(part) if (part in shared) == is_shared else None

    if not is_shared:
        yield from _warning_errors(version, path)
    if schema := (own("schema") or {}).get("openAPIV3Schema"):
        has_status = (version.get("subresources") or {}).get("status") is not None
        yield from schema_part_errors(schema, f"{path}.{'validation' if is_shared else 'schema'}.openAPIV3Schema", has_status)
    if (scale := (own("subresources") or {}).get("scale")) is not None:
        yield from _scale_errors(scale, f"{path}.subresources.scale")
    for index, column in enumerate(own("additionalPrinterColumns") or ()):
        yield from _column_errors(column, f"{path}.additionalPrinterColumns[{index}]")
    if fields := own("selectableFields"):
        yield from _selectable_errors(fields, (version.get("schema") or {}).get("openAPIV3Schema"), f"{path}.selectableFields")


def schema_part_errors(schema: Document, path: str, has_status: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if has_status:
        found += _root_errors(schema, path)
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    has_item_lists = _has_item_lists(schema)
    structural = [] if has_item_lists else structural_errors(schema, path)
    defaults = [] if structural or has_item_lists else list(default_errors(SchemaNode(schema), schema, path))
    found += structural or defaults
    return found + keyword_errors(schema, path, compiles_rules=not structural and not defaults and not has_item_lists)


def _has_item_lists(schema: Document) -> bool:
    """`items` with one schema per place, which makes a schema unreadable before it is judged."""
    below = [
        schema.get("items"),
        schema.get("not"),
        schema.get("additionalProperties"),
        *(schema.get("properties") or {}).values(),
    ]
    for keyword in ("allOf", "anyOf", "oneOf"):
        below += schema.get(keyword) or []
    return isinstance(schema.get("items"), list) or any(_has_item_lists(one) for one in below if isinstance(one, dict))


def _root_errors(schema: Document, path: str) -> Iterator[FieldError]:
    kind = schema.get("type")
    if kind and kind != "object":
        reason = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(f"{path}.type", kind, reason)
    elif any(
        value not in (None, "", False, [], {}) and keyword.lower() not in _ROOT_NAMES for keyword, value in schema.items()
    ):
        allowed = f"[{' '.join(_ROOT_KEYWORDS)}]"
        reason = f"only {allowed} fields are allowed at the root of the schema if the status subresource is enabled"
        yield FieldError("Invalid", path, reason, shows_value=False)


def _warning_errors(version: Document, path: str) -> Iterator[FieldError]:
    warning, at = version.get("deprecationWarning"), f"{path}.deprecationWarning"
    if warning is None:
        return
    if not version.get("deprecated"):
        yield invalid(at, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode("utf-8", "replace")) > MAX_WARNING_LENGTH:
        yield invalid(at, warning, f"must be <= {MAX_WARNING_LENGTH} characters long")
    if not warning:
        yield invalid(at, warning, "must not be an empty string")
    for index, character in enumerate(warning):
        if not character.isprintable():
            offset = len(warning[:index].encode("utf-8", "replace"))
            reason = f"must only contain printable UTF-8 characters; non-printable character found at index {offset}"
            yield invalid(at, warning, reason)
            break


def _scale_errors(scale: Document, path: str) -> Iterator[FieldError]:
    for member, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        text, at = scale.get(member) or "", f"{path}.{member}"
        if not text:
            yield required(at)
        elif not text.startswith("."):
            yield invalid(at, text, "must be a simple json path starting with .")
        elif not text.startswith(roots):
            yield invalid(at, text, f"should be a json path under {roots[0].removesuffix('.')}")
    selector, at = scale.get("labelSelectorPath") or "", f"{path}.labelSelectorPath"
    if selector and not selector.startswith("."):
        yield invalid(at, selector, "must be a simple json path starting with .")
    elif selector and not selector.startswith((".spec.", ".status.")):
        yield invalid(at, selector, "should be a json path under either .spec or .status")


def _column_errors(column: Document, path: str) -> Iterator[FieldError]:
    if not column.get("name"):
        yield required(f"{path}.name")
    kind, json_path = column.get("type"), column.get("jsonPath") or ""
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(COLUMN_TYPES)}")
    elif kind not in COLUMN_TYPES:
        yield invalid(f"{path}.type", kind, f"must be one of {','.join(COLUMN_TYPES)}")
    if (named := column.get("format")) and named not in COLUMN_FORMATS:
        yield invalid(f"{path}.format", named, f"must be one of {','.join(COLUMN_FORMATS)}")
    if not json_path:
        yield required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        yield invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def _selectable_errors(fields: list[Document], schema: Document | None, path: str) -> Iterator[FieldError]:
    node = SchemaNode(schema) if schema else None
    seen: set[str] = set()
    for index, field in enumerate(fields):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield required(at)
            continue
        try:
            normal, found = follow(text, node, allows_brackets=False)
        except BadPath as error:
            yield invalid(at, text, f"is an invalid path: {error}")
            continue
        if normal.split(".")[0] == "metadata":
            yield invalid(at, text, "must not point to fields in metadata")
        if found.type not in ("string", "boolean", "integer"):
            yield invalid(at, text, _NOT_SELECTABLE)
        if normal in seen:
            yield duplicate(at, text)
        seen.add(normal)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        yield FieldError("TooMany", path, f"must have at most {MAX_SELECTABLE_FIELDS} items", len(seen))


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
    return sorted([*_of_place(schema, "root", path), *_incomplete(schema, schema, path, path)], key=str)


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
    if is_embedded and kind != "object":
        reason = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, reason) if kind else required(f"{path}.type", reason)
    elif not (kind or is_int_or_string or preserves):
        yield required(f"{path}.type", _NO_TYPE[level])
    if is_embedded and additional is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    yield from _of_identity(properties, level, is_embedded, path)
    if is_embedded and not preserves and not properties:
        reason = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        yield required(f"{path}.properties", reason)


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
    for keyword in ("allOf", "oneOf") if skips_any_of else ("anyOf", "allOf", "oneOf"):
        for index, inner in enumerate(schema.get(keyword) or ()):
            skips = keyword == "allOf" and index == 0 and inner.get("anyOf") == _INT_OR_STRING
            yield from _of_alternative(inner, level, f"{path}.{keyword}[{index}]", skips_any_of=skips)
    if schema.get("not") is not None:
        yield from _of_alternative(schema["not"], level, f"{path}.not", skips_any_of=False)
    if (pattern := schema.get("pattern")) and (problem := Pattern(pattern).problem):
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
        yield from _incomplete_alternative(said["items"], place.get("items"), f"{path}.items", f"{said_path}.items")
    for name, inner in (said.get("properties") or {}).items():
        known = (place.get("properties") or {}).get(name)
        below, said_below = f"{path}.properties[{name}]", f"{said_path}.properties[{name}]"
        yield from _incomplete_alternative(inner, known, below, said_below)
