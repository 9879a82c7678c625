"""How a path is read, what is said about one that cannot be, and what it selects from a document."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.tables.json_path import MAX_LENGTH, MAX_VALUES, JsonPath, LiteralInt
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


LETTERS = {"a": {"b": 1}, "a.b": 2, "*": 3, "n": 5, "x": {"a": {"b": 4}}}
ITEMS = [{"a": 5}, {"a": -1.5}, {"a": "(]"}, {"a": True}, {"b": 0}]


@pytest.mark.parametrize(
    ("path", "document", "expected"),
    [
        ("", LETTERS, [LETTERS]),
        (".a.b", LETTERS, [1]),
        ("$.a", LETTERS, [{"b": 1}]),
        (".a\\.b", LETTERS, [2]),
        (".n\\", LETTERS, [5]),
        ("['a.b']", LETTERS, [1]),
        ("['a\\.b']", LETTERS, [2]),
        (".*", LETTERS["a"], [1]),
        (".\\*", LETTERS, [3]),
        ("..b", LETTERS, [1, 4]),
        ("..[0]", [[1], [2]], [[1], 1, 2]),
        ("[-1]", [1, 2, 3], [3]),
        ("[*]", [1, 2, 3], [1, 2, 3]),
        ("[]", [1, 2, 3], [1]),
        ("[1:]", [1, 2, 3], [2, 3]),
        ("[::2]", [1, 2, 3], [1, 3]),
        ("[0, -1]", [1, 2, 3], [1, 3]),
        ("[?(@.b)]", ITEMS, [{"b": 0}]),
        ("[?(@.a==5)]", ITEMS[:1], [{"a": 5}]),
        ("[?(@.a!='x')]", ITEMS[2:3], [{"a": "(]"}]),
        ("[?(@.a=='(]')]", ITEMS[2:3], [{"a": "(]"}]),
        ("[?(@.a==-1.5)]", ITEMS[1:2], [{"a": -1.5}]),
        ("[?(@.a==true)]", ITEMS[3:], [{"a": True}]),
        (r"'it\'s'", LETTERS, ["it's"]),
        (r'"\t\x41\u00e9\U0001F34E\101"', LETTERS, ["\tA\u00e9\U0001f34eA"]),
        (".a range", LETTERS, []),
        (".a}.b", LETTERS, [{"b": 1}]),
        ("+7", LETTERS, [7]),
        ("9223372036854775808", LETTERS, [9223372036854775808.0]),
    ],
)
def test_a_path_is_read_as_it_is_written(path: str, document: Any, expected: list[Any]) -> None:
    assert JsonPath(path).values(document) == expected


def test_a_whole_number_of_a_path_is_told_from_one_of_a_document_and_a_larger_one_is_a_float() -> None:
    for path, kind in (("+7", LiteralInt), ("7.0", float), ("9223372036854775808", float), ("true", bool)):
        assert [type(value) for value in JsonPath(path).values(DOCUMENT)] == [kind]


def test_only_a_chain_of_names_costs_the_same_for_any_document() -> None:
    for path, searches in (
        (".a.b", False),
        ("['a.b']", False),
        ("$.a\\.b", False),
        (".a[0]", True),
        (".*", True),
        ("..a", True),
    ):
        assert JsonPath(path).searches is searches


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("[", "unterminated array"),
        ("[a]", "invalid array index a"),
        ("[-]", "array index - is not a number"),
        ("[99999999999999999999]", "array index 99999999999999999999 is not a number"),
        (f"[{'9' * 5000}]", "is not a number"),
        ("[?(@.a", "unterminated filter"),
        ("[?(@.a)", "unclosed array expect ]"),
        ("[?(@.a=='x)]", "unterminated filter"),
        ("....a", "invalid multiple recursive descent"),
        ('"x', "unterminated quoted string"),
        (r'"\q"', "error invalid syntax"),
        (r'"\'"', "error invalid syntax"),
        (r'"\ud800"', "error invalid syntax"),
        (r'"\U00110000"', "error invalid syntax"),
        ("1.2.3", "cannot parse number 1.2.3"),
        ("+", "cannot parse number +"),
        ("#", "unrecognized character in action: U+0023 '#'"),
        (".a\n", "unclosed action"),
        ("[?(@.a==1 && @.b==2)]", "unrecognized character in action: U+0026"),
        ("." * (MAX_LENGTH + 1), f"a path may have {MAX_LENGTH} characters"),
        ("[?(" * 60 + ")]" * 60, "unterminated filter"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused_with_a_sentence(path: str, sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        JsonPath(path)
    assert sentence in str(caught.value)
