"""Values as the text of a cell."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables.go_text import MAX_DEPTH, cell_text
from tests.embedded.tables.documents import VALUES


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is <&>", "as it is <&>"),
        (None, "<no value>"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-42, "-42"),
        (9223372036854775807, "9223372036854775807"),
        (2**70, "1.1805916207174113e+21"),
        (10**400, "+Inf"),
        (0.0, "0"),
        (-0.0, "-0"),
        (2.5, "2.5"),
        (3.0, "3"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00002, "2e-05"),
        (1.5e-7, "1.5e-07"),
        (1e30, "1e+30"),
        (-1.5e300, "-1.5e+300"),
        ([], "[]"),
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ({"a": "<&>\u2028"}, r'{"a":"\u003c\u0026\u003e\u2028"}'),
        ([1.5, 1e-7, 1e21, 1e20, 12345678.5, 0.000001], "[1.5,1e-7,1e+21,100000000000000000000,12345678.5,0.000001]"),
    ],
)
def test_a_value_is_printed_as_the_real_server_prints_it(value: Any, text: str) -> None:
    assert cell_text(value) == text


def test_a_value_nested_too_deep_to_print_is_no_text() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    assert cell_text(deep) is None


@given(st.one_of(st.lists(VALUES, max_size=4), st.dictionaries(st.text(max_size=4), VALUES, max_size=4)))
def test_maps_and_lists_are_printed_as_json_that_reads_back(value: Any) -> None:
    text = cell_text(value)
    assert text is not None
    assert json.loads(text, parse_int=float) == json.loads(json.dumps(value), parse_int=float)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_number(value: float) -> None:
    text = cell_text(value)
    assert text is not None
    assert float(text) == value
