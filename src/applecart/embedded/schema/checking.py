"""Whether a value fits its schema, said with the real server's words.

Follows the order of the real validator, keyword by keyword, because users see the first sentence first. A check goes by the
kind of the *value*: a text where a number belongs is still held against the schema's length limits. A limit is stored as a
float; held against a whole number it is cut to one first. Given the old value, what did not change is tolerated (ratcheting):
a schema that became stricter must not lock up the objects it finds.
"""

import math
from collections.abc import Callable
from typing import Any

from applecart.embedded.field_errors import FieldError, shown
from applecart.embedded.schema.budget import spend
from applecart.embedded.schema.formats import fits_format
from applecart.embedded.schema.schema_node import SchemaNode

STEPS_OF_A_PROBLEM = 10  # to say what is wrong, or that an alternative is none
UNRELATED: Any = object()  # no old value belongs to this one
LARGEST_INT = 2**63 - 1
LARGEST_EXACT_FLOAT = 2.0**53
_ONLY_TEXT, _ONLY_BOOL = ("string",), ("boolean",)
_KINDS: dict[type, str] = {str: "string", bool: "boolean", float: "number", list: "array", dict: "object"}
_VALUE_FORMATS = {"integer": "int64", "number": "float64"}


def schema_errors(node: SchemaNode, value: Any, old: Any = UNRELATED, base: str = "") -> list[FieldError]:
    """What is wrong. `base` is the path of the value when it is no whole object."""
    found: list[FieldError] = []
    _check(node, value, "", old, found)
    if found and old is not UNRELATED and same(value, old):
        return []
    unique = {str(error): error for error in found}.values()
    return [_below(base, error) for error in unique] if base else list(unique)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return len(one) == len(other) and all(name in other and same(value, other[name]) for name, value in one.items())
    if type(one) is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _below(base: str, error: FieldError) -> FieldError:
    field = base if error.field == "<nil>" else f"{base}.{error.field}" if error.field else base
    return FieldError(error.problem, field, error.detail, error.value, error.shows_value)


def plain(text: str) -> FieldError:
    """A problem that the real server ties to no field."""
    return FieldError("Invalid", "<nil>", text, "")


def _wrong_type(path: str, wanted: str, got: str) -> FieldError:
    return FieldError("TypeInvalid", _field(path), f'{path} in body must be of type {wanted}: "{got}"', got)


def _field(path: str) -> str:
    return path.removeprefix(".") or "<nil>"


def _check(node: SchemaNode, value: Any, path: str, old: Any, found: list[FieldError]) -> int:
    """Adds what is wrong to `found`; returns how much was right, by which the closest alternative is told."""
    if value is None:
        if node.types and not node.is_nullable:
            found.append(_wrong_type(path, ",".join(node.types), "null"))
        if node.enum:
            found.append(_not_in_enum(node, value, path))
        return 1
    kind = _KINDS.get(type(value)) or "integer"
    if kind == "integer" and not -LARGEST_INT - 1 <= value <= LARGEST_INT:
        kind, value = "number", as_float(value)
    right = 4
    if node.types or node.format:
        right += 1 + _check_type(node, value, kind, path, found)
    if node.has_alternatives:
        right += _check_alternatives(node, value, path, old, found)
    if kind == "string":
        right += 1
        _check_text(node, value, path, found)
    elif kind == "integer" or kind == "number":
        right += 2
        if (
            node.format
            or node.minimum is not None
            or node.maximum is not None
            or node.multiple_of is not None
            or kind == "number"
        ):
            found.extend(number_problems(node, value, path, _field(path)))
    elif kind == "array":
        right += 2 + _check_items(node, value, path, old, found)
    if node.enum and kind != "string":
        spend(len(node.enum))
    if node.enum and not (value in node.enum_texts if kind == "string" else any(same(value, one) for one in node.enum)):
        found.append(_not_in_enum(node, value, path))
    if kind == "object":
        right += 1 + _check_members(node, value, path, old, found)
    return right


def as_float(value: float) -> float:
    """A whole number that fits no 64 bits is a float to the real server."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _check_type(node: SchemaNode, value: Any, kind: str, path: str, found: list[FieldError]) -> int:
    types = node.types
    if kind in types or (kind == "integer" and "number" in types):
        return 1
    if kind == "number" and "integer" in types and value.is_integer() and abs(value) < LARGEST_EXACT_FLOAT:
        return 1
    is_sequence = kind in ("string", "array")
    if node.format and not is_sequence and _VALUE_FORMATS.get(kind, "") != node.format:
        found.append(_wrong_type(path, node.format, _VALUE_FORMATS.get(kind, "")))
        return 0
    # As in the real validator, a format on a text hides its type from texts and lists.
    if node.format and is_sequence and "number" not in types and "integer" not in types:
        return 1
    found.append(_wrong_type(path, ",".join(types), kind))
    return 0


def _not_in_enum(node: SchemaNode, value: Any, path: str) -> FieldError:
    allowed = ", ".join(shown(one if isinstance(one, str) else shown(one) if one is not None else "null") for one in node.enum)
    return FieldError("NotSupported", _field(path), f"supported values: {allowed}", value)


def _check_text(node: SchemaNode, value: str, path: str, found: list[FieldError]) -> None:
    if node.max_length is not None and len(value) > node.max_length:
        unit = "byte" if node.max_length == 1 else "bytes"
        found.append(FieldError("TooLong", _field(path), f"may not be more than {node.max_length} {unit}"))
    elif node.min_length is not None and len(value) < node.min_length:
        text = f"{path} in body should be at least {node.min_length} chars long"
        found.append(FieldError("Invalid", _field(path), text, value))
    elif node.pattern is not None and not node.pattern.matches(value):
        found.append(FieldError("Invalid", _field(path), f"{path} in body should match '{node.pattern.text}'", value))
    if node.format and not fits_format(node.format, value):
        text = f"{path} in body must be of type {node.format}: {shown(value)}"
        found.append(FieldError("TypeInvalid", _field(path), text, value))


def _check_items(node: SchemaNode, value: list[Any], path: str, old: Any, found: list[FieldError]) -> int:
    right = 0
    spend(len(value))
    if node.items is not None:
        previous = old_items(node, old)
        for index, item in enumerate(value):
            if node.items.is_leaf and (fits := _right_of_leaf(node.items, item)):
                right += fits
                continue
            right += _check_child(node.items, item, f"{path}[{index}]", previous(item), found)
    size = len(value)
    if node.min_items is not None and size < node.min_items:
        found.append(FieldError("Invalid", _field(path), f"{path} in body should have at least {node.min_items} items", size))
    if node.max_items is not None and size > node.max_items:
        found.append(_too_many(path, size, node.max_items))
    return right


def _too_many(path: str, size: int, limit: int) -> FieldError:
    return FieldError("TooMany", _field(path), f"must have at most {limit} item{'' if limit == 1 else 's'}", size)


def _check_members(node: SchemaNode, value: dict[str, Any], path: str, old: Any, found: list[FieldError]) -> int:
    right = 0
    spend(len(value) + len(node.required))
    if node.min_properties is not None and len(value) < node.min_properties:
        text = f"{path} in body should have at least {node.min_properties} properties"
        found.append(FieldError("Invalid", _field(path), text, len(value)))
    if node.max_properties is not None and len(value) > node.max_properties:
        found.append(_too_many(path, len(value), node.max_properties))
    has_old = type(old) is dict
    prefix = f"{path}." if path else ""
    for name, member in value.items():
        known = node.properties.get(name)
        if known is not None:
            if known.is_leaf and (fits := _right_of_leaf(known, member)):
                right += fits
                continue
            below = prefix + name
        elif node.additional is not None:
            known, below = node.additional, f"{path}.{name}"
        else:
            continue
        is_identity = not path and name in ("apiVersion", "kind")
        previous = old.get(name, UNRELATED) if has_old and not is_identity else UNRELATED
        right += _check_child(known, member, below, previous, found)
    for name in node.required:
        if name not in value:
            found.append(FieldError("Required", _field(f"{path}.{name}")))
    return right


def _right_of_leaf(node: SchemaNode, value: Any) -> int:
    """What `_check` would return for a scalar that surely fits, told without knowing where it stands; else 0."""
    kind = type(value)
    if kind is str:
        fits = (
            node.types == _ONLY_TEXT
            and (node.max_length is None or len(value) <= node.max_length)
            and (node.min_length is None or len(value) >= node.min_length)
            and (not node.enum or value in node.enum_texts)
            and (node.pattern is None or node.pattern.matches(value))
            and (not node.format or fits_format(node.format, value))
        )
        return 7 if fits else 0
    if kind is int:
        low, high = node.whole_range
        return 8 if low <= value <= high else 0
    return 6 if kind is bool and node.types == _ONLY_BOOL and not node.enum else 0


def _check_child(node: SchemaNode, value: Any, path: str, old: Any, found: list[FieldError]) -> int:
    before = len(found)
    right = _check(node, value, path, old, found)
    if len(found) > before:
        spend(STEPS_OF_A_PROBLEM)
        if old is not UNRELATED and same(value, old):
            del found[before:]
    return right


def old_items(node: SchemaNode, old: Any) -> Callable[[Any], Any]:
    """Finds the old item that a new one continues: only lists whose items have keys know that."""
    if node.list_type != "map" or type(old) is not list:
        return lambda item: UNRELATED
    by_key = {key: item for item in reversed(old) if (key := list_key(node, item)) is not None}
    return lambda item: by_key.get(list_key(node, item) or (), UNRELATED)


def list_key(node: SchemaNode, item: Any) -> tuple[Any, ...] | None:
    if type(item) is not dict:
        return None
    values = [item.get(key) for key in node.list_keys]
    if any(type(value) in (dict, list) for value in values):
        return None
    return tuple((type(value), value) for value in values)


def _check_alternatives(node: SchemaNode, value: Any, path: str, old: Any, found: list[FieldError]) -> int:
    right = 0
    spend(STEPS_OF_A_PROBLEM * (len(node.any_of) + len(node.one_of) + len(node.all_of) + 1))
    if node.any_of:
        best, most, fits = _closest(node.any_of, value, path, old, stops=True)
        if not fits:
            found.append(plain(f"{shown(path)} must validate at least one schema (anyOf)"))
            found.extend(best)
        right += most
    if node.one_of:
        best, most, fits = _closest(node.one_of, value, path, old, stops=False)
        if fits != 1:
            count = f"Found {fits} valid alternatives" if fits else "Found none valid"
            found.append(plain(f"{shown(path)} must validate one and only one schema (oneOf). {count}"))
            found.extend(best)
        right += most
    if node.all_of:
        fits = 0
        for one in node.all_of:
            before = len(found)
            right += _check(one, value, path, old, found)
            fits += len(found) == before
        if fits < len(node.all_of):
            found.append(plain(f"{shown(path)} must validate all the schemas (allOf){'' if fits else '. None validated'}"))
    if node.no_match is not None:
        problems: list[FieldError] = []
        _check(node.no_match, value, path, old, problems)
        if not problems:
            found.append(plain(f"{shown(path)} must not validate the schema (not)"))
    return right


def _closest(
    nodes: tuple[SchemaNode, ...], value: Any, path: str, old: Any, *, stops: bool
) -> tuple[list[FieldError], int, int]:
    """Problems of the alternative that comes closest (none when one fits), how much of it was right, how many fit."""
    best: list[FieldError] | None = None
    most, fits, right_of_fit = -1, 0, 0
    for one in nodes:
        problems: list[FieldError] = []
        right = _check(one, value, path, old, problems)
        if not problems:
            fits += 1
            right_of_fit = right_of_fit or right
            if stops:
                break
        elif not fits and right > most:
            best, most = problems, right
    if fits:
        return [], right_of_fit, fits
    return best or [], max(most, 0), 0


_INT_RANGES = {"int32": 2**31, "int64": 2**63, "": 2**63}
LARGEST_FLOAT32 = 3.4028234663852886e38


def number_problems(node: SchemaNode, value: float, path: str, field: str) -> list[FieldError]:
    """`value` is an int or a float, never a bool."""
    found: list[FieldError] = []

    def is_in_range(number: float, what: str) -> bool:
        if _fits_format(node, number):
            return True
        named = f"with format {node.format}" if node.format else "(default format)"
        found.append(FieldError("Invalid", "<nil>", f"{what} value must be of type {node.type} {named} in {path}", ""))
        return False

    def add(text: str) -> None:
        found.append(FieldError("Invalid", field, f"{path} in body should be {text}", value))

    is_in_range(value, "Checked")
    if (factor := node.multiple_of) is not None:
        fits = is_in_range(factor, "MultipleOf")
        if factor > 0 and not _is_multiple(value, factor, fits):
            add(f"a multiple of {_bound(value, factor, fits)}")
    if (low := node.minimum) is not None:
        fits = is_in_range(low, "Minimum boundary")
        limit = int(low) if type(value) is int and fits else low
        if value < limit or (node.excludes_minimum and value == limit):
            add(f"greater than {'' if node.excludes_minimum else 'or equal to '}{_bound(value, low, fits)}")
    if (high := node.maximum) is not None:
        fits = is_in_range(high, "Maximum boundary")
        limit = int(high) if type(value) is int and fits else high
        if value > limit or (node.excludes_maximum and value == limit):
            add(f"less than {'' if node.excludes_maximum else 'or equal to '}{_bound(value, high, fits)}")
    return found


def go_float(number: float) -> str:
    """A float as Go prints it: no point for whole numbers, an exponent from 1e21 on."""
    if math.isfinite(number) and number == int(number) and abs(number) < 1e21:
        return str(int(number))
    text = repr(number)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa.removesuffix('.0')}e{exponent}" if e else text


def _bound(value: float, limit: float, fits: bool) -> str:
    return str(int(limit)) if type(value) is int and fits else go_float(limit)


def _fits_format(node: SchemaNode, number: float) -> bool:
    if node.type == "integer":
        reach = _INT_RANGES[node.format]
        return math.isfinite(number) and number == int(number) and -reach <= number < reach
    return node.format != "float" or abs(number) <= LARGEST_FLOAT32


def _is_multiple(value: float, factor: float, fits: bool) -> bool:
    if type(value) is int and fits:
        return int(factor) <= 0 or value % int(factor) == 0
    if not math.isfinite(value) or abs(value) > 1e300:
        return True
    times = value / factor if factor >= 1 else 1 / factor * value
    return math.isfinite(times) and abs(times - round(times)) < 1e-9
