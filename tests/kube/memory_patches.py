"""Merge patch (RFC 7386) and JSON patch (RFC 6902) on plain dicts. What comes in is never changed."""

from typing import Any

import msgspec


class BadPatch(Exception):
    """An operation that does not fit the object, or a `test` that does not hold."""


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def apply_operations(target: Any, operations: list[dict[str, Any]]) -> Any:
    result = msgspec.json.decode(msgspec.json.encode(target))
    for operation in operations:
        try:
            _apply(result, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise BadPatch(f"{operation.get('op')} {operation.get('path')}: {error!r}") from None
    return result


def _apply(document: Any, operation: dict[str, Any]) -> None:
    verb, path = operation["op"], operation["path"]
    if verb == "test":
        if _read(document, path) != operation["value"]:
            raise ValueError("the value differs")
    elif verb == "add":
        _write(document, path, operation["value"])
    elif verb == "replace":
        # Stricter servers want the member to exist; kube-apiserver's patch library sets it all the same.
        parent, name = _parent(document, path)
        parent[name] = operation["value"]
    elif verb == "remove":
        _remove(document, path)
    elif verb == "copy":
        _write(document, path, _read(document, operation["from"]))
    elif verb == "move":
        value = _read(document, operation["from"])
        _remove(document, operation["from"])
        _write(document, path, value)
    else:
        raise ValueError("unknown operation")


def _read(document: Any, path: str) -> Any:
    parent, name = _parent(document, path)
    return parent[name]


def _write(document: Any, path: str, value: Any) -> None:
    parent, name = _parent(document, path)
    if isinstance(parent, list):
        parent.insert(name, value)
    else:
        parent[name] = value


def _remove(document: Any, path: str) -> None:
    parent, name = _parent(document, path)
    del parent[name]


def _parent(document: Any, path: str) -> tuple[Any, Any]:
    *inner, last = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
    for name in inner:
        document = document[int(name) if isinstance(document, list) else name]
    if isinstance(document, list):
        return document, len(document) if last == "-" else int(last)
    return document, last
