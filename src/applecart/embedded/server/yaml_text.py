"""YAML bodies: the JSON that they stand for.

Only what JSON can say: no tags that build objects, no references that grow when they are read, no keys but strings. Depth is
checked before the parser sees the text, because the C parser overflows its stack on deep nesting.
"""

import math
from datetime import date, datetime
from typing import Any

import yaml

DEEPEST = 200  # of nested blocks or brackets
MOST_ALIASES = 100  # an anchor that is repeated more often than this is an attack, not a manifest


class NotYaml(ValueError):
    """The text is no YAML that stands for JSON; the message says why."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Timestamps stay text, as in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(body: bytes) -> Any:
    """The values of a YAML text. Raises NotYaml."""
    text = _text(body)
    _refuse_depth(text)
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise NotYaml(_why(error)) from None
    except (RecursionError, ValueError) as error:
        raise NotYaml(f"yaml: {error}") from None
    if len(documents) > 1:
        raise NotYaml("yaml: more than one document in the body")
    return _as_json(documents[0]) if documents else None


def _text(body: bytes) -> str:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotYaml("yaml: invalid leading UTF-8 octet") from None
    if text.count("*") > MOST_ALIASES and text.count("&") > 0:
        raise NotYaml("yaml: document contains excessive aliasing")
    return text


def _refuse_depth(text: str) -> None:
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth = max(depth - 1, 0)
    indents: list[int] = []
    for line in text.splitlines():
        content = line.lstrip(" ")
        if not content:
            continue
        indent = len(line) - len(content)
        nested = content.count("- ", 0, len(content) - len(content.lstrip("- ")) + 2)  # "- - - a" nests in one line
        while indents and indents[-1] >= indent:
            indents.pop()
        indents.append(indent)
        deepest = max(deepest, len(indents) + nested)
    if deepest > DEEPEST:
        raise NotYaml("yaml: exceeded max depth")


def _as_json(value: Any) -> Any:
    match value:
        case dict():
            return {_key(key): _as_json(one) for key, one in value.items()}
        case list() | tuple() | set():
            return [_as_json(one) for one in value]
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise NotYaml(f"json: unsupported value: {value}")
            return int(value) if value.is_integer() and abs(value) < 1 << 53 else value
        case bytes():
            return value.decode("latin-1")
        case datetime() | date():
            return value.isoformat()
        case _:
            raise NotYaml(f"yaml: a {type(value).__name__} has no place in JSON")


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
