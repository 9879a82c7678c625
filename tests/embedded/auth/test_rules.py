"""What a rule allows, and when rules cover others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.rules import MOST_SINGLE_RULES, Rule, TooManyRules, compacted, missing, read_rule, rules_of
from tests.embedded.auth.objects_in_memory import rule

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
    held = [read_rule(rule("get list", "core", "pods")), read_rule(rule("*", "apps", "*"))]
    wanted = [read_rule(rule("get delete", "core", "pods secrets")), read_rule(rule("patch", "apps", "deployments/scale"))]
    assert [str(one) for one in compacted(missing(held, wanted))] == [
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
    assert (not missing([read_rule(held)], [read_rule(wanted)])) is is_covered


@given(st.lists(RULES, max_size=4))
def test_rules_cover_themselves(rules: list[Rule]) -> None:
    assert missing(rules, rules) == []


@given(RULES, RULES, WORDS, WORDS, WORDS)
def test_what_covering_rules_are_asked_they_allow(held: Rule, wanted: Rule, verb: str, group: str, resource: str) -> None:
    if not missing([held], [wanted]) and wanted.is_about(verb, group, resource, ""):
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
