"""Decodes protobuf request bodies of built-in kinds into the JSON document that the same object would be.

A body is four bytes of magic and an envelope with apiVersion, kind and the message. Go clients send these for built-in kinds
and have no other way. What is on the wire becomes a member, most zeros too: which of them a document shows is for `conform` to
decide. Every read is bounded by the bytes that are there, depth too, since schemas contain schemas; what does not add up is
Malformed, in the words of the generated Go code. Answers are never protobuf.
"""

import base64
import struct
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.scalars import BadInstant, from_unix
from applecart.embedded.structure.types import Field, StructType, ValueType, struct_of, type_of

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Data = TypeVar("Data", bytes, memoryview)
_MAX_VARINT_BYTES = 10  # 64 bits, seven at a time


class Malformed(ValueError):
    """Bytes that are no message; the message is the server's."""


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise Malformed("proto: integer overflow")


def members(data: Data, message: str) -> Iterator[tuple[int, int, int | Data]]:
    """Every field as number, wire type and value. `message` names the type in refusals."""
    at, size = 0, len(data)
    while at < size:
        tag = data[at]  # most tags and lengths are one byte: no call for those
        tag, at = (tag, at + 1) if tag < 0x80 else varint(data, at)
        number, wire_type = (tag >> 3) & 0x1FFFFFFF, tag & 7
        if wire_type == 4:
            raise Malformed(f"proto: {message}: wiretype end group for non-group")
        if number == 0:
            raise Malformed(f"proto: {message}: illegal tag {number} (wire type {tag})")
        value: int | Data
        if wire_type == VARINT:
            value, at = (data[at], at + 1) if at < size and data[at] < 0x80 else varint(data, at)
        elif wire_type == BYTES:
            length, start = (data[at], at + 1) if at < size and data[at] < 0x80 else varint(data, at)
            if length >= 2**63:
                raise Malformed("proto: negative length found during unmarshaling")
            at = start + length
            if at > size:
                raise Malformed("unexpected EOF")
            value = data[start:at]
        elif wire_type in (FIXED64, FIXED32):
            width = 8 if wire_type == FIXED64 else 4
            if at + width > size:
                raise Malformed("unexpected EOF")
            value = int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise Malformed(f"proto: illegal wireType {wire_type}")
        yield number, wire_type, value


def signed(value: int, bits: int) -> int:
    """Two's complement of the lowest bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("proto: string field contains invalid UTF-8") from error


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


MAGIC = b"k8s\x00"
_SCHEME = "pkg/runtime/scheme.go:111"  # how the real server names its registry in messages
_SUMMARY_BYTES = 30


def decode_protobuf(body: bytes, api_version: str = "", kind: str = "") -> dict[str, Any]:
    """The document. `api_version` and `kind` are what the request's path expects: they stand in where the envelope is silent,
    and refusals name the kind. Raises Refusal (400) for anything else than a complete message of a built-in kind."""
    try:
        found_version, found_kind, message = _envelope(body)
    except Malformed as error:
        shown = _summary(body)
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error} ({shown})") from error
    found_version, found_kind = found_version or api_version, found_kind or kind
    type = type_of(found_version, found_kind)
    if type is None:
        why = f"no kind {quoted(found_kind)} is registered for version {quoted(found_version)} in scheme {quoted(_SCHEME)}"
        raise _refusal(found_version, found_kind, kind, why)
    try:
        decoded = decode_struct(message, type)
    except Malformed as error:
        raise _refusal(found_version, found_kind, kind, str(error)) from error
    return conform({**decoded, "apiVersion": found_version, "kind": found_kind}, type).document


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    if not body:
        raise Malformed("empty data")
    if not body.startswith(MAGIC):
        numbers = " ".join(map(str, MAGIC))
        raise Malformed(f"provided data does not appear to be a protobuf message, expected prefix [{numbers}]")
    if len(body) == len(MAGIC):
        raise Malformed("empty body")
    names = {1: "", 2: ""}
    message = b""
    for number, _, value in members(body[len(MAGIC) :], "Unknown"):
        if number == 1:
            for part, _, name in members(_bytes(value, "TypeMeta"), "TypeMeta"):
                if part in names:
                    names[part] = text(_bytes(name, "APIVersion" if part == 1 else "Kind"))
        elif number == 2:
            message = _bytes(value, "Raw")
    return names[1], names[2], message


def _bytes(value: int | bytes, field: str) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed(f"proto: wrong wireType = 0 for field {field}")
    return value


def _refusal(found_version: str, found_kind: str, kind: str, why: str) -> Refusal:
    version = found_version.rsplit("/", 1)[-1]
    return bad_request(f"{found_kind} in version {quoted(version)} cannot be handled as a {kind or found_kind}: {why}")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    return f"{body[:_SUMMARY_BYTES].hex()} ..." if len(body) > _SUMMARY_BYTES else body.hex()
