"""One table per predicate, and the order in which they speak."""

import pytest

from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod
from applecart.api.scheduling import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    Toleration,
    TopologySpread,
)
from applecart.embedded.controllers.scheduler import filter as predicates
from applecart.embedded.controllers.scheduler.filter import Shortage, has_room, refused_by_facts, refuses_all, shortage
from applecart.embedded.controllers.scheduler.node_facts import NodeFacts, facts_of
from applecart.embedded.controllers.scheduler.requests import amounts_of
from applecart.embedded.controllers.scheduler.state import Fleet, NodeRoom
from applecart.embedded.controllers.scheduler.wants import Shape, wants_of
from tests.embedded.controllers.scheduler.objects import affinity, needs, node, pod, term

MACOS = Taint(key="tuist.dev/macos", effect="NoSchedule", value="true")
DRAINING = Taint(key="draining", effect="NoExecute")
SLOW = Taint(key="slow", effect="PreferNoSchedule")
ALL = Toleration(operator="Exists")


def shape(wanted: Pod) -> Shape:
    return wants_of(wanted).shape


def room(on: Node, *residents: Pod) -> NodeRoom:
    fleet = Fleet()
    fleet.observe_node(facts_of(on))
    for resident in residents:
        fleet.assume(resident.uid, on.name, shape(resident))
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
        (node(taints=(MACOS,)), (), predicates.UNTOLERATED_TAINT),
        (node(taints=(MACOS,)), (ALL,), ""),
        (node(taints=(DRAINING,)), (), predicates.UNTOLERATED_TAINT),
        (node(taints=(MACOS, DRAINING)), (Toleration(key="draining", operator="Exists"),), predicates.UNTOLERATED_TAINT),
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
    on = facts_of(node(unschedulable=True, taints=(MACOS,)))
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
