"""One place of a structural schema, read once so that every walk over a document is a matter of lookups.

The tree is made from a version's `openAPIV3Schema`. Reading is lenient: what `structural_errors` would refuse is ignored here,
so that an odd schema that was stored once never makes its objects unreadable. Nodes never change after they are made. `follow`
walks the tree by a path as a rule or a selectable field writes it (`.spec.x`, `.labels['a.b']`).
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from applecart.embedded.schema.formats import checked_format
from applecart.embedded.schema.patterns import Pattern

Schema = dict[str, Any]

MAX_DEPTH = 200  # of a schema; deeper than any real one, far below the interpreter's own limit
LARGEST_NUMBER = 10**300  # limits beyond it fit no float
META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


class SchemaNode:
    """What is known of one value: its type, its limits, its members."""

    __slots__ = (
        *("types", "is_nullable", "format", "enum", "enum_texts", "pattern", "min_length", "max_length"),
        *("minimum", "maximum", "excludes_minimum", "excludes_maximum", "multiple_of"),
        *("min_items", "max_items", "min_properties", "max_properties", "required"),
        *("properties", "additional", "allows_any_member", "items"),
        *("all_of", "any_of", "one_of", "no_match", "has_alternatives"),
        *("list_type", "list_keys", "map_type", "preserves_unknown", "is_embedded", "is_int_or_string"),
        *("default", "defaults", "rules", "is_leaf", "whole_range", "has_rules", "has_unique_lists", "has_embedded"),
    )

    def __init__(self, schema: Schema, depth: int = 0) -> None:
        self.is_int_or_string = schema.get("x-kubernetes-int-or-string") is True
        named = schema.get("type")
        self.types: tuple[str, ...] = ("integer", "string") if self.is_int_or_string else ()
        if isinstance(named, str) and named and not self.is_int_or_string:
            self.types = (named,)
        self.is_nullable = schema.get("nullable") is True
        self.format = checked_format(self.types, text_of(schema, "format"))
        enum = schema.get("enum")
        self.enum: list[Any] = enum if isinstance(enum, list) else []
        self.enum_texts = frozenset(value for value in self.enum if type(value) is str)
        pattern = text_of(schema, "pattern")
        self.pattern = Pattern(pattern) if pattern else None
        self.min_length, self.max_length = _whole(schema, "minLength"), _whole(schema, "maxLength")
        self.min_items, self.max_items = _whole(schema, "minItems"), _whole(schema, "maxItems")
        self.min_properties, self.max_properties = _whole(schema, "minProperties"), _whole(schema, "maxProperties")
        self.minimum, self.maximum = _number(schema, "minimum"), _number(schema, "maximum")
        self.excludes_minimum = schema.get("exclusiveMinimum") is True
        self.excludes_maximum = schema.get("exclusiveMaximum") is True
        self.multiple_of = _number(schema, "multipleOf")
        self.required = tuple(name for name in _list(schema, "required") if isinstance(name, str))
        self._read_members(schema, depth)
        self._read_extensions(schema)
        self._summarize()

    def _read_members(self, schema: Schema, depth: int) -> None:
        def node(inner: Any) -> "SchemaNode | None":
            return SchemaNode(inner, depth + 1) if isinstance(inner, dict) and depth < MAX_DEPTH else None

        def nodes(keyword: str) -> "tuple[SchemaNode, ...]":
            return tuple(one for one in map(node, _list(schema, keyword)) if one)

        properties = schema.get("properties")
        named = properties.items() if isinstance(properties, dict) else ()
        self.properties = {name: one for name, one in ((name, node(inner)) for name, inner in named) if one}
        additional = schema.get("additionalProperties")
        self.additional = node(additional)
        self.allows_any_member = additional is True
        self.items = node(schema.get("items"))
        self.all_of, self.any_of, self.one_of = nodes("allOf"), nodes("anyOf"), nodes("oneOf")
        self.no_match = node(schema.get("not"))
        self.has_alternatives = bool(self.all_of or self.any_of or self.one_of or self.no_match)

    def _read_extensions(self, schema: Schema) -> None:
        self.list_type = text_of(schema, "x-kubernetes-list-type")
        self.list_keys = tuple(key for key in _list(schema, "x-kubernetes-list-map-keys") if isinstance(key, str))
        self.map_type = text_of(schema, "x-kubernetes-map-type")
        self.preserves_unknown = schema.get("x-kubernetes-preserve-unknown-fields") is True
        self.is_embedded = schema.get("x-kubernetes-embedded-resource") is True
        default = schema.get("default")
        self.default: bytes | None = None if default is None else msgspec.json.encode(default)
        self.rules = [rule for rule in _list(schema, "x-kubernetes-validations") if isinstance(rule, dict)]

    def _summarize(self) -> None:
        """What is somewhere below, so that a walk skips what cannot concern it."""
        scalar = self.types in (("string",), ("integer",), ("boolean",))
        self.is_leaf = scalar and not self.has_alternatives
        self.whole_range = self._whole_range()
        below = [*self.properties.values(), *(one for one in (self.additional, self.items) if one)]
        self.defaults = {name: one.default for name, one in self.properties.items() if one.default is not None}
        self.has_rules: bool = bool(self.rules) or any(one.has_rules for one in below)
        self.has_unique_lists: bool = self.list_type in ("set", "map") or any(one.has_unique_lists for one in below)
        self.has_embedded: bool = self.is_embedded or any(one.has_embedded for one in below)

    def _whole_range(self) -> tuple[int, int]:
        """Whole numbers between these two surely fit; empty where that takes more than comparing."""
        reach = 2**31 if self.format == "int32" else 2**63
        limits = [limit for limit in (self.minimum, self.maximum, self.multiple_of) if limit is not None]
        if self.types != ("integer",) or self.enum or self.multiple_of is not None:
            return 1, 0
        if any(not limit.is_integer() or not -reach <= limit < reach for limit in limits):
            return 1, 0
        low = -reach if self.minimum is None else int(self.minimum) + self.excludes_minimum
        high = reach - 1 if self.maximum is None else int(self.maximum) - self.excludes_maximum
        return low, high

    @property
    def type(self) -> str:
        return self.types[0] if len(self.types) == 1 else ""

    def child(self, name: str) -> "SchemaNode | None":
        return self.properties.get(name) or self.additional


def children(node: SchemaNode, value: Any, path: str) -> Iterator[tuple[SchemaNode | None, Any, str]]:
    """What a value holds: the schema, the value and the path of each, members of maps as errors name them."""
    if type(value) is dict:
        for name, member in value.items():
            known = node.properties.get(name)
            if known is None:
                yield node.additional, member, f"{path}[{name}]"
            else:
                yield known, member, f"{path}.{name}" if path else name
    elif type(value) is list:
        for index, item in enumerate(value):
            yield node.items, item, f"{path}[{index}]"


def fresh(default: bytes) -> Any:
    """A default value that nobody else holds."""
    return msgspec.json.decode(default)


def text_of(schema: Schema, keyword: str) -> str:
    value = schema.get(keyword)
    return value if isinstance(value, str) else ""


def _list(schema: Schema, keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []


def _whole(schema: Schema, keyword: str) -> int | None:
    value = schema.get(keyword)
    return value if type(value) is int else None


def _number(schema: Schema, keyword: str) -> float | None:
    value = schema.get(keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST_NUMBER:
        return None
    return float(value)


_TOKENS = re.compile(r"\.|\[|\]|'(?:\\.|[^'\\])*'|[^.\[\]]+")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class BadPath(ValueError):
    """The text says why, as the real server says it."""


def follow(path: str, node: SchemaNode | None, *, allows_brackets: bool = True) -> tuple[str, SchemaNode]:
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
