"""Selectors, affinity terms and tolerations against one node."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Taint
from applecart.api.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration
from applecart.embedded.controllers.scheduler.matching import (
    has_labels,
    is_tolerated,
    matches_any,
    matches_term,
    named_nodes,
)
from tests.embedded.controllers.scheduler.objects import needs, term

LABELS = {"fleet": "ci", "generation": "4", "empty": ""}


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (needs("fleet", "In", "ci", "other"), True),
        (needs("fleet", "In", "other"), False),
        (needs("gone", "In", "ci"), False),
        (needs("empty", "In", ""), True),
        (needs("fleet", "NotIn", "other"), True),
        (needs("fleet", "NotIn", "ci"), False),
        (needs("gone", "NotIn", "ci"), True),
        (needs("fleet", "NotIn"), False),
        (needs("fleet", "Exists"), True),
        (needs("empty", "Exists"), True),
        (needs("gone", "Exists"), False),
        (needs("gone", "DoesNotExist"), True),
        (needs("fleet", "DoesNotExist"), False),
        (needs("generation", "Gt", "3"), True),
        (needs("generation", "Gt", "4"), False),
        (needs("generation", "Lt", "5"), True),
        (needs("generation", "Lt", "4"), False),
        (needs("fleet", "Gt", "3"), False),
        (needs("gone", "Lt", "3"), False),
        (needs("generation", "Gt", "x"), False),
        (needs("generation", "Gt"), False),
        (needs("generation", "Gt", "1", "2"), False),
        (needs("generation", "Lt", "9" * 5000), False),
        (needs("generation", "Near", "4"), False),
    ],
)
def test_a_requirement(requirement: NodeSelectorRequirement, holds: bool) -> None:
    assert matches_term(term(requirement), "mac-1", LABELS) is holds


@pytest.mark.parametrize(
    ("requirement", "holds"),
    [
        (needs("metadata.name", "In", "mac-1"), True),
        (needs("metadata.name", "In", "mac-2"), False),
        (needs("metadata.name", "NotIn", "mac-2"), True),
        (needs("metadata.name", "NotIn", "mac-1"), False),
        (needs("metadata.name", "In", "mac-1", "mac-2"), False),
        (needs("metadata.name", "Exists"), False),
        (needs("spec.other", "In", "mac-1"), False),
    ],
)
def test_a_requirement_on_a_field(requirement: NodeSelectorRequirement, holds: bool) -> None:
    assert matches_term(term(fields=(requirement,)), "mac-1", LABELS) is holds


def test_all_requirements_of_a_term_must_hold_and_one_term_is_enough() -> None:
    both = term(needs("fleet", "In", "ci"), needs("generation", "Gt", "9"))
    assert not matches_term(both, "mac-1", LABELS)
    either = NodeSelector(node_selector_terms=(both, term(needs("fleet", "Exists"))))
    assert matches_any(either, "mac-1", LABELS)


def test_a_term_without_requirements_and_a_selector_without_terms_match_nothing() -> None:
    assert not matches_term(NodeSelectorTerm(), "mac-1", LABELS)
    assert not matches_any(NodeSelector(node_selector_terms=()), "mac-1", LABELS)


def test_labels_must_all_be_there_with_their_values() -> None:
    assert has_labels(LABELS, {})
    assert has_labels(LABELS, {"fleet": "ci", "empty": ""})
    assert not has_labels(LABELS, {"fleet": "ci", "gone": ""})


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        ((term(needs("fleet", "Exists")),), None),
        ((term(fields=(needs("metadata.name", "In", "a"),)),), {"a"}),
        ((term(fields=(needs("metadata.name", "In", "a"),)), term(fields=(needs("metadata.name", "In", "b"),))), {"a", "b"}),
        ((term(fields=(needs("metadata.name", "In", "a"), needs("metadata.name", "In", "b"))),), set()),
        ((term(fields=(needs("metadata.name", "In", "a"),)), term(needs("fleet", "Exists"))), None),
        ((term(fields=(needs("metadata.name", "NotIn", "a"),)),), None),
        ((), None),
    ],
)
def test_which_nodes_are_meant_by_name(terms: tuple[NodeSelectorTerm, ...], names: set[str] | None) -> None:
    assert named_nodes(NodeSelector(node_selector_terms=terms)) == (None if names is None else frozenset(names))


MACOS = Taint(key="tuist.dev/macos", value="true", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        (Toleration(key="tuist.dev/macos", operator="Exists", effect="NoSchedule"), True),
        (Toleration(key="tuist.dev/macos", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(key="tuist.dev/macos", value="true"), True),
        (Toleration(key="tuist.dev/macos", operator="Equal", value="true"), True),
        (Toleration(key="tuist.dev/macos", operator="Equal", value="false"), False),
        (Toleration(key="tuist.dev/macos", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="tuist.dev/macos", operator="Gt", value="1"), False),
    ],
)
def test_a_toleration(toleration: Toleration, tolerates: bool) -> None:
    assert is_tolerated(MACOS, [toleration]) is tolerates


texts = st.text(max_size=6)
operators = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "?"])
requirements = st.builds(NodeSelectorRequirement, key=texts, operator=operators, values=st.lists(texts, max_size=3).map(tuple))


@given(st.lists(requirements, max_size=3), st.lists(requirements, max_size=2), st.dictionaries(texts, texts, max_size=4))
def test_no_requirement_stops_us(
    expressions: list[NodeSelectorRequirement], fields: list[NodeSelectorRequirement], labels: dict[str, str]
) -> None:
    hostile = NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    assert matches_term(hostile, "mac-1", labels) in (True, False)
    named_nodes(NodeSelector(node_selector_terms=(hostile,)))
