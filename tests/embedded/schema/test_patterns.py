"""Regular expressions: RE2's language and RE2's patience."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.schema.patterns import MAX_FAST_LENGTH, Pattern, problem_of, searchable


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("^[a-z]+$", "abc", True),
        ("^[a-z]+$", "abc\n", False),
        ("b", "abc", True),
        (r"^\d+$", "12", True),
        (r"^\d+$", "١٢", False),  # other digits are no digits for RE2
        (r"^\pL+$", "äö", True),
        ("^[[:alpha:]]+$", "ab", True),
        ("(?i)^ABC$", "abc", True),
        ("(?m)^b$", "a\nb\nc", True),
        (r"\Aab\z", "ab", True),
        (r"^a\.b$", "a.b", True),
        (r"^a\.b$", "axb", False),
        ("^(a|b){2,3}$", "aba", True),
        ("^a{1,2}$", "aaa", False),
        (r"cost\$", "cost$", True),
    ],
)
def test_a_pattern_means_what_it_means_to_the_real_server(pattern: str, text: str, fits: bool) -> None:
    assert Pattern(pattern).matches(text) is fits


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^([a-z]*)*b$", "^(a|aa)+$", "(x+x+)+y", "^(?:a?){30}a{30}$"])
def test_a_pattern_that_backtracks_for_ever_elsewhere_is_answered_at_once(pattern: str) -> None:
    assert Pattern(pattern).matches("a" * 10_000 + "!") is False


def test_long_texts_do_not_meet_the_engine_that_backtracks() -> None:
    assert Pattern("a*a*b").matches("a" * (MAX_FAST_LENGTH * 100)) is False


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("a(", "error parsing regexp: missing closing ): `a(`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("(?=a)", "error parsing regexp: invalid perl operator: `(?=`"),
        (r"(a)\1", r"error parsing regexp: invalid escape sequence: `\1`"),
        ("ok", ""),
    ],
)
def test_what_re2_does_not_know_is_a_problem(pattern: str, problem: str) -> None:
    assert problem_of(pattern) == problem
    assert (Pattern(pattern).matches("aa(") is False) or not problem


@pytest.mark.parametrize("pattern", ["(a+)+", "a*b*c*", "a(", "(?=a)"])
def test_finding_refuses_what_could_take_for_ever(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"regexp|without limit"):
        searchable(pattern)


def test_a_text_that_is_no_unicode_matches_nothing_and_breaks_nothing() -> None:
    assert Pattern(r"\d").matches("\ud800") is False
    assert problem_of("\ud800")


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["a", "b", "[ab]", "[^a]", "(a)", "(a|b)", "(?:b)", ".", r"\.", "*", "+", "?", "{2}", "{1,}", "|", "-"]
        ),
        max_size=7,
    ),
    st.booleans(),
    st.booleans(),
    st.text("ab.\n-", max_size=8),
)
def test_both_engines_agree_where_both_are_used(parts: list[str], starts: bool, ends: bool, text: str) -> None:
    pattern = f"{'^' if starts else ''}{''.join(parts)}{'$' if ends else ''}"
    if problem_of(pattern):
        return
    padded = Pattern(f"(?:{pattern})|^{'z' * 3}$")  # the flag-free group keeps the meaning
    always_re2 = Pattern(f"(?s-s:{pattern})")
    assert always_re2._fast is None
    assert Pattern(pattern).matches(text) == always_re2.matches(text) == (padded.matches(text) or text == "zzz")


def test_common_patterns_use_the_quick_engine() -> None:
    for pattern in ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^v[0-9]+$", "^(Always|Never)$"):
        assert isinstance(Pattern(pattern)._fast, re.Pattern)
