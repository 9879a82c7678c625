"""The order and the identity of merged items."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.strategic_lists import Items, delete_items, merge_items, order_items
from applecart.embedded.refusals import Refusal

BY_NAME = Items("name", lambda original, patch: {**original, **patch})
PRIMITIVES = Items("", lambda original, patch: {})


def named(names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def names_of(items: list[dict[str, Any]]) -> str:
    return "".join(item["name"] for item in items)


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ("abc", "", "abc"),
        ("", "ba", "ba"),
        ("abc", "d", "dabc"),
        ("abc", "cd", "abcd"),
        ("abc", "da", "dabc"),
        ("abc", "ca", "bca"),
        ("abc", "adc", "adbc"),
        ("abcd", "db", "acdb"),
        ("abc", "abc", "abc"),
    ],
)
def test_items_of_the_patch_keep_its_order_and_others_stay_before_what_they_preceded(
    original: str, patch: str, expected: str
) -> None:
    assert names_of(merge_items(BY_NAME, named(original), named(patch))) == expected
    assert "".join(merge_items(PRIMITIVES, list(original), list(patch))) == expected


@pytest.mark.parametrize(
    ("original", "order", "expected"),
    [("abc", "cba", "cba"), ("abc", "ca", "bca"), ("abc", "", "abc"), ("abc", "zb", "abc"), ("abcd", "db", "acdb")],
)
def test_listed_items_come_in_the_wanted_order(original: str, order: str, expected: str) -> None:
    assert names_of(order_items(BY_NAME, named(original), named(order), named(original))) == expected
    assert "".join(order_items(PRIMITIVES, list(original), list(order), list(original))) == expected


def test_of_several_items_with_one_key_the_first_is_merged_and_all_are_deleted() -> None:
    original = [{"name": "a", "n": 1}, {"name": "b"}, {"name": "a", "n": 2}]
    merged = merge_items(BY_NAME, original, [{"name": "a", "x": 9}])
    assert merged == [{"name": "a", "n": 1, "x": 9}, {"name": "a", "n": 2}, {"name": "b"}]
    assert merge_items(BY_NAME, original, [{"name": "a", "$patch": "delete"}]) == [{"name": "b"}]


def test_an_item_that_the_patch_names_twice_is_merged_twice() -> None:
    assert merge_items(BY_NAME, [], [{"name": "a", "x": 1}, {"name": "a", "y": 2}]) == [{"name": "a", "x": 1, "y": 2}]


def test_a_replaced_list_holds_what_the_patch_brings() -> None:
    patch = [{"name": "z"}, {"$patch": "replace"}, {"name": "y"}, {"name": "a", "$patch": "delete"}]
    assert names_of(merge_items(BY_NAME, named("abc"), patch)) == "zy"


def test_true_is_not_one() -> None:
    assert merge_items(BY_NAME, [{"name": 1}], [{"name": True}]) == [{"name": True}, {"name": 1}]


def test_deletion_from_a_list_of_maps_merges() -> None:
    assert names_of(delete_items(BY_NAME, named("ab"), named("b"))) == "ab"


@pytest.mark.parametrize(
    ("items", "original", "patch"),
    [
        (BY_NAME, named("a"), [{"x": 1}]),
        (BY_NAME, [{"x": 1}], named("a")),
        (BY_NAME, [], [{"name": "a", "$patch": "merge"}]),
        (BY_NAME, [], [{"name": "a", "$patch": "frob"}]),
        (BY_NAME, [], [{"$patch": "delete"}]),
        (BY_NAME, [], [{"name": {}}]),
        (BY_NAME, named("a"), ["a"]),
        (PRIMITIVES, [], [{"a": 1}]),
        (PRIMITIVES, ["a"], [1]),
        (PRIMITIVES, [[1]], [[1]]),
        (PRIMITIVES, [None], [None]),
    ],
)
def test_items_that_cannot_be_told_apart_are_refused(items: Items, original: list[Any], patch: list[Any]) -> None:
    with pytest.raises(Refusal) as refused:
        merge_items(items, original, patch)
    assert refused.value.code == 422


@pytest.mark.parametrize(("patch", "order", "is_right"), [("ac", "abc", True), ("ca", "abc", False), ("d", "abc", False)])
def test_the_order_must_list_what_the_patch_changes(patch: str, order: str, is_right: bool) -> None:
    if is_right:
        BY_NAME.check_order(named(patch), named(order))
        return
    with pytest.raises(Refusal):
        BY_NAME.check_order(named(patch), named(order))


LETTERS = st.lists(st.sampled_from("abcdef"), unique=True)


@given(LETTERS, LETTERS)
def test_nothing_is_lost_and_both_orders_hold(original: list[str], patch: list[str]) -> None:
    merged = merge_items(PRIMITIVES, original, patch)
    assert sorted(merged) == sorted({*original, *patch})
    assert [one for one in merged if one in patch] == patch
    assert [one for one in merged if one not in patch] == [one for one in original if one not in patch]


@given(LETTERS, LETTERS)
def test_ordering_twice_is_ordering_once(original: list[str], order: list[str]) -> None:
    once = order_items(PRIMITIVES, original, order, original)
    assert sorted(once) == sorted(original)
    assert order_items(PRIMITIVES, once, order, once) == once
