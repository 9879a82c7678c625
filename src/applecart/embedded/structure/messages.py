"""Turns protobuf messages of the built-in types into JSON values.

What is on the wire becomes a member, most zeros too: which of them a document shows is for `conform` to decide. Unknown fields
are skipped, as protobuf demands. Depth is bounded, since schemas contain schemas.
"""

import base64
import struct
from typing import Any

import msgspec

from applecart.embedded.structure.instants import BadInstant, from_unix
from applecart.embedded.structure.table import Field, StructType, ValueType, struct_of
from applecart.embedded.structure.wire import BYTES, FIXED64, VARINT, Malformed, members, signed, text, varint

MAX_DEPTH = 200  # far above what a schema needs, far below what a stack holds
_SCHEMA = "apiextensions/v1.JSONSchemaProps"
_CARRIED_AS_BYTES = ("string", "bytes", "struct", "list", "map", "special")
_WIRE_TYPES = {"bool": VARINT, "int": VARINT, "float": FIXED64} | dict.fromkeys(_CARRIED_AS_BYTES, BYTES)
_BITS = {"int32": 32, "int64": 64}
_TEXT = ValueType("string", "string")
_NUMBERS = ("bool", "int", "float")


def decode_struct(data: bytes, type: StructType, depth: int = 0) -> dict[str, Any]:
    """The members that a message carries. Raises Malformed."""
    if depth > MAX_DEPTH:
        raise Malformed("exceeded max depth")
    found: dict[str, Any] = {}
    fields = type.by_number
    for number, wire_type, value in members(data, type.go_name):
        field = fields.get(number)
        if field is None:
            continue
        inner, name = field.type, field.name
        form = inner.form
        if form == "list" and not inner.is_message:
            _append(found.setdefault(name, []), wire_type, value, field, depth)
            continue
        value = _checked(value, wire_type, inner, field)
        if form == "string":
            if value or inner.is_pointer:  # most strings on the wire are empty ones that nobody set
                found[name] = text(value)
        elif not name:
            found |= decode_struct(value, inner.struct, depth + 1)
        elif form == "map":
            key, item = _entry(list(members(value, "entry")), field, depth)
            found.setdefault(name, {})[key] = item
        else:
            found[name] = _value(value, inner, depth)
    return found


def _append(items: list[Any], wire_type: int, value: Any, field: Field, depth: int) -> None:
    element = field.type.element
    assert element is not None
    if wire_type == BYTES and element.form == "int":  # packed
        at = 0
        while at < len(value):
            number, at = varint(value, at)
            items.append(_value(number, element, depth))
    else:
        items.append(_value(_checked(value, wire_type, element, field), element, depth))


def _entry(parts: list[tuple[int, int, Any]], field: Field, depth: int) -> tuple[str, Any]:
    element = field.type.element
    assert element is not None
    inner: Any
    name, inner = "", 0 if element.form in _NUMBERS else b""
    for number, wire_type, value in parts:
        if number == 1:
            name = text(_checked(value, wire_type, _TEXT, field))
        elif number == 2:
            inner = _checked(value, wire_type, element, field)
    return name, _value(inner, element, depth)


def _checked(value: Any, wire_type: int, type: ValueType, field: Field) -> Any:
    if wire_type != _WIRE_TYPES[type.form]:
        raise Malformed(f"proto: wrong wireType = {wire_type} for field {_go_name(field)}")
    return value


def _go_name(field: Field) -> str:
    """How Go names the field: embedded structs by their type, others nearly as JSON does."""
    if not field.name or field.name == "metadata":
        return field.type.struct.go_name
    return field.name[0].upper() + field.name[1:]


def _value(value: Any, type: ValueType, depth: int) -> Any:
    match type.form:
        case "string":
            return text(value)
        case "struct":
            return decode_struct(value, type.struct, depth + 1)
        case "bool":
            return value != 0
        case "int":
            return signed(value, _BITS[type.name])
        case "float":
            return _float(value)
        case "bytes":
            return base64.b64encode(value).decode("ascii")
        case "list":  # a message that wraps a list of strings
            return [text(_string(item, wire)) for number, wire, item in members(value, "ExtraValue") if number == 1] or None
        case _:
            return _special(value, type.name, depth)


def _float(value: int) -> float | int:
    number: float = struct.unpack("<d", value.to_bytes(8, "little"))[0]
    if number != number or number in (float("inf"), float("-inf")):
        raise Malformed("json: unsupported value")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _special(data: bytes, name: str, depth: int) -> Any:
    parts: dict[int, Any] = {}
    repeated: list[bytes] = []
    for number, wire_type, value in members(data, name.rsplit(".", 1)[-1]):
        parts[number] = (wire_type, value)
        if number == 2 and wire_type == BYTES:
            repeated.append(value if isinstance(value, bytes) else b"")
    match name:
        case "meta/v1.Time" | "meta/v1.MicroTime":
            return _instant(parts, is_micro=name == "meta/v1.MicroTime") if data else None
        case "resource.Quantity":
            return text(_string_part(parts, 1)) if 1 in parts else "0"
        case "intstr.IntOrString":
            return text(_string_part(parts, 3)) if _number(parts, 1) else signed(_number(parts, 2), 32)
        case "meta/v1.FieldsV1" | "apiextensions/v1.JSON":
            return _json(_string_part(parts, 1))
        case "apiextensions/v1.JSONSchemaPropsOrBool":
            return _schema(_string_part(parts, 2), depth) if 2 in parts else _number(parts, 1) != 0
        case "apiextensions/v1.JSONSchemaPropsOrArray" if repeated:
            return [_schema(item, depth) for item in repeated]
        case "apiextensions/v1.JSONSchemaPropsOrStringArray" if repeated:
            return [text(item) for item in repeated]
        case _:
            return _schema(_string_part(parts, 1), depth) if 1 in parts else None


def _schema(data: bytes, depth: int) -> dict[str, Any]:
    return decode_struct(data, struct_of(_SCHEMA), depth + 1)


def _instant(parts: dict[int, Any], *, is_micro: bool) -> str | None:
    nanoseconds = signed(_number(parts, 2), 32)
    if not 0 <= nanoseconds < 1_000_000_000:
        raise Malformed("timestamp nanos out of range")
    try:
        return from_unix(signed(_number(parts, 1), 64), f"{nanoseconds // 1000:06d}" if is_micro else "")
    except BadInstant as error:
        raise Malformed(str(error)) from error


def _json(data: bytes) -> Any:
    if not data:
        return None
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed("embedded JSON is malformed") from error


def _number(parts: dict[int, Any], number: int) -> int:
    wire_type, value = parts.get(number, (VARINT, 0))
    if wire_type != VARINT:
        raise Malformed(f"proto: wrong wireType = {wire_type} for field {number}")
    return int(value)


def _string_part(parts: dict[int, Any], number: int) -> bytes:
    wire_type, value = parts.get(number, (BYTES, b""))
    return _string(value, wire_type)


def _string(value: Any, wire_type: int) -> bytes:
    if wire_type != BYTES:
        raise Malformed(f"proto: wrong wireType = {wire_type}")
    return bytes(value)
