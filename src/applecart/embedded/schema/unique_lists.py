"""Lists that hold nothing twice: sets, and lists whose items are told apart by keys."""

from typing import Any

import msgspec

from applecart.embedded.field_errors import FieldError
from applecart.embedded.schema.node import Node


def duplicate_errors(node: Node | None, value: Any, path: str = "") -> list[FieldError]:
    """What occurs a second time; a third occurrence is not reported again."""
    if node is None or not node.has_unique_lists:
        return []
    found: list[FieldError] = []
    if type(value) is dict:
        for name, member in value.items():
            known = node.properties.get(name)
            below = f"{path}.{name}" if path else name
            if known is None:
                known, below = node.additional, f"{path}[{name}]"
            if type(member) is dict or type(member) is list:
                found += duplicate_errors(known, member, below)
    elif type(value) is list:
        if node.list_type == "set":
            found += _duplicates(value, value, path)
        elif node.list_type == "map":
            found += _of_keyed(node, value, path)
        for index, item in enumerate(value):
            found += duplicate_errors(node.items, item, f"{path}[{index}]")
    return found


def _of_keyed(node: Node, value: list[Any], path: str) -> list[FieldError]:
    for index, item in enumerate(value):
        if item is not None and type(item) is not dict:
            return [FieldError("Invalid", f"{path}[{index}]", "must be an object for an array of list-type map", item)]
    keys = [{key: item[key] for key in node.list_keys if key in item} if item else {} for item in value]
    return _duplicates(keys, keys, path)


def _duplicates(values: list[Any], shown: list[Any], path: str) -> list[FieldError]:
    seen: dict[bytes, int] = {}
    found: list[FieldError] = []
    for index, value in enumerate(values):
        identity = msgspec.json.encode(value, order="deterministic")
        seen[identity] = seen.get(identity, 0) + 1
        if seen[identity] == 2:
            found.append(FieldError("Duplicate", f"{path}[{index}]", value=shown[index]))
    return found
