"""ClusterRoles that gather others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.aggregation import aggregated_rules, is_aggregated, plan_aggregation, selects
from applecart.embedded.auth.bootstrap_policy import wanted
from applecart.embedded.auth.documents import Document
from tests.embedded.auth.objects_in_memory import role, rule
from tests.embedded.auth.test_rules import JSON

PODS, NODES = rule("get", "core", "pods"), rule("get", "core", "nodes")


def labelled(name: str, label: str, *rules: Document, gathers: str = "") -> Document:
    more: dict[str, Any] = {"metadata": {"labels": {label: "true"}}}
    if gathers:
        more["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {gathers: "true"}}]}
    return role(name, *rules, **more)


def test_a_role_gathers_the_rules_of_chosen_roles_in_the_order_of_their_names_without_repeats() -> None:
    all_ = labelled("all", "x", gathers="to-all")
    others = [
        labelled("b", "to-all", NODES, PODS),
        labelled("a", "to-all", PODS),
        labelled("c", "to-none", rule("*", "*", "*")),
    ]
    assert aggregated_rules(all_, [*others, all_]) == [PODS, NODES]


def test_a_role_never_gathers_from_itself() -> None:
    loop = labelled("loop", "to-loop", PODS, gathers="to-loop")
    assert aggregated_rules(loop, [loop]) == []


def test_rules_pass_through_a_chain_of_gathering_roles() -> None:
    roles = [
        labelled("view", "to-edit", gathers="to-view"),
        labelled("edit", "to-admin", gathers="to-edit"),
        labelled("admin", "none", gathers="to-admin"),
        labelled("pods", "to-view", PODS),
    ]
    assert plan_aggregation(roles) == {"admin": [PODS], "edit": [PODS], "view": [PODS]}


def test_a_settled_set_of_roles_needs_no_write() -> None:
    roles = [labelled("view", "x", PODS, gathers="to-view"), labelled("pods", "to-view", PODS)]
    assert plan_aggregation(roles) == {}


def test_roles_that_gather_from_each_other_come_to_an_end() -> None:
    roles = [
        labelled("a", "to-b", PODS, gathers="to-a"),
        labelled("b", "to-a", NODES, gathers="to-b"),
        labelled("c", "to-a", PODS),
    ]
    assert set(plan_aggregation(roles)) <= {"a", "b"}


def test_the_default_roles_gather_as_on_every_cluster() -> None:
    roles = [one for one in wanted() if one["kind"] == "ClusterRole"]
    plan = plan_aggregation(roles)
    assert set(plan) == {"admin", "edit", "view"}
    assert len(plan["admin"]) > len(plan["edit"]) > len(plan["view"])
    assert all(one in plan["admin"] for one in plan["edit"])


@pytest.mark.parametrize(
    ("selector", "is_chosen"),
    [
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, True),
        ({"matchExpressions": [{"key": "b", "operator": "In", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Odd"}]}, False),
    ],
)
def test_selectors_choose_by_labels(selector: Document, is_chosen: bool) -> None:
    assert selects(selector, {"a": "1"}) is is_chosen


@given(st.lists(JSON, max_size=4), JSON)
def test_roles_of_any_shape_can_be_planned(contents: list[Any], selector: Any) -> None:
    roles = [
        {"metadata": {"name": str(number)}, "rules": content, "aggregationRule": {"clusterRoleSelectors": selector}}
        for number, content in enumerate(contents)
    ]
    plan_aggregation(roles)
    assert all(isinstance(is_aggregated(one), bool) for one in roles)
