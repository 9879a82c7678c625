"""One table per predicate, and the order in which they speak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod
from applecart.api.scheduling import (
    Affinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpread,
)
from applecart.embedded.controllers.scheduler import fit as predicates
from applecart.embedded.controllers.scheduler.fit import (
    Shortage,
    has_labels,
    has_room,
    is_tolerated,
    matches_any,
    matches_term,
    named_nodes,
    refused_by_facts,
    refuses_all,
    shortage,
)
from applecart.embedded.controllers.scheduler.fleet import Fleet, NodeFacts, NodeRoom, facts_of
from applecart.embedded.controllers.scheduler.pod_shape import PodShape, amounts_of, wants_of
from tests.embedded.controllers.scheduler.objects import affinity, needs, node, pod, term

LABELS = {"fleet": "ci", "generation": "4", "empty": ""}

MAC_TAINT = Taint(key="tuist.dev/macos", effect="NoSchedule", value="true")
DRAINING = Taint(key="draining", effect="NoExecute")
SLOW = Taint(key="slow", effect="PreferNoSchedule")
ALL = Toleration(operator="Exists")


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


def shape(wanted: Pod) -> PodShape:
    return wants_of(wanted).shape


def room(on: Node, *residents: Pod) -> NodeRoom:
    fleet = Fleet()
    fleet.observe_node(facts_of(on))
    for resident in residents:
        fleet.hold(resident.uid, on.name, shape(resident))
    found = fleet.node(on.name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("on", "tolerations", "reason"),
    [
        (node(), (), ""),
        (node(unschedulable=True), (), predicates.WERE_UNSCHEDULABLE),
        (node(unschedulable=True), (ALL,), ""),
        (node(unschedulable=True), (Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),), ""),
    ],
)
def test_a_cordoned_node(on: Node, tolerations: tuple[Toleration, ...], reason: str) -> None:
    assert predicates.is_cordoned(shape(pod(tolerations=tolerations)), facts_of(on)) == reason


@pytest.mark.parametrize(
    ("on", "tolerations", "reason"),
    [
        (node(taints=(MAC_TAINT,)), (), predicates.UNTOLERATED_TAINT),
        (node(taints=(MAC_TAINT,)), (ALL,), ""),
        (node(taints=(DRAINING,)), (), predicates.UNTOLERATED_TAINT),
        (node(taints=(MAC_TAINT, DRAINING)), (Toleration(key="draining", operator="Exists"),), predicates.UNTOLERATED_TAINT),
        (node(taints=(SLOW,)), (), ""),
        (node(ready="False"), (), predicates.UNTOLERATED_TAINT),
        (node(ready="Unknown"), (), predicates.UNTOLERATED_TAINT),
        (node(ready="False"), (Toleration(key="node.kubernetes.io/not-ready", operator="Exists"),), ""),
        (node(ready="Unknown"), (Toleration(key="node.kubernetes.io/unreachable", operator="Exists"),), ""),
    ],
)
def test_a_taint_and_a_node_that_is_not_ready(on: Node, tolerations: tuple[Toleration, ...], reason: str) -> None:
    assert predicates.has_untolerated_taint(shape(pod(tolerations=tolerations)), facts_of(on)) == reason


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pod(), ""),
        (pod(node_selector={"fleet": "ci"}), ""),
        (pod(node_selector={"fleet": "other"}), predicates.AFFINITY_MISMATCH),
        (pod(affinity=affinity(term(needs("fleet", "In", "ci")))), ""),
        (pod(affinity=affinity(term(needs("fleet", "In", "other")))), predicates.AFFINITY_MISMATCH),
        (pod(node_selector={"fleet": "ci"}, affinity=affinity(term(needs("x", "Exists")))), predicates.AFFINITY_MISMATCH),
        (pod(affinity=affinity(preferred=((1, term(needs("x", "Exists"))),))), ""),
    ],
)
def test_selector_and_required_affinity(wanted: Pod, reason: str) -> None:
    assert predicates.is_not_selected(shape(wanted), facts_of(node(labels={"fleet": "ci"}))) == reason


def test_the_first_concern_speaks() -> None:
    on = facts_of(node(unschedulable=True, taints=(MAC_TAINT,)))
    stranger = pod(node_selector={"fleet": "other"})
    assert refused_by_facts(shape(stranger), on) == predicates.WERE_UNSCHEDULABLE
    elsewhere = pod(affinity=affinity(term(fields=(needs("metadata.name", "In", "mac-9"),))))
    assert refused_by_facts(shape(elsewhere), on) == predicates.NOT_NAMED


@pytest.mark.parametrize(
    ("wanted", "residents", "short"),
    [
        (pod(), (), None),
        (pod(requests={"cpu": "8", "memory": "16Gi"}), (), None),
        (pod(requests={"cpu": "8001m"}), (), Shortage(("Insufficient cpu",), False)),
        (pod(requests={"cpu": "5"}), (pod("r", requests={"cpu": "4"}),), Shortage(("Insufficient cpu",), True)),
        (pod(requests={"cpu": "4"}), (pod("r", requests={"cpu": "4"}),), None),
        (
            pod(requests={"cpu": "9", "memory": "17Gi"}),
            (),
            Shortage(("Insufficient cpu", "Insufficient memory"), False),
        ),
        (
            pod(requests={"cpu": "5", "memory": "17Gi"}),
            (pod("r", requests={"cpu": "4"}),),
            Shortage(("Insufficient cpu", "Insufficient memory"), False),
        ),
        (pod(), (pod("r"), pod("s")), Shortage(("Too many pods",), True)),
        (
            pod(requests={"cpu": "5"}),
            (pod("r", requests={"cpu": "4"}), pod("s")),
            Shortage(("Too many pods", "Insufficient cpu"), True),
        ),
        (pod(requests={"ephemeral_storage": "1Gi"}), (), Shortage(("Insufficient ephemeral-storage",), False)),
        (pod(host_port=80), (pod("r", host_port=80),), Shortage((predicates.PORTS_TAKEN,), True)),
        (pod(host_port=80, requests={"cpu": "9"}), (pod("r", host_port=80),), Shortage((predicates.PORTS_TAKEN,), True)),
        (pod(host_port=81), (pod("r", host_port=80),), None),
    ],
)
def test_room(wanted: Pod, residents: tuple[Pod, ...], short: Shortage | None) -> None:
    left = room(node(), *residents)
    assert shortage(shape(wanted), left) == short
    assert has_room(shape(wanted), left) is (short is None)


def test_a_node_that_says_nothing_of_itself_takes_nobody() -> None:
    assert shortage(shape(pod()), _silent()) == Shortage(("Too many pods",), True)


def _silent() -> NodeRoom:
    silent = NodeRoom("mac-1")
    silent.learn(NodeFacts("mac-1", allocatable=amounts_of({})), is_known=True)
    return silent


NEAR = PodAffinityTerm(topology_key="kubernetes.io/hostname")

PROMISES = [
    pod(affinity=Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(NEAR,)))),
    pod(affinity=Affinity(pod_anti_affinity=PodAntiAffinity(required_during_scheduling_ignored_during_execution=(NEAR,)))),
    pod(topology_spread_constraints=(TopologySpread(max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule"),)),
]


@pytest.mark.parametrize("wanted", PROMISES)
def test_a_promise_about_other_pods_that_we_cannot_keep_is_refused_in_words(wanted: Pod) -> None:
    assert refuses_all(shape(wanted)).endswith("is not served by this scheduler")


def test_a_wish_about_other_pods_is_only_a_wish() -> None:
    anyway = TopologySpread(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway")
    assert refuses_all(shape(pod(topology_spread_constraints=(anyway,)))) == ""


def test_terms_that_name_two_nodes_at_once_conflict() -> None:
    both = affinity(term(fields=(needs("metadata.name", "In", "a"), needs("metadata.name", "In", "b"))))
    assert refuses_all(shape(pod(affinity=both))) == predicates.AFFINITY_CONFLICT
