"""YAML bodies: the JSON that they stand for.

Only what JSON can say: no tags that build objects, no references that grow when they are read, no keys but strings. Depth is
checked on the events, one after the other, before anything is built of them: the C parser builds by recursion, and text that
nests deep enough overflows its stack and ends the process.
"""

import math
from datetime import date, datetime
from typing import Any

import yaml

DEEPEST = 200  # of nested blocks or brackets
MOST_ADDED = 1 << 20  # values and characters that repeated anchors add; no manifest comes near, an attack passes it at once
_WHAT_BUILDING_RAISES = (AttributeError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


MERGE = "tag:yaml.org,2002:merge"


class NotYaml(ValueError):
    """The text is no YAML that stands for JSON; the message says why."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Timestamps stay text, as in JSON."""

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


def parse(body: bytes) -> Any:
    """The values of a YAML text. Raises NotYaml."""
    text = _text(body)
    try:
        _refuse_depth(text)
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise NotYaml(_why(error)) from None
    except NotYaml:
        raise
    except _WHAT_BUILDING_RAISES as error:
        raise NotYaml(f"yaml: {error}") from None
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
                return {self._key(key): self.as_json(one, inner) for key, one in value.items()}
            case list() | tuple() | set():
                inner = self._deeper(depth)
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


def _why(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    if mark is None:
        return f"yaml: {problem}"
    # The real server's parser counts from zero where it parses and from one where it scans.
    line = mark.line + 1 if isinstance(error, yaml.scanner.ScannerError) else max(mark.line, 1)
    return f"yaml: line {line}: {problem}"
