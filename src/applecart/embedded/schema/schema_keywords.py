"""What a definition's schema may say: supported keywords, honest list types, defaults that fit, rules that compile.

The texts are the real server's. A rule that does not compile is refused here, when its definition is installed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from applecart.embedded.field_errors import FieldError, forbidden, invalid, not_supported, required
from applecart.embedded.schema.budget import leave_the_loop_for
from applecart.embedded.schema.checking import same, schema_errors
from applecart.embedded.schema.compiled import rules_of
from applecart.embedded.schema.extensions import embedded_errors
from applecart.embedded.schema.normalizing import prune
from applecart.embedded.schema.schema_node import META_FIELDS, BadPath, Schema, SchemaNode, follow, fresh

TYPES = ("array", "boolean", "integer", "number", "object", "string")
REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NEWLINE = re.compile(r"[\n\r]")


@dataclass(frozen=True)
class _Place:
    """Where in a schema a keyword stands."""

    path: str
    is_root: bool = False
    is_inside_meta: bool = False
    no_default_reason: str | None = None  # why a default may not be set here
    uncorrelated: str = ""  # the list above whose old and new items cannot be paired
    allows_rules: bool = True  # false in alternatives, where rules are refused anyway


def keyword_errors(schema: Schema, path: str, *, compiles_rules: bool) -> list[FieldError]:
    """First what is wrong with the schema, then what is wrong with its rules."""
    rule_errors: list[FieldError] = []
    found = list(_of_schema(schema, _Place(path, is_root=True, allows_rules=compiles_rules), rule_errors))
    return found + rule_errors


def _of_schema(schema: Schema, place: _Place, rule_errors: list[FieldError]) -> Iterator[FieldError]:
    found: list[FieldError] = []
    found += _of_support(schema, place)
    additional, properties = schema.get("additionalProperties"), schema.get("properties") or {}
    if properties and (additional is False or isinstance(additional, dict)):
        found.append(
            forbidden(f"{place.path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
        )
    for inner, below in _children(schema, place):
        found += _of_schema(inner, below, rule_errors)
    found += _of_kinds(schema, place.path)
    found += _of_list_map(schema, place.path)
    rules = schema.get("x-kubernetes-validations") or []
    if rules:
        node = SchemaNode(schema)
        for index, entry in enumerate(rules):
            found += _of_rule(entry, node, f"{place.path}.x-kubernetes-validations[{index}]")
        if not found and place.allows_rules:
            rule_errors.extend(_of_compiled(rules, node, place))
    yield from found


def _children(schema: Schema, place: _Place) -> Iterator[tuple[Schema, _Place]]:
    inside = replace(place, is_root=False)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        reason = "inside additionalProperties applying to object metadata" if place.is_inside_meta else place.no_default_reason
        yield additional, replace(inside, path=f"{place.path}.additionalProperties", no_default_reason=reason)
    for name, inner in (schema.get("properties") or {}).items():
        below = replace(inside, path=f"{place.path}.properties[{name}]")
        if name in META_FIELDS and (place.is_root or schema.get("x-kubernetes-embedded-resource")):
            reason = f"in top-level {name}" if place.is_root else place.no_default_reason
            below = replace(below, is_inside_meta=True, no_default_reason=reason)
        yield inner, below
    without_rules = replace(inside, allows_rules=False)
    if schema.get("not") is not None:
        yield schema["not"], replace(without_rules, path=f"{place.path}.not")
    for keyword in ("allOf", "oneOf", "anyOf"):
        for index, inner in enumerate(schema.get(keyword) or ()):
            yield inner, replace(without_rules, path=f"{place.path}.{keyword}[{index}]")
    items = schema.get("items")
    if schema.get("x-kubernetes-list-type") != "map":
        inside = replace(inside, uncorrelated=place.uncorrelated or place.path)
    if isinstance(items, dict):
        yield items, replace(inside, path=f"{place.path}.items")


def _of_support(schema: Schema, place: _Place) -> Iterator[FieldError]:
    path, kind = place.path, schema.get("type")
    if kind and kind not in TYPES:
        yield not_supported(f"{path}.type", kind, TYPES)
    if schema.get("default") is not None and place.no_default_reason is not None:
        yield forbidden(f"{path}.default", f"must not be set {place.no_default_reason}".strip())
    for keyword in _UNSUPPORTED:
        if schema.get(keyword) not in (None, "", {}):
            yield forbidden(f"{path}.{keyword}", f"{keyword} is not supported")
    if kind == "null":
        yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.is_inside_meta and schema.get("x-kubernetes-embedded-resource"):
        yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        reason = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", reason)


def _of_kinds(schema: Schema, path: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    if map_type is not None and kind != "object":
        reason = "must be object if x-kubernetes-map-type is specified"
        yield invalid(f"{path}.type", kind, reason) if kind else required(f"{path}.type", reason)
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))
    items = schema.get("items")
    if list_type is not None and kind != "array":
        reason = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{path}.type", kind, reason) if kind else required(f"{path}.type", reason)
    elif list_type == "set" and isinstance(items, dict):
        reason = "must be atomic as item of a list with x-kubernetes-list-type=set"
        inner = items.get("x-kubernetes-list-type")
        if items.get("type") == "array" and inner not in (None, "atomic"):
            yield invalid(f"{path}.items.x-kubernetes-list-type", inner, reason)
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield invalid(f"{path}.items.x-kubernetes-map-type", inner, reason)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))


def _of_list_map(schema: Schema, path: str) -> Iterator[FieldError]:
    list_type, keys, items = (schema.get(name) for name in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "items"))
    keys = keys or []
    if keys and list_type != "map":
        reason = "must be map if x-kubernetes-list-map-keys is non-empty"
        at = f"{path}.x-kubernetes-list-type"
        yield required(at, reason) if list_type is None else invalid(at, list_type, reason)
    if list_type == "map":
        if not keys:
            yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
        if items is None:
            yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
        elif isinstance(items, dict) and items.get("type") != "object":
            reason = "must be object if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.type", items.get("type") or "", reason)
        elif isinstance(items, dict):
            yield from _of_keys(keys, items, path)
    if list_type in ("set", "map") and isinstance(items, dict):
        if items.get("nullable"):
            yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
        for key in keys if list_type == "map" else ():
            yield from _of_key(key, items, f"{path}.items.properties[{key}]")


def _of_keys(keys: list[str], items: Schema, path: str) -> Iterator[FieldError]:
    properties = items.get("properties") or {}
    for index, key in enumerate(keys):
        if key not in properties:
            reason = "entries must all be names of item properties"
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, reason)
        elif properties[key].get("type") in ("array", "object"):
            reason = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", items.get("type"), reason)
        if key in keys[:index]:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")


def _of_key(key: str, items: Schema, path: str) -> Iterator[FieldError]:
    schema = (items.get("properties") or {}).get(key)
    if schema is None:
        return
    if key not in (items.get("required") or ()) and schema.get("default") is None:
        reason = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        yield required(f"{path}.default", reason)
    if schema.get("nullable"):
        yield forbidden(f"{path}.nullable", "this property is in x-kubernetes-list-map-keys, so it cannot be nullable")


def _of_rule(entry: dict[str, Any], node: SchemaNode, path: str) -> Iterator[FieldError]:
    names = ("rule", "message", "messageExpression", "fieldPath")
    rule, message, expression, field_path = (entry.get(name) or "" for name in names)
    if not rule.strip():
        yield required(f"{path}.rule", "rule is not specified")
    elif message and not message.strip():
        yield invalid(f"{path}.message", message, "must be non-empty if specified")
    elif _NEWLINE.search(message.strip()):
        yield invalid(f"{path}.message", message, "must not contain line breaks")
    elif _NEWLINE.search(rule.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if expression and not expression.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if entry.get("reason") is not None and entry["reason"] not in REASONS:
        yield not_supported(f"{path}.reason", entry["reason"], REASONS)
    if field_path and not field_path.strip():
        yield invalid(f"{path}.fieldPath", field_path, "must be non-empty if specified")
    if _NEWLINE.search(field_path):
        yield invalid(f"{path}.fieldPath", field_path, "must not contain line breaks")
    if field_path:
        try:
            follow(field_path, node)
        except BadPath:
            yield invalid(f"{path}.fieldPath", field_path, "must be a valid path")


def _of_compiled(rules: list[dict[str, Any]], node: SchemaNode, place: _Place) -> Iterator[FieldError]:
    leave_the_loop_for("applecart.embedded.schema.cel_rules", "Rule")
    from applecart.embedded.schema.cel_rules import Rule  # imports a large library

    for index, entry in enumerate(rules):
        path = f"{place.path}.x-kubernetes-validations[{index}]"
        rule = Rule(entry, node, is_root=place.is_root or node.is_embedded)
        if rule.problem:
            yield invalid(f"{path}.rule", _as_shown(entry), rule.problem)
        if rule.message_problem:
            yield invalid(f"{path}.messageExpression", _as_shown(entry), rule.message_problem)
        if rule.uses_old and place.uncorrelated:
            reason = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.uncorrelated}"
            yield invalid(f"{path}.rule", entry["rule"], reason)
        elif not rule.uses_old and entry.get("optionalOldSelf") is not None and not rule.problem:
            reason = "may not be set if oldSelf is not used in rule"
            yield invalid(f"{path}.optionalOldSelf", entry["optionalOldSelf"], reason)


def _as_shown(entry: dict[str, Any]) -> dict[str, Any]:
    """A rule as the real server prints it: by the names of its own struct."""
    return {
        "Rule": entry.get("rule") or "",
        "Message": entry.get("message") or "",
        "MessageExpression": entry.get("messageExpression") or "",
        "Reason": entry.get("reason"),
        "FieldPath": entry.get("fieldPath") or "",
        "OptionalOldSelf": entry.get("optionalOldSelf"),
    }


def default_errors(
    node: SchemaNode, schema: Schema, path: str, *, is_identity: bool = False, is_resource: bool = True
) -> Iterator[FieldError]:
    """Defaults that their own schema would refuse."""
    if node.default is not None and not is_identity:
        yield from _of_default(node, fresh(node.default), f"{path}.default")
    is_resource = is_resource or node.is_embedded
    if node.items is not None:
        yield from default_errors(node.items, schema["items"], f"{path}.items", is_identity=is_identity, is_resource=False)
    for name, child in node.properties.items():
        inner = is_identity or (is_resource and name in META_FIELDS)
        below = f"{path}.properties[{name}]"
        yield from default_errors(child, schema["properties"][name], below, is_identity=inner, is_resource=False)


def _of_default(node: SchemaNode, value: Any, path: str) -> list[FieldError]:
    found = []
    if node.default is not None and type(value) is dict and not node.preserves_unknown:
        pruned = fresh(node.default)
        prune(node, pruned) if not node.is_embedded else None
        kept_meta = not node.is_embedded and any(name in value and node.child(name) is None for name in META_FIELDS)
        if not same(pruned, value) or kept_meta:
            found.append(invalid(path, value, "must not have unknown fields"))
    wrong = embedded_errors(node, value, path) or schema_errors(node, value, base=path)
    if wrong:
        return found + wrong
    rules = rules_of(node)
    errors = rules.errors(value) if rules else []
    return found + [replace(one, field=path if one.field == "<nil>" else f"{path}.{one.field}") for one in errors]
