"""Equality of answers, and the text that shows a difference."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.verdict import difference, differing_parts, is_equal

OLD = {"same": 1, "text": "old"}
NEW = {"same": 1, "text": "new"}

answers = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.lists(st.integers(0, 2), max_size=2), max_size=3)


@pytest.mark.parametrize(
    ("wanted", "got", "equal"),
    [
        (NEW, NEW, True),
        (NEW, OLD, True),  # as the other minor answers
        (OLD, NEW, True),  # the real server may be of either minor
        (NEW, {"same": 2, "text": "old"}, False),
        (NEW, {"same": 1, "text": "else"}, False),
        (NEW, {"broke": "TimeoutError"}, False),
        ({"broke": "x"}, {"broke": "x"}, False),
    ],
)
def test_an_answer_is_equal_to_the_real_one_or_to_that_of_another_minor(wanted: Any, got: Any, equal: bool) -> None:
    assert is_equal("1", wanted, got, {"1": differing_parts([NEW, OLD])}) == equal


def test_an_answer_without_a_recorded_one_must_be_equal() -> None:
    assert not is_equal("2", NEW, OLD, {"1": [NEW, OLD]})


def test_only_members_that_differ_are_recorded() -> None:
    assert differing_parts([NEW, OLD]) == [{"text": "new"}, {"text": "old"}]
    assert differing_parts([NEW, NEW]) == []
    assert differing_parts([[1], [2]]) == [[1], [2]]


@given(answers, answers)
def test_each_minor_is_equal_to_the_other_by_what_was_recorded_of_both(one: Any, other: Any) -> None:
    recorded = {"1": differing_parts([one, other])}
    assert is_equal("1", one, other, recorded)
    assert is_equal("1", other, one, recorded)


def test_a_difference_names_the_path_and_shows_both_sides() -> None:
    wanted = {"put": {"body": {"items": [{"name": "a"}, {"name": "b"}]}, "status": 200}}
    got = {"put": {"body": {"items": [{"name": "a"}, {"name": "c"}]}, "status": 200}}
    lines = difference(wanted, got).splitlines()
    assert lines[:3] == ["--- real", "+++ embedded", "@@ .put.body.items[1].name"]
    assert [line.split() for line in lines if line[0] in "-+"][2:] == [["-", '"name":', '"b"'], ["+", '"name":', '"c"']]


def test_a_long_difference_is_cut_with_a_count() -> None:
    shown = difference(list(range(1000)), list(range(5000, 6000)))
    assert shown.splitlines()[-1].startswith("... and ")


@given(answers, answers)
def test_equal_answers_have_no_changed_line_and_different_ones_have_some(one: Any, other: Any) -> None:
    changed = [line for line in difference(one, other).splitlines()[2:] if line[0] in "+-"]
    assert bool(changed) == (one != other)
