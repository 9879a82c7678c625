"""What strict validation finds in a JSON body: unknown members and members that occur twice.

A decoded document no longer shows that a member occurred twice, so this reads the text again. It does so only where the text is
not what the document would be written as: that is how most clients write. Changes nothing and never refuses.
"""

import json
import re
from typing import Any

import msgspec

from applecart.embedded.field_errors import quoted
from applecart.embedded.structure.conform import MAX_REPORTED, Conformed
from applecart.embedded.structure.types import StructType, ValueType

_OPERATION = frozenset({"op", "path", "from", "value"})
_NAME_END = b'":'
_ESCAPED_QUOTE = rb"\u0022"
_LOOSE_NAME_END = re.compile(rb'"\s+:')


class _Pairs(list[tuple[str, Any]]):
    """An object with all its members, also those that occur twice."""


def strict_problems(raw: bytes, document: Any, conformed: Conformed, type: StructType) -> list[str]:
    """Sentences such as `duplicate field "data"`, in the order of the text. `document` is what `raw` was decoded to."""
    found = _problems(raw, document, type)
    return conformed.problems if found is None else found


def duplicate_fields(raw: bytes, document: Any) -> list[str]:
    """The same for a document of which no type is known: only what occurs twice."""
    return _problems(raw, document, None) or []


def _problems(raw: bytes, document: Any, type: StructType | None) -> list[str] | None:
    """None for a text in which nothing occurs twice."""
    if _has_as_many_members(raw, document) or not has_duplicates(raw):
        return None
    found: dict[str, None] = {}
    known = ValueType("struct", "", type.name) if type else None
    _look_into(json.loads(raw, object_pairs_hook=_Pairs), known, "", found)
    return list(found)[:MAX_REPORTED]


def json_patch_problems(raw: bytes, operations: Any, patched: Any) -> list[str]:
    """What operations say twice or in vain, and what occurs twice in the document they made: values keep their text."""
    if not isinstance(operations, list) or not (
        has_duplicates(raw) or any(isinstance(one, dict) and not one.keys() <= _OPERATION for one in operations)
    ):
        return []
    found: dict[str, None] = {}
    made: dict[str, None] = {}
    for index, operation in enumerate(json.loads(raw, object_pairs_hook=_Pairs)):
        seen: set[str] = set()
        for name, value in operation if isinstance(operation, _Pairs) else ():
            place = f"[{index}].{name}"
            if name not in _OPERATION:
                found[f"json patch unknown field {quoted(place)}"] = None
            elif name in seen:
                found[f"json patch duplicate field {quoted(place)}"] = None
            seen.add(name)
            doubles: dict[str, None] = {}
            _look_into(value, None, place, doubles)
            found |= dict.fromkeys(f"json patch {one}" for one in doubles)
            if name == "value" and (target := _place_of(operations[index].get("path"), patched)):
                _look_into(value, None, target, made)
    return [*found, *made][:MAX_REPORTED]


def _place_of(pointer: Any, patched: Any) -> str:
    """A JSON pointer as refusals write it, where it leads somewhere; else nothing."""
    place = ""
    for part in str(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(patched, list):
            at = len(patched) - 1 if name == "-" else int(name) if name.isdecimal() else len(patched)
            if not 0 <= at < len(patched):
                return ""
            place, patched = f"{place}[{at}]", patched[at]
        elif isinstance(patched, dict) and name in patched:
            place, patched = f"{place}.{name}" if place else name, patched[name]
        else:
            return ""
    return place


def _has_as_many_members(raw: bytes, document: Any) -> bool:
    """Whether the text surely has no member twice: then it has one more than what it was decoded to.

    Members are counted by the quote and colon behind their names; a text in which that could be written otherwise is not
    judged here."""
    written = msgspec.json.encode(document)
    return raw == written or (
        raw.count(_NAME_END) == written.count(_NAME_END) and _ESCAPED_QUOTE not in raw and _LOOSE_NAME_END.search(raw) is None
    )


def has_duplicates(raw: bytes) -> bool:
    has_any = False

    def look(pairs: list[tuple[str, Any]]) -> None:
        nonlocal has_any
        has_any = has_any or len({name for name, _ in pairs}) < len(pairs)

    try:
        json.loads(raw, object_pairs_hook=look)
    except (ValueError, RecursionError):  # whoever decoded the document has judged the text
        return False
    return has_any


def _look_into(value: Any, type: ValueType | None, path: str, found: dict[str, None]) -> None:
    """A value of which no type is known is looked into everywhere; one of a type where the type has members."""
    element = type.element if type else None
    if isinstance(value, _Pairs) and (type is None or type.form in ("struct", "map")):
        fields = type.struct.fields if type and type.form == "struct" else None
        seen: set[str] = set()
        for name, each in value:
            place = f"{path}.{name}" if path else name
            if fields is not None and name not in fields:
                found[f"unknown field {quoted(place)}"] = None
                continue
            if name in seen:
                found[f"duplicate field {quoted(place)}"] = None
            seen.add(name)
            _look_into(each, fields[name].type if fields is not None else element, place, found)
    elif isinstance(value, list) and not isinstance(value, _Pairs) and (type is None or type.form == "list"):
        for index, each in enumerate(value):
            _look_into(each, element, f"{path}[{index}]", found)
