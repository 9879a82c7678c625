"""Strategic merge patch, and its lists."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.strategic import Items, delete_items, merge_items, order_items, strategic_merge
from applecart.embedded.patching.values import copied, same
from applecart.embedded.refusals import Refusal
from applecart.embedded.shape import UNTYPED
from applecart.embedded.structure.types import shape_of
from tests.embedded.patching.json_values import JSON, OBJECTS, SMALL_OBJECTS, nested, refused_with
from tests.embedded.patching.shapes import CONFIG_MAP, DEPLOYMENT, NODE, POD, config_map, pod
from tests.embedded.patching.test_merge import scribble

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


@pytest.mark.parametrize(("place", "is_right"), [(0, True), (1, False)], ids=["before", "behind"])
def test_a_directive_may_not_stand_behind_the_last_item_of_the_order(place: int, is_right: bool) -> None:
    """A real server refuses it; a random patch of a Node's conditions found it."""
    patch: list[Any] = [{"name": "a", "$patch": "delete"}, *named("d")]
    patch.insert(1 + place, {"$patch": "replace"})
    with nullcontext() if is_right else pytest.raises(Refusal, match="doesn't match"):
        BY_NAME.check_order(patch, named("d"))


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


STRATEGY = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [
        ({"data": {"a": "1", "b": "2"}}, {"data": {"a": "9", "b": None, "c": "3"}}, {"data": {"a": "9", "c": "3"}}),
        ({"data": {"a": "1"}}, {"data": None}, {}),
        ({"data": {"a": "1"}}, {}, {"data": {"a": "1"}}),
        ({"data": {"a": "1"}}, {"data": {"$patch": "replace", "b": "2"}}, {"data": {"b": "2"}}),
        ({"data": {"a": "1"}}, {"data": {"$patch": "delete"}}, {"data": {}}),
        ({"data": {"a": "1"}}, {"$patch": "replace", "kind": "x"}, {"kind": "x"}),
        ({}, {"data": {"$patch": "replace", "b": "2"}}, {}),
        ({}, {"data": {"a": None, "b": "2"}}, {"data": {"b": "2"}}),
        ({"data": "wrong"}, {"data": {"b": "2", "c": None}}, {"data": {"b": "2"}}),
    ],
)
def test_maps_are_merged_by_name(original: Any, patch: Any, expected: Any) -> None:
    assert strategic_merge(original, patch, CONFIG_MAP) == expected


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"$retainKeys": ["type"], "type": "Recreate"}, {"type": "Recreate"}),
        ({"$retainKeys": ["type"]}, {"type": "RollingUpdate"}),
        ({"$retainKeys": []}, {}),
        ({"$retainKeys": ["type"], "rollingUpdate": None}, {"type": "RollingUpdate"}),
    ],
)
def test_a_union_keeps_only_the_members_it_lists(patch: Any, expected: Any) -> None:
    assert strategic_merge(STRATEGY, {"spec": {"strategy": patch}}, DEPLOYMENT) == {"spec": {"strategy": expected}}


@pytest.mark.parametrize("names", [["rollingUpdate"], "type", None, [{}], [["type"]]])
def test_a_union_that_does_not_list_what_it_sets_is_refused(names: Any) -> None:
    with pytest.raises(Refusal) as refused:
        strategic_merge(STRATEGY, {"spec": {"strategy": {"$retainKeys": names, "type": "Recreate"}}}, DEPLOYMENT)
    assert (refused.value.code, refused.value.message) == (400, "invalid patch format of retainKeys")


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"$deleteFromPrimitiveList/finalizers": ["b", "none"]}, ["a", "c"]),
        ({"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}, ["d", "a", "c"]),
        ({"$deleteFromPrimitiveList/finalizers": []}, ["a", "b", "c"]),
        ({"$deleteFromPrimitiveList/finalizers": None}, None),
        ({"$deleteFromPrimitiveList/finalizers": {"b": 1}}, ["a", "b", "c"]),
        ({"$deleteFromPrimitiveList/labels": ["b"]}, ["a", "b", "c"]),
        ({"$setElementOrder/finalizers": ["c", "a"]}, ["b", "c", "a"]),
        ({"$setElementOrder/finalizers": ["c", "d"], "finalizers": ["d"]}, ["a", "b", "c", "d"]),
        ({"finalizers": None, "$setElementOrder/labels": []}, None),
    ],
)
def test_directives_act_on_sets(patch: Any, expected: Any) -> None:
    original = {"metadata": {"finalizers": ["a", "b", "c"]}}
    assert strategic_merge(original, {"metadata": patch}, CONFIG_MAP)["metadata"].get("finalizers") == expected


@pytest.mark.parametrize(
    ("patch", "code", "text"),
    [
        ({"metadata": {"$setElementOrder": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        ({"data": {"$patch": "merge", "a": "1"}}, 422, "unknown patch type: merge in map: map[$patch:merge a:1]"),
        ({"data": {"$patch": 5}}, 422, "unknown patch type: number"),
        ({"metadata": {"$setElementOrder/finalizers": {}}}, 422, "expected a []interface {}, but received a object"),
        ({"metadata": {"ownerReferences": [{"name": "x"}]}}, 422, "map: map[name:x] does not contain declared merge key: uid"),
        ({"metadata": {"ownerReferences": ["x"]}}, 422, "list element types are not identical"),
        ({"metadata": {"finalizers": [None]}}, 422, "list element types are not identical"),
    ],
)
def test_a_patch_that_makes_no_sense_is_refused(patch: Any, code: int, text: str) -> None:
    original = config_map({"a": "1"}, finalizers=["a"], ownerReferences=[{"uid": "u"}])
    with pytest.raises(Refusal) as refused:
        strategic_merge(original, patch, CONFIG_MAP)
    assert (refused.value.code, refused.value.message) == (code, text)


def test_a_status_patch_merges_conditions_and_replaces_container_statuses() -> None:
    original = pod({"name": "main"})
    original["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}],
        "containerStatuses": [{"name": "a"}, {"name": "b"}],
    }
    patch = {
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "b", "ready": True}],
        }
    }
    result = strategic_merge(original, patch, POD)
    assert result["status"] == {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}],
        "containerStatuses": [{"name": "b", "ready": True}],
    }
    assert result["spec"] == original["spec"]


def test_the_selector_of_a_disruption_budget_is_replaced_whole() -> None:
    """A label that was taken out of the manifest stayed in the selector, and the budget guarded no Pod any more."""
    budget = {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "old", "tier": "ci"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"app": "new"}}}}
    merged = strategic_merge(budget, patch, shape_of("policy/v1", "PodDisruptionBudget"))
    assert merged == {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "new"}}}}


def test_taints_are_replaced_whole() -> None:
    original = {"spec": {"taints": [{"key": "a"}, {"key": "b"}]}}
    assert strategic_merge(original, {"spec": {"taints": [{"key": "c"}]}}, NODE) == {"spec": {"taints": [{"key": "c"}]}}


def test_content_of_unknown_shape_is_merged_by_name_and_its_lists_are_replaced() -> None:
    assert strategic_merge({"x": {"y": [1], "z": 1}}, {"x": {"y": [2], "z": None}}, UNTYPED) == {"x": {"y": [2]}}


@given(SMALL_OBJECTS, SMALL_OBJECTS)
def test_the_patch_neither_changes_nor_is_shared_with_the_result(target: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copied(patch)
    scribble(strategic_merge(target, patch, UNTYPED))
    assert patch == before


@given(SMALL_OBJECTS)
def test_an_empty_patch_changes_nothing(target: dict[str, Any]) -> None:
    assert same(strategic_merge(target, {}, POD), target)


@given(OBJECTS, OBJECTS)
def test_any_patch_of_any_document_is_merged_or_refused(document: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copied(document), copied(patch)
    for shape in (POD, CONFIG_MAP, UNTYPED):
        assert refused_with(partial(strategic_merge, document, patch, shape)) in (0, 400, 422)
    assert (document, patch) == before


@given(JSON, JSON, JSON)
def test_any_patch_of_lists_is_merged_or_refused(finalizers: Any, changes: Any, order: Any) -> None:
    for name in ("finalizers", "ownerReferences"):
        original = {"metadata": {name: finalizers}}
        patch = {"metadata": {name: changes, f"$setElementOrder/{name}": order, f"$deleteFromPrimitiveList/{name}": order}}
        assert refused_with(partial(strategic_merge, original, patch, POD)) in (0, 400, 422)


def test_a_patch_that_is_nested_too_deeply_is_refused() -> None:
    assert refused_with(lambda: strategic_merge({"a": 1}, nested(100_000), POD)) == 400
