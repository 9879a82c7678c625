"""The JSONPath of printer columns: compiled once when a CRD is installed, asked once per row.

It is the dialect that kubectl and CRDs speak, defined by its reader and not by a grammar, with its habits: `['a.b']` is two
steps unless the dot is escaped, a filter compares one value with one value and knows no `&&`, an index out of range is an
error, only a quoted text may hold a bracket. An error of a single document means that the column has no value there (`values`
gives nothing); only a path that cannot be read is a ValueError. Never changes a document.
"""

import re
from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NoReturn

from applecart.embedded.schema.budget import OverBudget, spend

MAX_INT = 2**63 - 1  # a larger JSON number is a float to the programs whose behaviour this follows
MAX_LENGTH = 8192  # of a path, and of all columns of a definition together: a step may be three characters and take 6 µs

_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ENDS_NAME = frozenset(" \t\r\n.,[]$@{}")
Step = Callable[[list[Any]], list[Any]]
MAX_VALUES = 100_000  # on the way; `..` behind `..` multiplies them, and one row must not stop the server


class _Reader:
    """Reads a path into steps, each from the values so far to those it selects."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.steps: list[Step] = []
        self.names: list[str] = []  # of the steps that are mere names
        self._read()

    def _read(self) -> None:
        while self._at < len(self._text):
            char = self._text[self._at]
            if self._text.startswith("[?(", self._at):
                self._read_filter()
            elif self._text.startswith("..", self._at):
                self._read_recursive()
            elif char == "}":
                break  # closes the template that a column's path is the inside of; what follows is not part of it
            elif char in " @$":  # the document itself
                self._at += 1
            elif char == "[":
                self._read_brackets()
            elif char in "\"'":
                self._read_quoted(char)
            elif char == ".":
                self._at += 1
                self._read_name()
            elif char in "+-" or char.isdecimal():
                self._read_number()
            elif char == "_" or char.isalpha():
                self._read_word()
            elif char in "\r\n":
                raise ValueError("unclosed action")
            else:
                raise ValueError(f"unrecognized character in action: U+{ord(char):04X} {char!r}")

    def _read_recursive(self) -> None:
        if self.steps and self.steps[-1] is _descend:
            raise ValueError("invalid multiple recursive descent")
        self._at += 2
        self.steps.append(_descend)
        following = self._text[self._at : self._at + 1]
        if following == "_" or following.isalpha() or following.isdecimal():
            self._read_name()

    def _read_name(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_NAME:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))
        written = self._text[start : self._at]
        if written == "*":
            self.steps.append(lambda values: [child for value in values for child in _children(value)])
            return
        name = written.replace("\\", "")
        self.names.append(name)
        self.steps.append(lambda values: [value[name] for value in values if isinstance(value, dict) and name in value])

    def _read_word(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_NAME:
            self._at += 1
        word = self._text[start : self._at]
        # Any other word, such as `range`, can be read and never fits a document.
        self.steps.append(_repeated(word == "true") if word in ("true", "false") else _refuse)

    def _read_number(self) -> None:
        start = self._at
        self._at += self._text[start] in "+-"
        while self._at < len(self._text) and (self._text[self._at] == "." or self._text[self._at].isdecimal()):
            self._at += 1
        text = self._text[start : self._at]
        try:
            number = int(text) if text.isascii() and "." not in text else float(text)
        except ValueError:
            raise ValueError(f"cannot parse number {text}") from None
        is_whole = isinstance(number, int) and abs(number) <= MAX_INT
        self.steps.append(_repeated(LiteralInt(number) if is_whole else float(number)))

    def _read_quoted(self, quote: str) -> None:
        start = self._at
        self._at += 1
        while True:
            if self._at >= len(self._text) or self._text[self._at] == "\n":
                raise ValueError("unterminated quoted string")
            self._at += 1
            if self._text[self._at - 1] == quote and self._text[self._at - 2] != "\\":
                break
        text = _unquoted(self._text[start + 1 : self._at - 1], quote)
        self.steps.append(lambda values: [text])

    def _read_brackets(self) -> None:
        end = self._text.find("]", self._at)
        inside = self._text[self._at + 1 : end]
        if end < 0 or "\n" in inside:
            raise ValueError("unterminated array")
        self._at = end + 1
        parts = inside.split(",")
        key = _QUOTED_KEY.fullmatch(inside)
        if len(parts) > 1:
            branches = [_Reader(f"[{part.strip(' ')}]").steps for part in parts]
            self.steps.append(lambda values: [found for branch in branches for found in _walk(values, branch)])
        elif key:
            inner = _Reader(f".{key[1]}")
            self.steps += inner.steps
            self.names += inner.names
        else:
            self.steps.append(_slice(":" if inside == "*" else inside))

    def _read_filter(self) -> None:
        start = self._at + len("[?(")
        at = start
        opening = ""
        is_closed = False
        while True:
            char = self._text[at : at + 1]
            if char in ("", "\n"):
                raise ValueError("unterminated filter")
            if char in "\"'":
                if not opening:
                    opening = char
                elif char == opening and self._text[at - 1] != "\\":
                    is_closed = True
            elif char == ")" and bool(opening) == is_closed:
                break
            at += 1
        if self._text[at + 1 : at + 2] != "]":
            raise ValueError("unclosed array expect ]")
        self._at = at + 2
        inside = self._text[start:at]
        comparison = _COMPARISON.fullmatch(inside)
        if comparison is None:
            self.steps.append(_filter(_Reader(inside).steps))
        else:
            self.steps.append(_filter(_Reader(comparison[1]).steps, comparison[2], _Reader(comparison[3]).steps))


def _repeated(literal: bool | float) -> Step:
    return lambda values: [literal] * len(values)


def _number(text: str) -> int | None:
    if text == "":
        return None
    # The length is looked at first: reading thousands of digits is slow, and Python refuses it.
    if text == "-" or len(text) > len(str(MAX_INT)) + 1 or abs(int(text)) > MAX_INT:
        raise ValueError(f"array index {text} is not a number")
    return int(text)


def _unquoted(text: str, quote: str) -> str:
    def refuse() -> NoReturn:
        raise ValueError(f"unquote string {quote}{text}{quote} error invalid syntax")

    pieces = []
    at = 0
    while at < len(text):
        if text[at] == quote:
            refuse()
        if text[at] != "\\":
            pieces.append(text[at])
            at += 1
            continue
        found = _ESCAPE.match(text, at)
        if found is None:
            refuse()
        letter, *numbers = found.groups()
        code = next((int(digits, 8 if index == 3 else 16) for index, digits in enumerate(numbers) if digits), 0)
        if (letter in ("'", '"') and letter != quote) or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            refuse()
        pieces.append(_LETTERS.get(letter, letter) if letter else chr(code))
        at = found.end()
    return "".join(pieces)


class LiteralInt(int):
    """A whole number written in the path. It compares as one and fills no number column, as on the real server."""


class NoAnswer(Exception):
    """The path does not fit this document."""


class JsonPath:
    """One compiled path; a ValueError says what is wrong with one that cannot be read."""

    __slots__ = ("_field_names", "_steps")

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"a path may have {MAX_LENGTH} characters, this one has {len(text)}")
        read = _Reader(text)
        self._steps = read.steps
        # Nearly every column is a chain of names, which needs no lists on the way.
        self._field_names = read.names if len(read.names) == len(read.steps) else None

    @property
    def searches(self) -> bool:
        """Whether what it costs depends on the document."""
        return self._field_names is None

    def values(self, document: Any) -> list[Any]:
        """What the path selects, in the document's order; nothing where it does not fit."""
        if self._field_names is None:
            try:
                return _walk([document], self._steps)
            except (NoAnswer, OverBudget, RecursionError):
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
        spend(1 + len(values))
        if len(values) > MAX_VALUES:
            raise NoAnswer
    return values


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
        if children := _children(value):
            found.append(value)
            spend(1 + len(children))
            if len(found) > MAX_VALUES:
                raise NoAnswer
            if not isinstance(value, str):
                waiting.extend(reversed(children))
    return found


def _slice(inside: str) -> Step:
    """`[start:end:step]`; an index is the slice of one, whose end is 0 for the last item."""
    found = _SLICE.fullmatch(inside)
    if found is None:
        raise ValueError(f"invalid array index {inside}")
    first, last, step = (_number(part.removeprefix(":")) if part else None for part in found.groups())
    is_index = found[2] is None
    first = first or 0
    last = first + 1 if is_index else last

    def sliced(values: list[Any]) -> list[Any]:
        result: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise NoAnswer
            size = len(value)
            start = first + (size if first < 0 else 0)
            end = size if last is None else last
            end += size if end < 0 or (end == 0 and is_index) else 0
            if start == end:
                return result
            if not (0 <= start < size and start < end <= size) or (step is not None and step <= 0):
                raise NoAnswer
            result.extend(value[start : end : step or 1])
        return result

    return sliced


def _filter(left: Sequence[Step], operator: str = "", right: Sequence[Step] = ()) -> Step:
    """`[?(left operator right)]`; without an operator, whether there is a left side."""

    def passes(item: Any) -> bool:
        if not operator:
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
        return _compare(lefts[0], operator, rights[0])

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
    if sort != _sort(right) or (sort == "bool" and operator not in ("==", "!=")) or operator not in _COMPARISONS:
        raise NoAnswer
    return bool(_COMPARISONS[operator](left, right))
