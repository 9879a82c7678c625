"""The JSONPath of printer columns: compiled once when a CRD is installed, asked once per row.

It is the dialect that kubectl and CRDs speak, with its habits: `['a.b']` is two steps unless the dot is escaped, a filter
compares one value with one value and knows no `&&`, and an index out of range is an error. An error of a single document means
that the column has no value there (`values` gives nothing); only a path that cannot be read is a ValueError. Never changes a
document.
"""

from collections.abc import Callable, Sequence
from typing import Any

from applecart.embedded.tables import json_path_parser as parser

Step = Callable[[list[Any]], list[Any]]

MAX_VALUES = 100_000  # on the way; `..` behind `..` multiplies them, and one row must not stop the server
MAX_INT = 2**63 - 1  # a larger JSON number is a float to the programs whose behaviour this follows


class LiteralInt(int):
    """A whole number written in the path. It compares as one and fills no number column, as on the real server."""


class NoAnswer(Exception):
    """The path does not fit this document."""


class JsonPath:
    """One compiled path."""

    __slots__ = ("_field_names", "_steps", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        nodes = parser.parse(text)
        self._steps = [_step(node) for node in nodes]
        # Nearly every column is a chain of names, which needs no lists on the way.
        names = [node.name for node in nodes if isinstance(node, parser.Field)]
        self._field_names = names if len(names) == len(nodes) else None

    def values(self, document: Any) -> list[Any]:
        """What the path selects, in the document's order; nothing where it does not fit."""
        if self._field_names is None:
            try:
                return _walk([document], self._steps)
            except (NoAnswer, RecursionError):
                return []
        value = document
        for name in self._field_names:
            if type(value) is not dict or name not in value:
                return []
            value = value[name]
        return [value]


def _walk(values: list[Any], steps: Sequence[Step]) -> list[Any]:
    for step in steps:
        values = step(values)
        if len(values) > MAX_VALUES:
            raise NoAnswer
    return values


def _step(node: parser.Node) -> Step:
    match node:
        case parser.Field(name):
            return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]
        case parser.Literal(value, is_text=True):
            return lambda values: [value]
        case parser.Literal(value):
            literal = LiteralInt(value) if type(value) is int else value
            return lambda values: [literal] * len(values)
        case parser.Wildcard():
            return lambda values: [child for value in values for child in _children(value)]
        case parser.Recursive():
            return _descend
        case parser.Slice():
            return lambda values: _sliced(values, node)
        case parser.Union(branches):
            paths = [[_step(one) for one in branch] for branch in branches]
            return lambda values: [found for path in paths for found in _walk(values, path)]
        case parser.Filter():
            return _filter(node)
        case parser.Word():
            return _refuse


def _refuse(values: list[Any]) -> list[Any]:
    raise NoAnswer


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return list(value.encode(errors="replace")) if isinstance(value, str) else ()


def _descend(values: list[Any]) -> list[Any]:
    """Everything below that has members, parents first. A loop, because documents may be nested deeper than Python calls."""
    found = []
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        children = _children(value)
        if children:
            found.append(value)
            if len(found) > MAX_VALUES:
                raise NoAnswer
            if not isinstance(value, str):
                waiting.extend(reversed(children))
    return found


def _sliced(values: list[Any], node: parser.Slice) -> list[Any]:
    result: list[Any] = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise NoAnswer
        size = len(value)
        start = node.start or 0
        start += size if start < 0 else 0
        end = size if node.end is None else node.end
        end += size if end < 0 or (end == 0 and node.is_index) else 0
        if start == end:
            return result
        if not (0 <= start < size and start < end <= size) or (node.step is not None and node.step <= 0):
            raise NoAnswer
        result.extend(value[start : end : node.step or 1])
    return result


def _filter(node: parser.Filter) -> Step:
    left = [_step(one) for one in node.left]
    right = [_step(one) for one in node.right]

    def passes(item: Any) -> bool:
        if node.operator == "exists":
            try:
                return bool(_walk([item], left))
            except NoAnswer:
                return True  # what cannot be looked at counts as there
        lefts = _walk([item], left)
        rights = _walk([item], right) if lefts else []
        if not lefts or not rights:
            return False
        if len(lefts) > 1 or len(rights) > 1:
            raise NoAnswer
        return _compare(lefts[0], node.operator, rights[0])

    def keep(values: list[Any]) -> list[Any]:
        if not all(isinstance(value, list) for value in values):
            raise NoAnswer
        return [item for value in values for item in value if passes(item)]

    return keep


def _sort(value: Any) -> str:
    """Values are compared only with their own sort; 1 and 1.0 are of two sorts."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int" if -MAX_INT - 1 <= value <= MAX_INT else "float"
        case float():
            return "float"
        case str():
            return "text"
    raise NoAnswer


def _compare(left: Any, operator: str, right: Any) -> bool:
    sort = _sort(left)
    if sort != _sort(right) or (sort == "bool" and operator not in ("==", "!=")):
        raise NoAnswer
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
    raise NoAnswer
