"""Reading a JSONPath into nodes.

A hand-written reader, because the dialect is defined by its reader and not by a grammar: what ends a name, that a quoted key is
read again as a path, that only a quoted text may hold a bracket. Every text ends in nodes or in a ValueError with a sentence.
"""

import re
from typing import NoReturn

import msgspec

MAX_INT = 2**63 - 1
MAX_LENGTH = 16_384  # of a path; the longest that people write has some hundred characters

_QUOTED_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_ENDS_NAME = frozenset(" \t\r\n.,[]$@{}")


class Field(msgspec.Struct, frozen=True):
    name: str


class Literal(msgspec.Struct, frozen=True):
    value: str | int | float | bool
    is_text: bool = False


class Wildcard(msgspec.Struct, frozen=True):
    pass


class Recursive(msgspec.Struct, frozen=True):
    pass


class Slice(msgspec.Struct, frozen=True):
    """`[start:end:step]`; an index is the slice of one, whose end is 0 for the last item."""

    start: int | None
    end: int | None
    step: int | None
    is_index: bool


class Union(msgspec.Struct, frozen=True):
    branches: "tuple[tuple[Node, ...], ...]"


class Filter(msgspec.Struct, frozen=True):
    """`[?(left operator right)]`, or `exists` with a left side only."""

    left: "tuple[Node, ...]"
    operator: str
    right: "tuple[Node, ...]" = ()


class Word(msgspec.Struct, frozen=True):
    """A bare word such as `range`: it can be read and never fits a document."""

    name: str


Node = Field | Literal | Wildcard | Recursive | Slice | Union | Filter | Word


def parse(text: str) -> tuple[Node, ...]:
    """The nodes of a path such as `.spec.x`; raises ValueError with what is wrong."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"a path may have {MAX_LENGTH} characters, this one has {len(text)}")
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nodes: list[Node] = []

    def read(self) -> tuple[Node, ...]:
        while self._at < len(self._text):
            if self._text.startswith("[?(", self._at):
                self._read_filter()
            elif self._text.startswith("..", self._at):
                self._read_recursive()
            elif self._text[self._at] == "}":
                break  # closes the template that a column's path is the inside of; what follows is not part of it
            else:
                self._read_one(self._text[self._at])
        return tuple(self._nodes)

    def _read_one(self, char: str) -> None:
        if char in " @$":  # the document itself
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
        if self._nodes and isinstance(self._nodes[-1], Recursive):
            raise ValueError("invalid multiple recursive descent")
        self._at += 2
        self._nodes.append(Recursive())
        following = self._text[self._at : self._at + 1]
        if following == "_" or following.isalpha() or following.isdecimal():
            self._read_name()

    def _read_name(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_NAME:
            self._at += 2 if self._text[self._at] == "\\" else 1
        self._at = min(self._at, len(self._text))
        name = self._text[start : self._at]
        self._nodes.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))

    def _read_word(self) -> None:
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in _ENDS_NAME:
            self._at += 1
        word = self._text[start : self._at]
        self._nodes.append(Literal(word == "true") if word in ("true", "false") else Word(word))

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
        self._nodes.append(Literal(number if abs(number) <= MAX_INT else float(number)))

    def _read_quoted(self, quote: str) -> None:
        start = self._at
        self._at += 1
        while True:
            if self._at >= len(self._text) or self._text[self._at] == "\n":
                raise ValueError("unterminated quoted string")
            self._at += 1
            if self._text[self._at - 1] == quote and self._text[self._at - 2] != "\\":
                break
        self._nodes.append(Literal(_unquoted(self._text[start + 1 : self._at - 1], quote), is_text=True))

    def _read_brackets(self) -> None:
        end = self._text.find("]", self._at)
        inside = self._text[self._at + 1 : end]
        if end < 0 or "\n" in inside:
            raise ValueError("unterminated array")
        self._at = end + 1
        parts = inside.split(",")
        key = _QUOTED_KEY.fullmatch(inside)
        if len(parts) > 1:
            self._nodes.append(Union(tuple(self._inner(f"[{part.strip(' ')}]") for part in parts)))
        elif key:
            self._nodes.extend(self._inner(f".{key[1]}"))
        else:
            self._nodes.append(_slice(":" if inside == "*" else inside))

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
            self._nodes.append(Filter(self._inner(inside), "exists"))
        else:
            self._nodes.append(Filter(self._inner(comparison[1]), comparison[2], self._inner(comparison[3])))

    @staticmethod
    def _inner(text: str) -> tuple[Node, ...]:
        return _Reader(text).read()


def _slice(inside: str) -> Slice:
    found = _SLICE.fullmatch(inside)
    if found is None:
        raise ValueError(f"invalid array index {inside}")
    start, end, step = (_number(part.removeprefix(":")) if part else None for part in found.groups())
    is_index = found[2] is None
    return Slice(start, (start or 0) + 1 if is_index else end, step, is_index)


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
