"""Names, keys and values: what passes, and what is said of the rest."""

import re
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applecart.embedded.kinds import names

Check = Callable[[str], list[str]]
KEY = re.compile(r"[a-z0-9]{1,5}(\.[a-z0-9]{1,5}){0,3}/[A-Za-z0-9]([-_.A-Za-z0-9]{0,5}[A-Za-z0-9])?")
CHECKS = (
    names.label_problems,
    names.subdomain_problems,
    names.label_1035_problems,
    names.path_segment_problems,
    names.qualified_name_problems,
    names.annotation_key_problems,
    names.label_value_problems,
    names.config_key_problems,
    names.env_name_problems,
    names.port_name_problems,
    names.header_name_problems,
)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (names.label_problems, ["a", "a-1", "1", "a" * 63], ["", "A", "a.b", "-a", "a-", "a\n", "a" * 64, "\u00e9"]),
        (names.subdomain_problems, ["a", "a.b-c.1", "a" * 253], ["", "A.b", "a..b", ".a", "a.", "a\n", "a" * 254]),
        (names.label_1035_problems, ["a", "a-1"], ["1a", "A", "", "a-"]),
        (names.path_segment_problems, ["A:b", "...", "\u00e9 ", ""], [".", "..", "a/b", "a%b"]),
        (names.qualified_name_problems, ["a", "A_b.c-D", "a.b/C", "x" * 63], ["", "/a", "a/", "A_/b", "a/b/c", "a b", "-a"]),
        (names.annotation_key_problems, ["A.B/C_d"], ["a b", "a/", ""]),
        (names.label_value_problems, ["", "A", "a_b.C-1"], ["-", "a b", "a" * 64, "a\n"]),
        (names.config_key_problems, ["a", "A_b.c", "-"], ["", ".", "..", "..a", "a/b", "a" * 254]),
        (names.env_name_problems, ["A", "1 a.b-$", "~"], ["", "a=b", "\u00e9", "a\t"]),
        (names.port_name_problems, ["a", "a-1"], ["", "1", "A", "-a", "a-", "a--b", "a" * 16]),
        (names.header_name_problems, ["X-A"], ["", "a b", "a_b"]),
    ],
)
def test_good_texts_pass_and_bad_ones_get_a_sentence(
    check: Callable[[str], list[str]], good: list[str], bad: list[str]
) -> None:
    assert {text: check(text) for text in good} == {text: [] for text in good}
    assert [text for text in bad if not check(text)] == []


def test_the_sentence_names_the_expression_and_examples() -> None:
    assert names.label_problems("A") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
        "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]


def test_a_long_bad_name_has_two_problems_in_order() -> None:
    long = names.subdomain_problems("A" * 254)
    assert long[0] == "must be no more than 253 characters"
    assert len(long) == 2


def test_dots_in_a_label_are_called_dots() -> None:
    assert names.label_problems("a.b") == ["must not contain dots"]


def test_a_prefix_may_end_in_a_dash_because_more_follows() -> None:
    for check in (names.label_problems, names.subdomain_problems):
        assert check("runner-", is_prefix=True) == []
        assert check("runner-") != []
    assert names.label_problems("-", is_prefix=True) != []


def test_a_caller_may_change_the_list_it_got() -> None:
    names.qualified_name_problems("a b").append("mine")
    assert len(names.qualified_name_problems("a b")) == 1


@given(st.text())
@example("\ud800")
@example("a" * 10_000 + "!")
def test_any_text_is_judged(text: str) -> None:
    for check in CHECKS:
        assert all(isinstance(problem, str) and problem for problem in check(text))
    for prefix_check in (names.label_problems, names.subdomain_problems, names.path_segment_problems):
        prefix_check(text, is_prefix=True)


@given(st.from_regex(KEY, fullmatch=True))
def test_what_is_a_label_key_is_an_annotation_key(key: str) -> None:
    assert names.qualified_name_problems(key) == []
    assert names.annotation_key_problems(key) == []
