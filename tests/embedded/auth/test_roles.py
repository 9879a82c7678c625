"""What rules of roles allow and cover, and what gathering roles gather."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.bootstrap_policy import wanted
from applecart.embedded.auth.roles import (
    MOST_SINGLE_RULES,
    Rule,
    TooManyRules,
    compacted,
    is_aggregated,
    missing,
    plan_aggregation,
    read_rule,
    rules_of,
    selects,
)
from applecart.embedded.auth.rule_index import RuleIndex
from applecart.embedded.auth.untyped import Document
from tests.embedded.auth.objects_in_memory import role, rule

WORDS = st.sampled_from(["", "*", "pods", "pods/log", "*/log", "nodes", "get", "list", "apps"])
LISTS = st.lists(WORDS, max_size=3).map(tuple)
PATHS = st.lists(st.sampled_from(["*", "/", "/a", "/a/*", "/ab"]), max_size=2).map(tuple)
RULES = st.builds(Rule, LISTS, LISTS, LISTS, LISTS) | st.builds(Rule, LISTS, paths=PATHS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["rules", "verbs", "resources", "x"]), inner),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("written", "asked", "is_allowed"),
    [
        (rule("get", "core", "pods"), ("get", "", "pods", ""), True),
        (rule("get", "core", "pods"), ("list", "", "pods", ""), False),
        (rule("get", "core", "pods"), ("get", "apps", "pods", ""), False),
        (rule("get", "core", "pods"), ("get", "", "pods", "log"), False),
        (rule("get", "core", "pods/log"), ("get", "", "pods", "log"), True),
        (rule("get", "core", "pods/log"), ("get", "", "pods", ""), False),
        (rule("get", "core", "pods/*"), ("get", "", "pods", "log"), False),
        (rule("get", "*", "*/scale"), ("get", "apps", "deployments", "scale"), True),
        (rule("get", "*", "*/scale"), ("get", "apps", "deployments", ""), False),
        (rule("get", "*", "*/scale"), ("get", "apps", "deployments", "upscale"), False),
        (rule("*", "*", "*"), ("anything", "any.group", "things", "deep"), True),
        (rule("get", "core", "po*"), ("get", "", "pods", ""), False),
    ],
)
def test_a_rule_about_resources_means_exactly_what_it_says(
    written: dict[str, object], asked: tuple[str, str, str, str], is_allowed: bool
) -> None:
    assert read_rule(written).is_about(*asked) is is_allowed


@pytest.mark.parametrize(
    ("pattern", "path", "is_allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/", False),
        ("/healthz/*", "/healthz/ping", True),
        ("/healthz/*", "/healthz", False),
        ("/health*", "/healthz/ping", True),
        ("*", "/anything", True),
        ("/a/*/c", "/a/b/c", False),
        ("/a**", "/ab", True),
    ],
)
def test_a_path_is_exact_or_a_prefix_before_a_final_star(pattern: str, path: str, is_allowed: bool) -> None:
    assert Rule(("get",), paths=(pattern,)).allows_path("get", path) is is_allowed


def test_rules_lack_exactly_what_is_not_held() -> None:
    held = (read_rule(rule("get list", "core", "pods")), read_rule(rule("*", "apps", "*")))
    wanted = [read_rule(rule("get delete", "core", "pods secrets")), read_rule(rule("patch", "apps", "deployments/scale"))]
    assert [str(one) for one in compacted(missing([RuleIndex(held)], wanted))] == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}',
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "delete"]}',
    ]


@pytest.mark.parametrize(
    ("held", "wanted", "is_covered"),
    [
        (rule("get", "core", "pods", names="a b"), rule("get", "core", "pods", names="a"), True),
        (rule("get", "core", "pods", names="a"), rule("get", "core", "pods"), False),
        (rule("get", "core", "pods"), rule("get", "core", "pods", names="a"), True),
        (rule("get", "core", "*/log"), rule("get", "core", "pods/log"), True),
        (rule("get", "core", "pods/log"), rule("get", "core", "*/log"), False),
        (rule("get", "core", "pods"), rule("*", "core", "pods"), False),
        (rule("get", paths="/a/*"), rule("get", paths="/a/b /a/*"), True),
        (rule("get", paths="/a/*"), rule("get", paths="/a"), False),
        (rule("*", "*", "*"), rule("get", paths="/a"), False),
    ],
)
def test_covering_is_judged_per_verb_resource_and_name(
    held: dict[str, object], wanted: dict[str, object], is_covered: bool
) -> None:
    assert (not missing([RuleIndex((read_rule(held),))], [read_rule(wanted)])) is is_covered


@given(st.lists(RULES, max_size=4))
def test_rules_cover_themselves(rules: list[Rule]) -> None:
    assert missing([RuleIndex(tuple(rules))], rules) == []


@given(RULES, RULES, WORDS, WORDS, WORDS)
def test_what_covering_rules_are_asked_they_allow(held: Rule, wanted: Rule, verb: str, group: str, resource: str) -> None:
    if not missing([RuleIndex((held,))], [wanted]) and wanted.is_about(verb, group, resource, ""):
        assert held.is_about(verb, group, resource, "")


def test_lists_that_multiply_beyond_reason_are_not_compared() -> None:
    many = tuple(str(number) for number in range(100))
    with pytest.raises(TooManyRules):
        missing([], [Rule(many, many, many)])
    assert len(many) ** 3 > MOST_SINGLE_RULES


@given(JSON)
def test_a_rule_of_any_shape_reads_as_a_rule(document: object) -> None:
    read_rule(document)
    if isinstance(document, dict):
        rules_of(document)


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
    assert plan_aggregation([*others, all_]) == {"all": [PODS, NODES]}


def test_a_role_never_gathers_from_itself() -> None:
    loop = labelled("loop", "to-loop", PODS, gathers="to-loop")
    assert plan_aggregation([loop]) == {"loop": []}


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
