"""Members that occur twice, and how they line up with unknown ones."""

import json
from typing import Any

import msgspec
import pytest

from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.strict import json_patch_problems, strict_problems
from applecart.embedded.structure.types import type_of


def problems(text: str, kind: str = "Pod") -> list[str]:
    type = type_of("v1", kind)
    assert type is not None
    document: Any = msgspec.json.decode(text)
    return strict_problems(text.encode(), document, conform(document, type), type)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"metadata":{"name":"a","name":"b"}}', ['duplicate field "metadata.name"']),
        ('{"metadata":{},"metadata":{}}', ['duplicate field "metadata"']),
        ('{"metadata":{"labels":{"a":"1","a":"2","a":"3"}}}', ['duplicate field "metadata.labels.a"']),
        ('{"spec":{"containers":[{},{"name":"a","name":"b"}]}}', ['duplicate field "spec.containers[1].name"']),
        ('{"x":1,"x":2}', ['unknown field "x"']),
        ('{"x":{"y":1,"y":2}}', ['unknown field "x"']),
        ('{"metadata":{"name":"a","name":"b","x":1},"y":1}', [
            'duplicate field "metadata.name"', 'unknown field "metadata.x"', 'unknown field "y"',
        ]),
        ('{ "metadata" : {"name": "a"} }', []),
        ('{"metadata":{"name":"\\u0061","n\\u0061me":"b"}}', ['duplicate field "metadata.name"']),
    ],
)  # fmt: skip
def test_strict_problems_are_told_in_the_order_of_the_text(text: str, found: list[str]) -> None:
    assert problems(text) == found


def test_what_managed_fields_repeat_is_nobodys_business() -> None:
    assert problems('{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}') == []


@pytest.mark.parametrize("indent", [None, 2])
def test_a_text_without_faults_has_no_problems_however_it_is_written(indent: int | None) -> None:
    assert problems(json.dumps({"metadata": {"name": "\u00e9"}, "spec": {"containers": []}}, indent=indent)) == []


@pytest.mark.parametrize(
    ("operations", "made", "found"),
    [
        ('[{"op":"add","path":"/a","value":1,"value":2}]', {"a": 2}, ['json patch duplicate field "[0].value"']),
        ('[{"op":"add","path":"/a","value":1,"x":2}]', {"a": 1}, ['json patch unknown field "[0].x"']),
        ('[{"op":"test","path":"/a"},{"op":"add","path":"/l/-","value":{"b":1,"b":2}}]', {"l": [0, {"b": 2}]}, [
            'json patch duplicate field "[1].value.b"', 'duplicate field "l[1].b"',
        ]),
        ('[{"op":"add","path":"/a~1b/c","value":{"b":1,"b":2}},{"op":"remove","path":"/a~1b"}]', {}, [
            'json patch duplicate field "[0].value.b"',
        ]),
        ('[{"op":"add","path":"/a","value":{"b":1}}]', {"a": {"b": 1}}, []),
        ('{"op":1,"op":2}', {}, []),
    ],
)  # fmt: skip
def test_a_json_patch_is_told_what_it_repeats_and_what_it_made_of_it(operations: str, made: Any, found: list[str]) -> None:
    assert json_patch_problems(operations.encode(), msgspec.json.decode(operations), made) == found
