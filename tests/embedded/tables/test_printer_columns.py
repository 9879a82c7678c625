"""The columns of custom kinds, and values as the text of a cell."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables import printer_columns
from applecart.embedded.tables.printer_columns import MAX_DEPTH, cell, cell_text, table_of_columns
from tests.embedded.tables.documents import VALUES, documents

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TYPES = ("string", "integer", "number", "boolean", "date")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "x", "x"),
        ("string", 5, "5"),
        ("string", None, "<no value>"),
        ("string", {"a": 1}, '{"a":1}'),
        ("integer", 5, 5),
        ("integer", 5.9, 5),
        ("integer", -5.9, -5),
        ("integer", 3e20, -(2**63)),
        ("integer", 2**63, -(2**63)),
        ("integer", 10**400, -(2**63)),
        ("integer", "5", None),
        ("integer", True, None),
        ("integer", None, None),
        ("number", 5, 5.0),
        ("number", 2.5, 2.5),
        ("number", True, None),
        ("number", "5", None),
        ("number", 10**400, None),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("boolean", 1, None),
        ("date", "2026-06-01T11:59:00Z", "60s"),
        ("date", "soon", "<invalid>"),
        ("date", 5, None),
        ("date", None, None),
        ("other", "x", None),
    ],
)
def test_a_value_fills_a_column_of_its_own_type_only(kind: str, value: Any, expected: Any) -> None:
    found = cell(kind, value, NOW)
    assert (type(found), found) == (type(expected), expected)


def test_the_name_comes_first_and_columns_follow_in_their_order() -> None:
    table = table_of_columns(
        [
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "format": "int32"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.ready", "priority": 1, "description": "Whether."},
        ]
    )
    assert [(one.name, one.type, one.format, one.priority) for one in table.columns] == [
        ("Name", "string", "name", 0),
        ("Replicas", "integer", "int32", 0),
        ("Ready", "string", "", 1),
    ]
    assert [one.description for one in table.columns[1:]] == [
        "Custom resource definition column (in JSONPath format): .spec.replicas",
        "Whether.",
    ]
    assert table.cells({"metadata": {"name": "one"}, "spec": {"replicas": 3}}, NOW) == ["one", 3, None]


@pytest.mark.parametrize("columns", [None, []])
def test_a_kind_without_columns_shows_its_age(columns: Any) -> None:
    table = table_of_columns(columns)
    assert [one.name for one in table.columns] == ["Name", "Age"]
    assert table.cells({"metadata": {"name": "one", "creationTimestamp": "2026-06-01T11:58:00Z"}}, NOW) == ["one", "2m"]
    assert table.cells({"metadata": {"name": "one"}}, NOW) == ["one", None]


def test_a_path_that_cannot_be_read_ends_the_columns() -> None:
    columns = [{"name": name, "type": "string", "jsonPath": path} for name, path in (("A", ".a"), ("B", "["), ("C", ".c"))]
    assert [one.name for one in table_of_columns(columns).columns] == ["Name", "A"]


def test_several_values_show_the_first() -> None:
    table = table_of_columns([{"name": "A", "type": "string", "jsonPath": ".a[*]"}])
    assert table.cells({"metadata": {"name": "x"}, "a": [1, 2]}, NOW) == ["x", "1"]


@given(documents(), st.sampled_from([".spec", ".status.phase", "..name", ".spec[*]", ".metadata.creationTimestamp"]))
def test_every_document_has_one_cell_for_each_column(document: dict[str, Any], path: str) -> None:
    table = table_of_columns([{"name": kind, "type": kind, "jsonPath": path} for kind in TYPES])
    assert len(table.cells(document, NOW)) == len(table.columns)


@given(st.sampled_from(TYPES), VALUES)
def test_a_cell_is_a_scalar(kind: str, value: Any) -> None:
    assert cell(kind, value, NOW) is None or isinstance(cell(kind, value, NOW), str | int | float | bool)


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


def test_the_paths_of_a_row_share_what_they_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns of `..a..a..a` took four seconds to show one object of 16 kB, and 100 ms one of 4 kB."""
    wide = {"name": "Wide", "type": "integer", "jsonPath": ".wide[*]..a"}
    table = table_of_columns([wide, wide, {"name": "Plain", "type": "integer", "jsonPath": ".plain"}])
    row = {"metadata": {"name": "x"}, "wide": [{"a": 1}] * 50, "plain": 2}
    assert table.cells(row, NOW) == ["x", 1, 1, 2]
    monkeypatch.setattr(printer_columns, "OF_A_ROW", 300)
    assert table.cells(row, NOW) == ["x", 1, None, 2]
    monkeypatch.setattr(printer_columns, "OF_A_ROW", 100)
    assert table.cells(row, NOW) == ["x", None, None, 2]
