"""One version of a CustomResourceDefinition: schema, subresources, printer columns, selectable fields.

The real server keeps what all versions share once, above them, and reports problems of it there: `spec.validation` instead of
`spec.versions[0].schema`. So `version_errors` is asked twice: for what is shared, and for what is a version's own.
"""

from collections.abc import Iterator
from typing import Any

from applecart.embedded.field_errors import FieldError, duplicate, forbidden, invalid, required
from applecart.embedded.schema.field_paths import BadPath, follow
from applecart.embedded.schema.node import Node
from applecart.embedded.schema.schema_keywords import default_errors, keyword_errors
from applecart.embedded.schema.structural import structural_errors

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
        root = (version.get("schema") or {}).get("openAPIV3Schema")
        yield from _selectable_errors(fields, root, f"{path}.selectableFields")


def schema_part_errors(schema: Document, path: str, has_status: bool) -> list[FieldError]:
    found: list[FieldError] = []
    if has_status:
        found += _root_errors(schema, path)
    if schema.get("nullable"):
        found.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    has_item_lists = _has_item_lists(schema)
    structural = [] if has_item_lists else structural_errors(schema, path)
    defaults = [] if structural or has_item_lists else default_errors(schema, path)
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
    node = Node(schema) if schema else None
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
