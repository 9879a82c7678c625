"""The rules of one role, asked by the words they say."""

from hypothesis import example, given
from hypothesis import strategies as st

from applecart.embedded.auth.roles import Rule, missing
from applecart.embedded.auth.rule_index import RuleIndex

VERBS, GROUPS, NAMES = ("get", "list", "*"), ("", "apps", "*"), ("a", "b", "")
RESOURCES = ("pods", "pods/log", "*/log", "nodes", "*", "*/*")
PATHS = ("/metrics", "/logs/*", "*")


def some(words: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(words), max_size=3).map(tuple)


RULES = st.lists(st.builds(Rule, some(VERBS), some(GROUPS), some(RESOURCES), some(NAMES), some(PATHS)), max_size=6).map(tuple)


@given(
    RULES,
    st.sampled_from(("get", "watch", "*")),
    st.sampled_from(("", "batch", "*")),
    st.sampled_from(("pods", "nodes", "*")),
    st.sampled_from(("", "log", "*")),
)
@example((Rule(("get",), ("",), ("pods",)), Rule(("*",), ("*",), ("*",), ("a",))), "get", "", "pods", "")
def test_an_index_answers_what_each_of_its_rules_does(
    rules: tuple[Rule, ...], verb: str, group: str, resource: str, subresource: str
) -> None:
    index = RuleIndex(rules)
    found = index.about(verb, group, resource, subresource)
    chosen = [place for place in range(len(rules)) if found >> place & 1]
    assert chosen == [place for place, rule in enumerate(rules) if rule.is_about(verb, group, resource, subresource)]
    assert bool(found & index.unnamed) is any(not rules[place].names for place in chosen)
    for name in NAMES:
        assert bool(found & index.names.get(name, 0)) is any(name in rules[place].names for place in chosen)


@given(RULES, st.sampled_from(("get", "put")), st.sampled_from(("/metrics", "/logs/a", "/")))
def test_a_path_is_allowed_when_one_of_the_rules_allows_it(rules: tuple[Rule, ...], verb: str, path: str) -> None:
    assert RuleIndex(rules).allows_path(verb, path) is any(rule.allows_path(verb, path) for rule in rules)


@given(RULES, st.builds(Rule, some(VERBS), some(GROUPS), some(RESOURCES), some(NAMES), some(PATHS)))
@example((Rule(("get",), ("",), ("*/log",)),), Rule(("get",), ("",), ("pods/log", "pods/", "pods")))
def test_what_an_index_lacks_all_of_its_rules_lack(rules: tuple[Rule, ...], wanted: Rule) -> None:
    assert missing([RuleIndex(rules)], [wanted]) == missing([RuleIndex((rule,)) for rule in rules], [wanted])
