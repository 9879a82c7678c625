"""Text that should be JSON or YAML: its values, or why it is neither, in the words clients know from the real server.

Of YAML only what JSON can say: no tags that build objects, no references that grow when they are read, no keys but strings.
Depth is checked on the events, one after the other, before anything is built of them: the C parser builds by recursion, and
text that nests deep enough overflows its stack and ends the process.
"""

import json
import math
import re
from datetime import date, datetime
from typing import Any

import msgspec
import yaml

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.budget import spend
from applecart.embedded.structure.strict import has_duplicates

SHOWN_BYTES = 4096  # of a body that could not be read
MOST_VALUES = 100_000  # in one object: the largest definitions that are installed anywhere have some ten thousand
DEEPEST = 200  # nesting that is read; half of what the deepest recursion here bears, and as for YAML

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_AT = re.compile(r"\(byte (\d+)\)")
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


class NotJson(ValueError):
    """The bytes are no JSON; the text says why."""


def parse_json(body: bytes) -> Any:
    """The values of a JSON text. Raises NotJson; Refusal for very many values."""
    refuse_many_values(body)
    try:
        value = msgspec.json.decode(body)
        if body.count(b"{") + body.count(b"[") > DEEPEST and is_too_deep(value):
            raise NotJson("exceeded max depth")
        return value
    except RecursionError:
        raise NotJson("exceeded max depth") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(_why_not_json(body, str(error))) from None


def refuse_many_values(text: bytes) -> None:
    """Before they come into being: what makes, checks and frees them all in one call keeps everybody waiting."""
    if len(text) > MOST_VALUES and _openings_and_commas(text) > MOST_VALUES:  # some of them may be inside of strings
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
        # A value has a name at most, or is a string itself.
        if text.count(b'"') > 4 * MOST_VALUES or _openings_and_commas(b"".join(text.split(b'"')[::2])) > MOST_VALUES:
            raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_VALUES} values in JSON")


def _openings_and_commas(text: bytes) -> int:
    """About as many as there are values."""
    return sum(map(text.count, (b",", b"{", b"[")))


def is_too_deep(value: Any) -> bool:
    """Whether a value nests deeper than what may be stored: it would be read in places that recurse."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return False
    return True


def summary(body: bytes) -> str:
    """A body inside a message: objects as text, anything else in hexadecimal."""
    if not body:
        return "<empty>"
    if body.startswith(b"{"):
        text = body[:SHOWN_BYTES].decode("utf-8", "replace")
        return text if len(body) <= SHOWN_BYTES else f"{text} ..."
    return body[:SHOWN_BYTES].hex() if len(body) <= SHOWN_BYTES else f"{body[:SHOWN_BYTES].hex()} ..."


def _why_not_json(body: bytes, text: str) -> str:
    """What is wrong where, in Go's words. Python's own parser says where and what it expected there."""
    if not body.strip() or "truncated" in text:
        return "unexpected end of JSON input"
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        at = len(error.doc[: error.pos].encode("utf-8", "surrogatepass"))
        at += len(body[at:]) - len(body[at:].lstrip())
        if at >= len(body) or "Unterminated" in error.msg:
            return "unexpected end of JSON input"
        return f"invalid character '{_character(body, at)}' {_expected(error.msg, body[:at])}"
    except (ValueError, RecursionError):  # bytes that are no text at all
        if found := _AT.search(text):
            return f"invalid character '{_character(body, int(found[1]))}' looking for beginning of value"
    return f"invalid JSON: {text}"


def _expected(message: str, before: bytes) -> str:
    if "property name" in message or "trailing comma before end of object" in message:
        return "looking for beginning of object key string"
    if "':'" in message:
        return "after object key"
    if "','" in message:
        return "after array element" if _is_in_array(before) else "after object key:value pair"
    return "after top-level value" if "Extra data" in message else "looking for beginning of value"


def _is_in_array(before: bytes) -> bool:
    """Whether the innermost bracket that is open is a square one; brackets inside strings do not count."""
    opened: list[int] = []
    before = before.replace(b"\\\\", b"").replace(b'\\"', b"")  # no pattern: one call of it would hold up all threads
    for bracket in b"".join(before.split(b'"')[::2]).translate(None, _NO_BRACKETS):
        if bracket in b"[{":
            opened.append(bracket)
        elif opened:
            opened.pop()
    return bool(opened) and opened[-1] == ord("[")


def _character(body: bytes, at: int) -> str:
    character = body[at : at + 1].decode("latin-1") if at < len(body) else ""
    return character if character.isprintable() else f"\\u{ord(character):04x}"


MOST_YAML_BYTES = 256 << 10  # of a request: a second of work; JSON may be larger
MOST_ADDED = 1 << 20  # values and characters that repeated anchors add; no manifest comes near, an attack passes it at once
_WHAT_BUILDING_RAISES = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


MERGE = "tag:yaml.org,2002:merge"
MOST_REPEATED = 100  # keys that are told


class NotYaml(ValueError):
    """The text is no YAML that stands for JSON; the message says why."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Timestamps stay text, as in JSON. A key that occurs twice is noted, with the line of its later value."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: dict[tuple[int, int], str] = {}  # by where the value ends, as the real server notes them

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        pairs = node.value
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(pairs) and len(self.repeated) < MOST_REPEATED:
            seen: set[tuple[str, str]] = set()
            for key, value in pairs:
                name = (key.tag, str(key.value))
                if name in seen and key.tag != MERGE:
                    built = self.construct_object(key)
                    shown = quoted(built) if isinstance(built, str) else _key(built)
                    line = f"line {value.start_mark.line + 1}: key {shown} already set in map"
                    self.repeated[value.end_mark.index, -value.start_mark.index] = line
                seen.add(name)
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Keys that are merged in again and again are kept once: otherwise each merge of a merge doubles them."""
        merges = any(key.tag == MERGE for key, _ in node.value)
        super().flatten_mapping(node)
        if merges:
            node.value = list({(key.tag, str(key.value)): (key, value) for key, value in node.value}.values())


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml_or_json(body: bytes, repeated: list[str] | None = None) -> Any:
    """What is sent as YAML is JSON as a rule, which is read a hundred times as fast. Raises NotYaml; Refusal for much YAML."""
    if body.lstrip()[:1] == b"{":
        try:
            value = parse_json(body)
            if len(body) > MOST_YAML_BYTES or not has_duplicates(body):  # which are told in the words of YAML
                return value
        except NotJson as error:  # a mapping in braces, or a mistake, which is told in the words of YAML while it is small
            if len(body) > MOST_YAML_BYTES:
                raise NotYaml(str(error)) from None
    if len(body) > MOST_YAML_BYTES:
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_YAML_BYTES} for YAML; send JSON")
    return parse_yaml(body, repeated)


def parse_yaml(body: bytes, repeated: list[str] | None = None) -> Any:
    """The values of a YAML text. Raises NotYaml. `repeated` takes a sentence for every key that occurs twice."""
    text = _text(body)
    try:
        _refuse_depth(text)
        loader = _Loader(text)
        try:
            documents = []
            while loader.check_data():
                documents.append(loader.get_data())
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise NotYaml(_why_not_yaml(error)) from None
    except NotYaml:
        raise
    except _WHAT_BUILDING_RAISES as error:
        raise NotYaml(f"yaml: {error}") from None
    if repeated is not None:
        repeated += [line for _, line in sorted(loader.repeated.items())]
    if len(documents) > 1:
        raise NotYaml("yaml: more than one document in the body")
    return _Reading(2 * len(text) + MOST_ADDED).as_json(documents[0], 0) if documents else None


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotYaml("yaml: invalid leading UTF-8 octet") from None


def _refuse_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise NotYaml("yaml: exceeded max depth")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Reading:
    """One walk over what was built. A value that is repeated by reference is counted each time."""

    def __init__(self, left: int) -> None:
        self._left = left

    def as_json(self, value: Any, depth: int) -> Any:
        self._count(1 + (len(value) if isinstance(value, str | bytes) else 0))
        match value:
            case dict():
                inner = self._deeper(depth)
                spend(len(value))  # 300 bytes may repeat to a million values
                return {self._key(key): self.as_json(one, inner) for key, one in value.items()}
            case list() | tuple() | set():
                inner = self._deeper(depth)
                spend(len(value))
                return [self.as_json(one, inner) for one in value]
            case float():
                if not math.isfinite(value):
                    raise NotYaml(f"json: unsupported value: {value}")
                return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
            case None | bool() | int() | str():
                return value
            case bytes():
                return value.decode("latin-1")
            case datetime() | date():
                return value.isoformat()
            case _:
                raise NotYaml(f"yaml: a {type(value).__name__} has no place in JSON")

    def _key(self, key: Any) -> str:
        text = _key(key)
        self._count(len(text))
        return text

    def _deeper(self, depth: int) -> int:
        if depth >= DEEPEST:  # an anchor that contains itself has no end
            raise NotYaml("yaml: exceeded max depth")
        return depth + 1

    def _count(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise NotYaml("yaml: document contains excessive aliasing")


def _key(key: Any) -> str:
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case int() | float():
            return str(key)
        case _:
            raise NotYaml("yaml: unsupported map key")


def _why_not_yaml(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return f"yaml: {problem}"
    # The real server's parser counts from zero where it parses and from one where it scans.
    line = mark.line + 1 if isinstance(error, yaml.scanner.ScannerError) else max(mark.line, 1)
    return f"yaml: line {line}: {problem}"
