"""JSON patch (RFC 6902): a list of operations, applied in order, all or none.

What a real API server answers is kept, also where it is laxer than the RFC: `replace` of a missing member adds it, a path needs
no leading slash, negative indices count from the end, `test` of a missing member against null holds. Every operation that
cannot be carried out is the same 422, which names nothing. Copies are bounded, or a short patch could fill the memory.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from applecart.embedded.field_errors import json_type
from applecart.embedded.patching.values import ABSENT, copied, refuses_deep_nesting, same
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.schema.budget import spend

OPERATIONS_LIMIT = 10_000  # the real server's
COPY_LIMIT_BYTES = 3 * 1024 * 1024  # of all copies of one patch: the size of the largest request
COPIED_IN_A_STEP = 16  # bytes
INDEX = re.compile(r"[+-]?[0-9]{1,18}")  # 18 digits fit into an index of 64 bits


class _Inapplicable(Exception):
    """The document is not what an operation needs."""


@refuses_deep_nesting
def apply_json_patch(document: dict[str, Any], operations: Any) -> Any:
    """The document after all operations; not necessarily an object, for an operation may replace the whole. The given one is
    used up."""
    patched = _Patched(document)
    try:
        for operation in _checked(operations):
            patched.carry_out(operation)
    except _Inapplicable:
        raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request", {}) from None
    return patched.root


def _checked(operations: Any) -> list[dict[str, Any]]:
    if operations is None:
        return []
    if type(operations) is not list:
        raise _undecodable(operations, "value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if type(operation) is not dict:
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = operation.get(name)
            if value is not None and type(value) is not str:
                raise _undecodable(value, f"struct field jsonPatchOp.{name} of type string")
    if len(operations) > OPERATIONS_LIMIT:
        text = f"The allowed maximum operations in a JSON patch is {OPERATIONS_LIMIT}, got {len(operations)}"
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: {text}")
    return [operation or {} for operation in operations]


def _undecodable(value: Any, place: str) -> Refusal:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_type(value)} into Go {place}")


class _Patched:
    """The document while operations change it."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._copied_bytes = 0
        self._carriers: dict[str, Callable[[dict[str, Any]], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def carry_out(self, operation: dict[str, Any]) -> None:
        carrier = self._carriers.get(operation.get("op") or "")
        if carrier is None:
            raise _Inapplicable
        carrier(operation)

    def _add(self, operation: dict[str, Any]) -> None:
        container, key = self._find(_path(operation, "path"))
        _insert(container, key, copied(operation.get("value")))

    def _remove(self, operation: dict[str, Any]) -> None:
        container, key = self._find(_path(operation, "path"))
        _take(container, key)

    def _replace(self, operation: dict[str, Any]) -> None:
        path = _path(operation, "path")
        value = copied(operation.get("value"))
        if path == "":
            if type(value) is not dict and type(value) is not list:
                raise _Inapplicable
            self.root = value
            return
        container, key = self._find(path)
        if type(container) is list:
            container[_index(container, key)] = value
        else:
            container[key] = value

    def _move(self, operation: dict[str, Any]) -> None:
        container, key = self._find(_path(operation, "from"))
        value = _take(container, key)
        container, key = self._find(_path(operation, "path"))
        _insert(container, key, value)

    def _copy(self, operation: dict[str, Any]) -> None:
        container, key = self._find(_path(operation, "from"))
        value = _get(container, key)
        container, key = self._find(_path(operation, "path"))
        if value is ABSENT:
            value = None
        size = len(json.dumps(value))
        spend(size // COPIED_IN_A_STEP)
        self._copied_bytes += size
        if self._copied_bytes > COPY_LIMIT_BYTES:
            raise _Inapplicable
        _insert(container, key, copied(value))

    def _test(self, operation: dict[str, Any]) -> None:
        path = _path(operation, "path")
        value = self.root if path == "" else _get(*self._find(path))
        if not same(None if value is ABSENT else value, operation.get("value")):
            raise _Inapplicable

    def _find(self, path: str) -> tuple[Any, str]:
        """The container a path ends in, and the key there."""
        tokens = path.split("/")
        if len(tokens) < 2:
            raise _Inapplicable
        container = self.root
        for token in tokens[1:-1]:
            container = _get(container, _decoded(token))
            if type(container) is not dict and type(container) is not list:
                raise _Inapplicable
        return container, _decoded(tokens[-1])


def _path(operation: dict[str, Any], name: str) -> str:
    path = operation.get(name)
    if type(path) is not str:
        raise _Inapplicable
    return path


def _decoded(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~") if "~" in token else token


def _index(container: list[Any], key: str, *, length: int | None = None) -> int:
    """A position from either end; refused beyond `length` (of the list itself unless told)."""
    limit = len(container) if length is None else length
    if not INDEX.fullmatch(key):
        raise _Inapplicable
    index = int(key)
    if not -limit <= index < limit:
        raise _Inapplicable
    return index + limit if index < 0 else index


def _get(container: Any, key: str) -> Any:
    if type(container) is list:
        return container[_index(container, key)]
    return container.get(key, ABSENT)


def _take(container: Any, key: str) -> Any:
    if type(container) is list:
        return container.pop(_index(container, key))
    if key not in container:
        raise _Inapplicable
    return container.pop(key)


def _insert(container: Any, key: str, value: Any) -> None:
    if type(container) is not list:
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(container, key, length=len(container) + 1), value)
