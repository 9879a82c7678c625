"""YAML as the real server reads it: what occurs twice is told with its line, the inner before the outer."""

import pytest

from applecart.embedded.server.syntax import MOST_REPEATED, parse_yaml


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
