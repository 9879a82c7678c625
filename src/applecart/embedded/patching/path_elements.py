"""One step of a field path, written as in `fieldsV1`: `f:name`, `k:{"name":"x"}`, `v:"x"`, `i:0`.

The written form is the identity: two elements are the same when their texts are, so everything that makes or reads one goes
through here and writes it in one way (keys sorted, numbers without a needless fraction, the real server's escapes).
"""

import json
import math
import re
from functools import lru_cache
from typing import Any

from applecart.embedded.field_errors import quoted

Element = str

_ESCAPED = re.compile(r'["\\\x00-\x1f<>&\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_KINDS = "fkvi"  # in the order in which elements of one parent are listed


class BadElement(ValueError):
    """Text that is no path element. `is_unknown` for a kind that a newer server may have written."""

    def __init__(self, text: str, *, is_unknown: bool = False) -> None:
        super().__init__(f"{text!r} is no path element")
        self.is_unknown = is_unknown


def field(name: str) -> Element:
    return "f:" + name


def key(values: dict[str, Any]) -> Element:
    """An item of a list that is identified by some of its members."""
    return "k:" + _written({name: values[name] for name in sorted(values)})


def value(item: Any) -> Element:
    """An item of a set."""
    return "v:" + _written(item)


def read_element(text: str) -> Element:
    """The element in its one written form; raises BadElement."""
    if len(text) < 2 or text[1] != ":":
        raise BadElement(text)
    kind, rest = text[0], text[2:]
    if kind not in _KINDS:
        raise BadElement(text, is_unknown=True)
    if kind == "f":
        return text
    if kind == "i":
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", rest):
            raise BadElement(text)
        return f"i:{int(rest)}"
    try:
        content = json.loads(rest)
    except (ValueError, RecursionError):
        raise BadElement(text) from None
    if kind == "v":
        return value(content)
    if type(content) is not dict:
        raise BadElement(text)
    return key(content)


def path_text(path: tuple[Element, ...]) -> str:
    """A path as messages show it: `.spec.containers[name="x"].image`."""
    return "".join(map(element_text, path))


def element_text(element: Element) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return "." + rest
    if kind == "k":
        return "[" + ",".join(f"{name}={_shown(one)}" for name, one in json.loads(rest).items()) + "]"
    if kind == "v":
        return f"[={_shown(json.loads(rest))}]"
    return f"[{rest}]"


@lru_cache(maxsize=4096)
def order(element: Element) -> tuple[Any, ...]:
    """Sorts elements of one parent: names, then keys, then values, then indices."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return (0, rest)
    if kind == "k":
        return (1, tuple((name, *_rank(one)) for name, one in json.loads(rest).items()))
    if kind == "v":
        return (2, *_rank(json.loads(rest)))
    return (3, int(rest))


def _rank(item: Any) -> tuple[int, Any]:
    """Numbers, then strings, booleans, lists, maps, null."""
    if isinstance(item, bool):
        return (2, item)
    if isinstance(item, int | float):
        return (0, item)
    if isinstance(item, str):
        return (1, item)
    if item is None:
        return (5, 0)
    return (3 if isinstance(item, list) else 4, _written(item))


def _shown(item: Any) -> str:
    return quoted(item) if isinstance(item, str) else _written(item)


def _written(item: Any) -> str:
    if isinstance(item, str):
        return '"' + _ESCAPED.sub(_escape, item) + '"'
    if isinstance(item, dict):
        return "{" + ",".join(f"{_written(name)}:{_written(one)}" for name, one in item.items()) + "}"
    if isinstance(item, list):
        return "[" + ",".join(map(_written, item)) + "]"
    if isinstance(item, float) and math.isfinite(item) and item.is_integer() and abs(item) < 1e21:
        return str(int(item))
    return json.dumps(item)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04x}"
