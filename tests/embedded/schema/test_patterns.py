"""Regular expressions: RE2's language, and what it costs to match them."""

import pytest

from applecart.embedded.schema.budget import OF_AN_OBJECT, OverBudget, budget
from applecart.embedded.schema.patterns import STEPS_OF_A_FAILURE, Pattern, compiled, found_in, is_found


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


BACKTRACKS = [
    "^(a+)+$",
    "^([a-z]*)*b$",
    "^(a|aa)+$",
    "(x+x+)+y",
    "^(?:a?){30}a{30}$",
    "(a|a)" * 40 + "b",
    "a?" * 40 + "a" * 40 + "b",
]


@pytest.mark.parametrize("pattern", BACKTRACKS)
def test_a_text_twice_as_long_takes_twice_the_steps_whatever_the_pattern(pattern: str) -> None:
    """The last two once went to an engine that tries all ways: 4 s for 60 characters, twice that for one more."""
    steps = []
    for length in (20_000, 40_000):
        program = compiled(pattern)
        with budget(10**9) as left:
            assert is_found(program, "z" * length + "!") is False
            steps.append(10**9 - left[0])
    assert steps[1] <= 2 * steps[0]


def test_patterns_are_held_against_texts_by_an_engine_that_never_goes_back() -> None:
    for pattern in (*BACKTRACKS, "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"):
        assert type(compiled(pattern)).__module__ == "re2"


def test_what_a_pattern_costs_is_paid_before_it_is_matched() -> None:
    hard = Pattern("(a|b)*a(a|b){900}")  # no table of states is small enough
    with budget(OF_AN_OBJECT), pytest.raises(OverBudget):
        hard.matches("ab" * 700_000)
    with budget(OF_AN_OBJECT):
        assert Pattern("^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$").matches("x" * 63)


def test_patterns_that_are_too_large_are_paid_for_as_well() -> None:
    with budget(10 * STEPS_OF_A_FAILURE) as left:
        assert Pattern(r"\pL{900}").problem.startswith("error parsing regexp: pattern too large")
        assert left[0] == 9 * STEPS_OF_A_FAILURE


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
    assert Pattern(pattern).problem == problem
    assert (Pattern(pattern).matches("aa(") is False) or not problem


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [("baab", "a*", ["", "aa", ""]), ("a-bc-d", "[a-z]+", ["a", "bc", "d"]), ("äöä", "ö", ["ö"]), ("x", "(a+)+", [])],
)
def test_everything_that_matches_is_found_as_go_finds_it(text: str, pattern: str, found: list[str]) -> None:
    assert list(found_in(text, pattern)) == found


def test_looking_for_everything_in_a_long_text_is_paid_for_by_the_look() -> None:
    with budget(OF_AN_OBJECT), pytest.raises(OverBudget):
        list(found_in("a" * 100_000, "a|a.*b"))


def test_a_text_that_is_no_unicode_matches_nothing_and_breaks_nothing() -> None:
    assert Pattern(r"\d").matches("\ud800") is False
    assert Pattern("\ud800").problem
