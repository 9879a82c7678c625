"""Writes protobuf bodies as a Go client would: what is not a pointer is on the wire even when it is zero."""

import base64
import struct
from datetime import datetime
from typing import Any

import msgspec

from applecart.embedded.structure.types import Field, StructType, ValueType, struct_of, type_of

_SCHEMA = "apiextensions/v1.JSONSchemaProps"


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def length_delimited(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    meta = length_delimited(1, api_version.encode()) + length_delimited(2, kind.encode())
    return (
        b"k8s\x00" + length_delimited(1, meta) + length_delimited(2, raw) + length_delimited(3, b"") + length_delimited(4, b"")
    )


def body(document: dict[str, Any]) -> bytes:
    """The whole body of a request."""
    type = type_of(document["apiVersion"], document["kind"])
    assert type is not None
    return envelope(document["apiVersion"], document["kind"], message(document, type))


def message(document: dict[str, Any], type: StructType) -> bytes:
    out = b""
    for field in type.own:
        if not field.number:
            continue
        if not field.name:
            out += length_delimited(field.number, message(document, field.type.struct))
            continue
        value = document.get(field.name)
        if value is not None:
            out += _field(value, field)
        elif not field.type.is_pointer and field.type.form not in ("list", "map", "bytes", "special"):
            out += _single(field.number, _zero(field.type), field.type)
    return out


def _zero(type: ValueType) -> Any:
    return {"string": "", "bool": False, "int": 0, "float": 0, "struct": {}}[type.form]


def _field(value: Any, field: Field) -> bytes:
    type = field.type
    if type.form == "list" and not type.is_message:
        assert type.element is not None
        return b"".join(_single(field.number, each, type.element) for each in value)
    if type.form == "map":
        assert type.element is not None
        entries = [
            _single(1, key, ValueType("string", "string")) + _single(2, each, type.element) for key, each in value.items()
        ]
        return b"".join(length_delimited(field.number, entry) for entry in entries)
    return _single(field.number, value, type)


def _single(number: int, value: Any, type: ValueType) -> bytes:
    match type.form:
        case "bool" | "int":
            return varint(number << 3) + varint(int(value))
        case "float":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case "string":
            return length_delimited(number, value.encode())
        case "bytes":
            return length_delimited(number, base64.b64decode(value or ""))
        case "struct":
            return length_delimited(number, message(value, type.struct))
        case "list":
            return length_delimited(number, b"".join(length_delimited(1, each.encode()) for each in value))
        case _:
            return length_delimited(number, _special(value, type.name))


def _special(value: Any, name: str) -> bytes:
    if value is None:
        return b""
    match name.rsplit(".", 1)[1]:
        case "Time" | "MicroTime":
            at = datetime.fromisoformat(value)
            since = at - datetime.fromisoformat("1970-01-01T00:00:00Z")
            whole_s = since.days * 86400 + since.seconds
            return varint(1 << 3) + varint(whole_s) + varint(2 << 3) + varint(since.microseconds * 1000)
        case "Quantity":
            return length_delimited(1, value.encode())
        case "IntOrString":
            is_text = isinstance(value, str)
            number = 0 if is_text else value
            return (
                b"\x08" + varint(is_text) + b"\x10" + varint(number) + length_delimited(3, value.encode() if is_text else b"")
            )
        case "FieldsV1" | "JSON":
            return length_delimited(1, msgspec.json.encode(value))
        case "JSONSchemaPropsOrBool" if isinstance(value, bool):
            return b"\x08" + varint(value)
        case "JSONSchemaPropsOrBool":
            return b"\x08\x01" + length_delimited(2, message(value, struct_of(_SCHEMA)))
        case "JSONSchemaPropsOrArray" if isinstance(value, list):
            return b"".join(length_delimited(2, message(each, struct_of(_SCHEMA))) for each in value)
        case "JSONSchemaPropsOrStringArray" if isinstance(value, list):
            return b"".join(length_delimited(2, each.encode()) for each in value)
        case _:
            return length_delimited(1, message(value, struct_of(_SCHEMA)))
