"""YAML as the real server reads it: what occurs twice is told with its line, the inner first. And JSON that is none."""

import re
from typing import Any

import pytest

from applecart.embedded.server import syntax
from applecart.embedded.server.syntax import MOST_REPEATED, SHOWN_BYTES, NotJson, parse_json, parse_yaml


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\n", []),
        ("a: 1\na: 2\na: 3\n", ['line 2: key "a" already set in map', 'line 3: key "a" already set in map']),
        ("a:\n  b: 1\na:\n  b: 2\n  b: 3\n", ['line 5: key "b" already set in map', 'line 4: key "a" already set in map']),
        ('{"a":1,"l":[{"b":1,"b":2}]}', ['line 1: key "b" already set in map']),
        ("1: a\n1: b\nyes: c\nyes: d\n", ["line 2: key 1 already set in map", "line 4: key true already set in map"]),
        ("x: &x\n  a: 1\ny:\n  <<: *x\n  a: 2\n", []),
    ],
)
def test_keys_that_occur_twice_are_told(text: str, told: list[str]) -> None:
    repeated: list[str] = []
    parse_yaml(text.encode(), repeated)
    assert repeated == told


def test_only_so_many_keys_are_told() -> None:
    repeated: list[str] = []
    parse_yaml("".join(f"k{number}: {{a: 1, a: 2}}\n" for number in range(3 * MOST_REPEATED)).encode(), repeated)
    assert len(repeated) == MOST_REPEATED


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (r'{"a":["x" "b"]}', "after array element"),
        (r'{"a":{"b":"x" "c"}}', "after object key:value pair"),
        (r'[{"a":1} {"b":2}]', "after array element"),
        (r'{"a":["\"[{"],"b":{"c":"]}[" "d"}}', "after object key:value pair"),
        (r'{"a":{"b":"\\","c":["\\\"{" "d"]}}', "after array element"),
        (r'{"a":["{"],"b":[{"c":"]"},{"d":"}" "e"}]}', "after object key:value pair"),
    ],
)
def test_a_mistake_is_told_with_what_it_is_in_whatever_the_strings_before_it_hold(text: str, place: str) -> None:
    with pytest.raises(NotJson, match=f"^invalid character .* {place}$"):
        parse_json(text.encode())


def test_no_pattern_goes_through_a_large_body_to_say_what_a_mistake_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of the regular expressions held the interpreter for 0.2 s, and no other thread had a turn."""
    longest = 0

    class Noted:
        @staticmethod
        def sub(pattern: bytes, new: bytes, text: bytes) -> bytes:
            nonlocal longest
            longest = max(longest, len(text))
            return re.sub(pattern, new, text)

        @staticmethod
        def findall(pattern: bytes, text: bytes) -> list[Any]:
            nonlocal longest
            longest = max(longest, len(text))
            return re.findall(pattern, text)

    monkeypatch.setattr(syntax, "re", Noted)
    with pytest.raises(NotJson, match="after array element"):
        parse_json(b'{"a":["' + b"x" * 100_000 + b'"' + b" " * 100_000 + b'"b"]}')
    assert longest <= SHOWN_BYTES
