"""What cannot be applied at all: documents whose structure contradicts the shape.

Types of scalars are not checked here, decoding does that. The texts are the real server's, which answers them with 500; here
they are bad requests. Values are never shown: they may be secret.
"""

from typing import Any

from applecart.embedded.patching.forms import BadItem, element_of
from applecart.embedded.patching.path_elements import element_text, field
from applecart.embedded.patching.values import json_type
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.shape import Shape


def refuse_unless_appliable(applied: dict[str, Any], live: dict[str, Any] | None, shape: Shape, api_version: str) -> None:
    kind = _text(applied.get("kind"))
    if applied.get("apiVersion") != api_version or (live is not None and kind != live.get("kind")):
        raise bad_request(f"invalid object type: {_type_of(applied)}")
    metadata = applied.get("metadata")
    if type(metadata) is dict and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problems = structure_problems(applied, shape)
    if problems:
        raise _untyped(applied, problems)


def structure_problems(content: Any, shape: Shape, path: str = "") -> list[str]:
    """What is wrong, with where it is."""
    if content is None or shape.sort == "untyped":
        return []
    if shape.sort == "scalar":
        is_container = type(content) is dict or type(content) is list
        return [_at(path, f"expected scalar, got {json_type(content)}")] if is_container else []
    if shape.sort == "list":
        return _item_problems(content, shape, path)
    if type(content) is not dict:
        return [_at(path, f"expected map, got {json_type(content)}")]
    return [
        problem
        for name in sorted(content)
        for problem in structure_problems(content[name], shape.child(name), path + element_text(field(name)))
    ]


def _item_problems(content: Any, shape: Shape, path: str) -> list[str]:
    if type(content) is not list:
        return [_at(path, f"expected list, got {json_type(content)}")]
    problems: list[str] = []
    seen = set()
    for place, item in enumerate(content):
        text = f"[{place}]"
        if shape.list_type != "atomic":
            try:
                element = element_of(item, shape)
            except BadItem as bad:
                return [*problems, _at(path, f"element {place}: {bad}")]
            text = element_text(element)
            if element in seen:
                problems.append(_at(path, f"duplicate entries for key {text}"))
            seen.add(element)
        problems += structure_problems(item, shape.child(""), path + text)
    return problems


def _at(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _untyped(applied: dict[str, Any], problems: list[str]) -> Refusal:
    metadata = applied.get("metadata")
    names = metadata if type(metadata) is dict else {}
    name = f"{_text(names.get('namespace'))}/{_text(names.get('name'))}"
    summary = problems[0] if len(problems) == 1 else "\n  ".join(("errors:", *problems))
    return bad_request(f"failed to create typed patch object ({name}; {_type_of(applied)}): {summary}")


def _type_of(applied: dict[str, Any]) -> str:
    group, _, version = _text(applied.get("apiVersion")).rpartition("/")
    return f"{group}/{version}, Kind={_text(applied.get('kind'))}"


def _text(value: Any) -> str:
    return value if type(value) is str else ""
