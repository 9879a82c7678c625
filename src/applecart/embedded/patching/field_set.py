"""Sets of fields of an object, as `fieldsV1` writes them: who owns what, and what changed.

A path is a tuple of elements, each in its one written form: `f:name`, `k:{"name":"x"}`, `v:"x"`, `i:0`. Two elements are the
same when their texts are, so everything that makes or reads one goes through here (keys sorted, numbers without a needless
fraction, the real server's escapes). A set is a tree: at each place the elements that belong to it, and below which elements it
goes on. A parent that belongs says nothing of its children, and the other way round. No operation changes a set that exists.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from applecart.embedded.field_errors import quoted

Element = str

_ESCAPED = re.compile(r'["\\\x00-\x1f<>&\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
KNOWN_SETS = 512  # kept parsed, which takes ten times their text: 20 MB at worst
KNOWN_SET_BYTES = 4096  # of text; longer ones are parsed every time
KNOWN_ELEMENT_LENGTH = 256
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
    if len(values) == 1:
        ((name, one),) = values.items()
        if type(one) is str and len(one) <= KNOWN_ELEMENT_LENGTH:
            return _known_key(name, one)
    return "k:{" + ",".join([f"{_written(name)}:{_written(values[name])}" for name in sorted(values)]) + "}"


@lru_cache(maxsize=4096)  # containers, volumes, variables and conditions have the same few names in all objects
def _known_key(name: str, one: str) -> Element:
    return f"k:{{{_written(name)}:{_written(one)}}}"


def as_json(element: Element) -> str:
    return msgspec.json.encode(element).decode()


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


def order(element: Element) -> tuple[Any, ...]:
    """Sorts elements of one parent: names, then keys, then values, then indices."""
    if element[0] == "f":
        return (0, element)
    return _known_order(element) if len(element) <= KNOWN_ELEMENT_LENGTH else _order(element)


def _in_order(elements: Iterable[Element]) -> list[Element]:
    ordered = sorted(elements)
    # Names sort as their texts do, and behind them come all other kinds.
    return ordered if not ordered or ordered[-1][0] == "f" else sorted(ordered, key=order)


def _order(element: Element) -> tuple[Any, ...]:
    kind, rest = element[0], element[2:]
    if kind == "k":
        return (1, tuple((name, *_rank(one)) for name, one in json.loads(rest).items()))
    if kind == "v":
        return (2, *_rank(json.loads(rest)))
    return (3, int(rest))


_known_order = lru_cache(maxsize=4096)(_order)


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
        return f'"{item}"' if _ESCAPED.search(item) is None else f'"{_ESCAPED.sub(_escape, item)}"'
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


Path = tuple[Element, ...]


class FieldSet:
    """Operations answer one of their operands when it is the result, so that what did not change is neither copied nor
    written again."""

    __slots__ = ("_text", "children", "members")

    def __init__(self, members: Iterable[Element] = (), children: "dict[Element, FieldSet] | None" = None) -> None:
        self.members = frozenset(members)
        self.children = children or {}  # none of them empty
        self._text: msgspec.Raw | None = None

    @classmethod
    def of(cls, paths: Iterable[Path]) -> "FieldSet":
        members = set()
        below: dict[Element, list[Path]] = {}
        for path in paths:
            if len(path) == 1:
                members.add(path[0])
            elif path:
                below.setdefault(path[0], []).append(path[1:])
        return cls(members, {element: cls.of(rest) for element, rest in below.items()})

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.members == other.members and self.children == other.children

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, path: Path) -> bool:
        node: FieldSet | None = self
        for element in path[:-1]:
            node = node.children.get(element) if node else None
        return bool(path) and node is not None and path[-1] in node.members

    def __or__(self, other: "FieldSet") -> "FieldSet":
        changed = {}
        for element, child in other.children.items():
            mine = self.children.get(element)
            both = child if mine is None else mine | child
            if both is not mine:
                changed[element] = both
        if not changed and other.members <= self.members:
            return self
        return FieldSet(self.members | other.members, {**self.children, **changed})

    def __and__(self, other: "FieldSet") -> "FieldSet":
        shared = self.children.keys() & other.children.keys()
        children = {element: self.children[element] & other.children[element] for element in shared}
        return FieldSet(self.members & other.members, _filled(children))

    def __sub__(self, other: "FieldSet") -> "FieldSet":
        """Without the members of the other; children of those members stay."""
        changed = {}
        for element, gone in other.children.items():
            mine = self.children.get(element)
            if mine is not None and (left := mine - gone) is not mine:
                changed[element] = left
        if not changed and self.members.isdisjoint(other.members):
            return self
        return FieldSet(self.members - other.members, _filled({**self.children, **changed}) if changed else self.children)

    def without_subtrees(self, other: "FieldSet") -> "FieldSet":
        """Without the members of the other and everything below them."""
        if not other:
            return self
        children = {
            element: child.without_subtrees(other.children[element]) if element in other.children else child
            for element, child in self.children.items()
            if element not in other.members
        }
        return FieldSet(self.members - other.members, _filled(children))

    def paths(self) -> Iterator[Path]:
        """Each field, in the order in which messages list them: a level's own members before what is below."""
        yield from ((element,) for element in _in_order(self.members))
        for element in _in_order(self.children):
            for rest in self.children[element].paths():
                yield (element, *rest)

    def written(self) -> dict[str, Any]:
        """`fieldsV1`."""
        fields: dict[str, Any] = {}
        for element in _in_order(self.members | self.children.keys() if self.children else self.members):
            child = self.children.get(element)
            if child is None:
                fields[element] = {}
            elif element in self.members:
                fields[element] = {".": {}, **child.written()}
            else:
                fields[element] = child.written()
        return fields

    @property
    def text(self) -> msgspec.Raw:
        """`fieldsV1` as JSON."""
        if self._text is None:
            self._text = msgspec.Raw(msgspec.json.encode(self.written()))
        return self._text


def _filled(children: dict[Element, FieldSet]) -> dict[Element, FieldSet]:
    return {element: child for element, child in children.items() if child}


NOTHING = FieldSet()


def read_field_set(fields: Any) -> FieldSet:
    """The set of a `fieldsV1`; raises BadElement."""
    try:
        text = msgspec.json.encode(fields)
    except (TypeError, ValueError, OverflowError):
        raise BadElement(type(fields).__name__) from None
    # The objects of one writer mostly have the same set, and one object has it write after write.
    return _read_known(text) if len(text) <= KNOWN_SET_BYTES else _read(msgspec.json.decode(text))


@lru_cache(maxsize=KNOWN_SETS)
def _read_known(text: bytes) -> FieldSet:
    return _read(msgspec.json.decode(text))


def _read(fields: Any) -> FieldSet:
    if fields is None:
        return NOTHING
    if type(fields) is not dict:
        raise BadElement(str(type(fields).__name__))
    members: set[Element] = set()
    children: dict[Element, FieldSet] = {}
    for text, below in fields.items():
        if text == ".":
            continue
        try:
            element = text if text.startswith("f:") else read_element(text)
        except BadElement as problem:
            # A newer server's kind of element: dropping it loses ownership of a field, refusing it would lose all.
            if problem.is_unknown:
                continue
            raise
        child = _read(below)
        if child:
            children[element] = child
        if not child or "." in below:
            members.add(element)
    return FieldSet(members, children)
