"""What a compiled path selects from a document."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables.json_path import MAX_VALUES, JsonPath
from tests.embedded.tables.documents import VALUES

DOCUMENT: dict[str, Any] = {
    "metadata": {"labels": {"a.b/c": "dotted"}},
    "spec": {
        "text": "x",
        "nothing": None,
        "zero": 0,
        "list": [
            {"type": "First", "number": 1, "flag": True},
            {"type": "Ready", "number": 2, "status": "True"},
            {"type": "Last", "number": 2.5},
        ],
        "map": {"one": {"number": 7}, "two": {"number": 8}},
    },
}
ROWS = DOCUMENT["spec"]["list"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.text", ["x"]),
        ("$.spec.text", ["x"]),
        (".spec.nothing", [None]),
        (".spec.zero", [0]),
        (".spec.missing", []),
        (".spec.missing.deeper", []),
        (".spec.nothing.deeper", []),
        (".spec.text.deeper", []),
        (".", []),
        (".spec.list[0].type", ["First"]),
        (".spec.list[-1].type", ["Last"]),
        (".spec.list[-3].type", ["First"]),
        (".spec.list[3].type", []),
        (".spec.list[-4].type", []),
        (".spec.list[*].type", ["First", "Ready", "Last"]),
        (".spec.list[:].type", ["First", "Ready", "Last"]),
        (".spec.list[1:].type", ["Ready", "Last"]),
        (".spec.list[:2].type", ["First", "Ready"]),
        (".spec.list[:-1].type", ["First", "Ready"]),
        (".spec.list[0:3:2].type", ["First", "Last"]),
        (".spec.list[1:1].type", []),
        (".spec.list[2:1].type", []),
        (".spec.list[0:9].type", []),
        (".spec.list[0:2:0].type", []),
        (".spec.list[0,2].type", ["First", "Last"]),
        (".spec['text','zero']", ["x", 0]),
        (".spec.text[0]", []),
        (".spec.map[0]", []),
        (".spec.nothing[0]", []),
        ('.spec.list[?(@.type=="Ready")].status', ["True"]),
        (".spec.list[?(@.type=='Ready')].number", [2]),
        ('.spec.list[?(@.type!="Ready")].type', ["First", "Last"]),
        (".spec.list[?(@.flag==true)].type", ["First"]),
        (".spec.list[?(@.flag)].type", ["First"]),
        (".spec.list[?(@.status=='True')].type", ["Ready"]),
        (".spec.map[?(@.number)]", []),
        (".metadata.labels.a\\.b/c", ["dotted"]),
        (".metadata.labels['a\\.b/c']", ["dotted"]),
        (".metadata.labels['a.b/c']", []),
        (".spec.map.*.number", [7, 8]),
        (".spec.map..number", [7, 8]),
        ("..flag", [True]),
        ('.spec.text "fixed"', ["fixed"]),
        (".spec.text 5", [5]),
        (".spec.text range", []),
    ],
)
def test_a_path_selects(path: str, expected: list[Any]) -> None:
    assert JsonPath(path).values(DOCUMENT) == expected


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("==2", [2]),
        ("!=2", [1]),
        ("<2", [1]),
        ("<=2", [1, 2]),
        (">1", [2]),
        (">=1", [1, 2]),
        ("==2.0", []),
        ("=='2'", []),
        ("=2", []),
    ],
)
def test_a_filter_compares_whole_numbers_with_whole_numbers_only(comparison: str, expected: list[int]) -> None:
    document = {"list": [{"n": 1}, {"n": 2}]}
    assert JsonPath(f".list[?(@.n{comparison})].n").values(document) == expected


def test_one_comparison_of_different_sorts_leaves_the_whole_column_empty() -> None:
    assert JsonPath(".spec.list[?(@.number>1)].type").values(DOCUMENT) == []


def test_a_filter_with_several_values_on_one_side_selects_nothing() -> None:
    assert JsonPath(".list[?(@[*]==1)]").values({"list": [[1, 2]]}) == []


def test_a_slice_of_several_lists_is_taken_from_each() -> None:
    assert JsonPath(".a[*][0]").values({"a": [[1, 2], None, [3]]}) == [1, 3]


def test_a_document_nested_deeper_than_python_calls_is_walked() -> None:
    deep: dict[str, Any] = {"leaf": 1}
    for _ in range(5_000):
        deep = {"x": deep}
    assert JsonPath("..leaf").values(deep) == [1]


def test_a_path_that_multiplies_values_gives_up_instead_of_stopping_the_server() -> None:
    wide = {str(number): {str(inner): {"x": 1} for inner in range(300)} for number in range(300)}
    assert len(JsonPath("..x").values(wide)) == 90_000 < MAX_VALUES
    assert JsonPath("...*...*..x").values(wide) == []


PIECES = [
    ".",
    "..",
    "a",
    "[0]",
    "[*]",
    "[-1]",
    "[",
    "]",
    "?(",
    "@",
    ")",
    "'",
    '"',
    "\\",
    "==",
    "<",
    " ",
    "5",
    "*",
    ",",
    ":",
    "{",
    "}",
    "$",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), VALUES)
def test_a_path_is_refused_or_gives_values_for_any_document(path: str, document: Any) -> None:
    try:
        compiled = JsonPath(path)
    except ValueError:
        return
    assert isinstance(compiled.values(document), list)


@given(st.text(max_size=30), VALUES)
def test_any_text_is_refused_or_gives_values(path: str, document: Any) -> None:
    try:
        compiled = JsonPath(path)
    except ValueError:
        return
    assert isinstance(compiled.values(document), list)


@given(st.lists(st.text("abcxyz", min_size=1, max_size=3), min_size=1, max_size=4), VALUES)
def test_a_chain_of_names_selects_what_plain_lookups_find(names: list[str], value: Any) -> None:
    document = value
    for name in reversed(names):
        document = {name: document, "other": 1}
    assert JsonPath("".join(f".{name}" for name in names)).values(document) == [value]
    assert JsonPath("".join(f"['{name}']" for name in names)).values(document) == [value]
