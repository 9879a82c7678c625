"""Why bytes are not JSON, in the words clients know from the real server."""

import json
import re
from typing import Any

import msgspec

SHOWN_BYTES = 4096  # of a body that could not be read
DEEPEST = 200  # nesting that is read; half of what the deepest recursion here bears, and as for YAML

_AT = re.compile(r"\(byte (\d+)\)")
_UNMARSHAL = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


class NotJson(ValueError):
    """The bytes are no JSON; the text says why."""


def parse(body: bytes) -> Any:
    """The values of a JSON text. Raises NotJson."""
    try:
        value = msgspec.json.decode(body)
        if body.count(b"{") + body.count(b"[") > DEEPEST and is_too_deep(value):
            raise NotJson("exceeded max depth")
        return value
    except RecursionError:
        raise NotJson("exceeded max depth") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(_why(body, str(error))) from None


def is_too_deep(value: Any) -> bool:
    """Whether a value nests deeper than what may be stored: it would be read in places that recurse."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def no_object(value: Any) -> str:
    """Why a value that is no object has no type."""
    return f"json: cannot unmarshal {type_name(value)} into Go value of type {_UNMARSHAL}"


def type_name(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case None:
            return "null"
        case _:
            return "number"


def summary(body: bytes) -> str:
    """A body inside a message: objects as text, anything else in hexadecimal."""
    if not body:
        return "<empty>"
    if body.startswith(b"{"):
        text = body[:SHOWN_BYTES].decode("utf-8", "replace")
        return text if len(body) <= SHOWN_BYTES else f"{text} ..."
    return body[:SHOWN_BYTES].hex() if len(body) <= SHOWN_BYTES else f"{body[:SHOWN_BYTES].hex()} ..."


def _why(body: bytes, text: str) -> str:
    """What is wrong where, in Go's words. Python's own parser says where and what it expected there."""
    if not body.strip() or "truncated" in text:
        return "unexpected end of JSON input"
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        at = len(error.doc[: error.pos].encode())
        at += len(body[at:]) - len(body[at:].lstrip())
        if at >= len(body) or "Unterminated" in error.msg:
            return "unexpected end of JSON input"
        return f"invalid character '{_character(body, at)}' {_expected(error.msg, body[:at])}"
    except (ValueError, RecursionError):  # bytes that are no text at all
        if found := _AT.search(text):
            return f"invalid character '{_character(body, int(found[1]))}' looking for beginning of value"
    return f"invalid JSON: {text}"


def _expected(message: str, before: bytes) -> str:
    if "property name" in message or "trailing comma before end of object" in message:
        return "looking for beginning of object key string"
    if "':'" in message:
        return "after object key"
    if "','" in message:
        return "after array element" if _is_in_array(before) else "after object key:value pair"
    return "after top-level value" if "Extra data" in message else "looking for beginning of value"


def _is_in_array(before: bytes) -> bool:
    """Whether the innermost bracket that is open is a square one; brackets inside strings do not count."""
    brackets = re.sub(rb'"(?:\\.|[^"\\])*"', b"", before)
    opened: list[int] = []
    for bracket in re.findall(rb"[][{}]", brackets):
        if bracket in b"[{":
            opened.append(bracket[0])
        elif opened:
            opened.pop()
    return bool(opened) and opened[-1] == ord("[")


def _character(body: bytes, at: int) -> str:
    character = body[at : at + 1].decode("latin-1") if at < len(body) else ""
    return character if character.isprintable() else f"\\u{ord(character):04x}"
