"""Paths to a field as a rule or a selectable field writes them (`.spec.x`, `.labels['a.b']`), followed through the schema."""

import re

from applecart.embedded.schema.node import Node

_TOKENS = re.compile(r"\.|\[|\]|'(?:\\.|[^'\\])*'|[^.\[\]]+")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """The text says why, as the real server says it."""


def follow(path: str, node: Node | None, *, allows_brackets: bool = True) -> tuple[str, Node]:
    """The path in its normal form, and the schema of the field it names."""
    tokens = _TOKENS.findall(path)
    normal = ""
    while tokens:
        token = tokens.pop(0)
        if token == "[":
            if not allows_brackets:
                raise BadPath("array notation is not allowed")
            name = _quoted(tokens.pop(0) if tokens else "")
            if not tokens:
                raise BadPath("unexpected end of JSON path")
            if (closing := tokens.pop(0)) != "]":
                raise BadPath(f"expected ] but got {closing}")
        elif token == ".":
            if not tokens:
                raise BadPath("unexpected end of JSON path")
            name = tokens.pop(0)
        else:
            raise BadPath(f"expected [ or . but got: {token}")
        if node is None:
            raise BadPath("does not refer to a valid field")
        if node.properties:
            normal, node = f"{normal}.{name}" if normal else name, node.properties.get(name)
        else:
            normal, node = f"{normal}[{name}]", node.additional
        if node is None:
            raise BadPath("does not refer to a valid field")
    if node is None:
        raise BadPath("does not refer to a valid field")
    return normal, node


def _quoted(token: str) -> str:
    if not token:
        raise BadPath("unexpected end of JSON path")
    if len(token) < 2 or not token.startswith("'") or not token.endswith("'"):
        raise BadPath(f"expected single quoted string but got {token}")

    def unescape(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPED:
            raise BadPath(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPED[match[1]]

    return re.sub(r"\\(.)", unescape, token[1:-1], flags=re.DOTALL)
