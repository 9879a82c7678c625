"""Paths to fields, followed through a schema."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.schema.schema_node import BadPath, SchemaNode, follow

NODE = SchemaNode(
    {
        "type": "object",
        "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
    }
)


@pytest.mark.parametrize(
    ("path", "normal", "kind"),
    [
        (".a", "a", "object"),
        (".a['b.c']", "a.b.c", "string"),
        (".m.k", "m[k]", "integer"),
        (r".m['it\'s']", "m[it's]", "integer"),
        ("", "", "object"),
    ],
)
def test_a_path_leads_to_a_field(path: str, normal: str, kind: str) -> None:
    found, node = follow(path, NODE)
    assert (found, node.type) == (normal, kind)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".x", "does not refer to a valid field"),
        (".m.k.x", "does not refer to a valid field"),
        ("a", "expected [ or . but got: a"),
        (".", "unexpected end of JSON path"),
        (".a[", "unexpected end of JSON path"),
        (".a['b.c'", "unexpected end of JSON path"),
        (".a[0]", "expected single quoted string but got 0"),
        (".a['b.c'.", "expected ] but got ."),
        (r".m['\q']", r"invalid string literal: invalid escape char \q"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, reason: str) -> None:
    with pytest.raises(BadPath) as bad:
        follow(path, NODE)
    assert str(bad.value) == reason


def test_brackets_may_be_forbidden() -> None:
    with pytest.raises(BadPath, match="array notation is not allowed"):
        follow(".a['b.c']", NODE, allows_brackets=False)


@given(st.text(".[]'am\\k", max_size=12))
def test_no_text_breaks_a_path(path: str) -> None:
    with suppress(BadPath):
        assert follow(path, NODE)[1] is not None
