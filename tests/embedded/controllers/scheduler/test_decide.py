"""Which node, and the sentences why none."""

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod
from applecart.api.scheduling import Toleration
from applecart.embedded.controllers.scheduler.decide import KEPT_SHAPES, Decider, Decision, refused_everywhere, unschedulable
from applecart.embedded.controllers.scheduler.fit import emptiness, liking
from applecart.embedded.controllers.scheduler.fleet import Fleet, facts_of
from applecart.embedded.controllers.scheduler.pod_shape import PodShape, wants_of
from tests.embedded.controllers.scheduler.objects import affinity, needs, node, pod, term

GOLDEN = affinity(preferred=((100, term(needs("golden", "Exists"))), (10, term(needs("near", "Exists")))))
SLOW = Taint(key="slow", effect="PreferNoSchedule")


def test_reasons_are_counted_and_sorted_as_text() -> None:
    reasons = Counter({"node(s) had untolerated taint(s)": 1, "Insufficient memory": 10, "Insufficient cpu": 2})
    text = unschedulable(12, reasons, 3, may_preempt=True)
    assert text == (
        "0/12 nodes are available: 1 node(s) had untolerated taint(s), 10 Insufficient memory, 2 Insufficient cpu. "
        "no new claims to deallocate, preemption: 0/12 nodes are available: "
        "3 No preemption victims found for incoming pod, 9 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_must_not_preempt_is_told_so() -> None:
    text = unschedulable(1, Counter(["Too many pods"]), 1, may_preempt=False)
    never = "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    assert text == f"0/1 nodes are available: 1 Too many pods. {never}"


def test_without_nodes_there_is_nothing_to_count() -> None:
    assert unschedulable(0, Counter(), 0, may_preempt=True) == "no nodes available to schedule pods"
    assert refused_everywhere(0, "whatever", may_preempt=True) == "no nodes available to schedule pods"


def test_a_pod_that_no_node_could_take_says_what_it_asked() -> None:
    text = refused_everywhere(3, "pod affinity terms conflict", may_preempt=True)
    assert text.startswith("0/3 nodes are available: pod affinity terms conflict. no new claims")
    assert text.endswith("preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.")


def fleet_of(*nodes: Node) -> Fleet:
    fleet = Fleet()
    for each in nodes:
        fleet.observe_node(facts_of(each))
    return fleet


def decided(decider: Decider, wanted: PodShape) -> Decision:
    """Without a turn for others."""
    deciding = decider.decide(wanted)
    while True:
        try:
            next(deciding)
        except StopIteration as done:
            decision: Decision = done.value
            return decision


def place(fleet: Fleet, decider: Decider, wanted: Pod) -> str:
    wants = wants_of(wanted)
    chosen = decided(decider, wants.shape).node
    if chosen:
        fleet.hold(wants.uid, chosen, wants.shape)
    return chosen


def test_weights_of_matching_preferences_add_up() -> None:
    shape = wants_of(pod(affinity=GOLDEN)).shape
    weights = [liking(shape, facts_of(node(labels=dict.fromkeys(labels, "")))).less_weight for labels in ((), ("golden",))]
    assert weights == [0, -100]
    assert liking(shape, facts_of(node(labels={"golden": "", "near": ""}))).less_weight == -110


def test_a_soft_taint_outweighs_a_preference_as_in_the_real_scheduler() -> None:
    fleet = fleet_of(node("mac-1"), node("mac-2", labels={"golden": ""}, taints=(SLOW,)))
    assert place(fleet, Decider(fleet), pod(affinity=GOLDEN)) == "mac-1"
    tolerant = pod("tolerant", affinity=GOLDEN, tolerations=(Toleration(key="slow", operator="Exists"),))
    assert place(fleet, Decider(fleet), tolerant) == "mac-2"


def test_equal_nodes_are_taken_by_name_and_then_by_emptiness() -> None:
    fleet = fleet_of(node("mac-2"), node("mac-1"))
    decider = Decider(fleet)
    assert [place(fleet, decider, pod(f"p{number}")) for number in range(5)] == ["mac-1", "mac-2", "mac-1", "mac-2", ""]


def test_emptiness_is_the_share_that_is_left() -> None:
    facts = facts_of(node(cpu="4", memory="8Gi", pods="2"))
    assert emptiness(facts, facts.allocatable, 0) == 3_000_000
    assert emptiness(facts, {"cpu": 1000, "memory": 0}, 1) == 250_000 + 500_000
    assert emptiness(facts_of(node(cpu="0", memory="0", pods="0")), {}, 0) == 0


def test_a_kept_refusal_ends_with_the_change_that_helps() -> None:
    fleet = fleet_of(node("mac-1", pods="1"))
    decider = Decider(fleet)
    assert place(fleet, decider, pod("one")) == "mac-1"
    refusals = {decided(decider, wants_of(pod(name)).shape).message for name in ("two", "three")}
    assert len(refusals) == 1
    fleet.forget_pod("uid-one")
    assert place(fleet, decider, pod("two")) == "mac-1"


def test_a_node_that_changed_is_judged_again() -> None:
    fleet = fleet_of(node("mac-1"))
    decider = Decider(fleet)
    fleet.observe_node(facts_of(node("mac-1", unschedulable=True)))
    assert "1 node(s) were unschedulable" in decided(decider, wants_of(pod()).shape).message
    fleet.forget_node("mac-1")
    assert decided(decider, wants_of(pod()).shape).message == "no nodes available to schedule pods"


def test_more_shapes_than_are_kept_are_judged_all_the_same() -> None:
    fleet = fleet_of(node("mac-1", pods="1000", cpu="1000"))
    decider = Decider(fleet)
    placed = [place(fleet, decider, pod(f"p{n}", requests={"cpu": f"{n + 1}m"})) for n in range(KEPT_SHAPES + 10)]
    assert set(placed) == {"mac-1"}


def test_a_promise_we_do_not_serve_is_refused_on_every_node() -> None:
    fleet = fleet_of(node("mac-1"))
    both = affinity(term(fields=(needs("metadata.name", "In", "a"), needs("metadata.name", "In", "b"))))
    message = decided(Decider(fleet), wants_of(pod(affinity=both)).shape).message
    assert message.startswith("0/1 nodes are available: pod affinity terms conflict. ")


@given(st.permutations([f"mac-{number}" for number in range(6)]), st.integers(1, 3))
def test_the_order_in_which_nodes_were_learnt_decides_nothing(names: list[str], slots: int) -> None:
    def run(order: list[str]) -> list[str]:
        fleet = fleet_of(*(node(name, pods=str(slots)) for name in order))
        decider = Decider(fleet)
        return [place(fleet, decider, pod(f"p{number}")) for number in range(10)]

    assert run(names) == run(sorted(names))


MANY = [str(number) for number in range(4000)]


@pytest.mark.parametrize(
    "wanted",
    [
        pod(requests={f"example.com/{name}": "1" for name in MANY}),
        pod(tolerations=tuple(Toleration(key=name) for name in MANY)),
        pod(affinity=affinity(preferred=tuple((1, term(needs(name, "Exists"))) for name in MANY))),
        pod(affinity=affinity(term(needs("fleet", "In", *MANY)))),
    ],
    ids=["resources", "tolerations", "preferences", "values"],
)
def test_a_long_pod_gives_others_a_turn_after_every_few_nodes(wanted: Pod) -> None:
    """A Pod of 8,000 resources on 100 nodes held up the whole API for a quarter of a second."""
    decider = Decider(fleet_of(*(node(f"mac-{number}") for number in range(30))))
    assert len(list(decider.decide(wants_of(wanted).shape))) >= 10


def test_a_pod_as_others_are_is_decided_at_once() -> None:
    decider = Decider(fleet_of(*(node(f"mac-{number}") for number in range(1000))))
    assert list(decider.decide(wants_of(pod(requests={"cpu": "1", "memory": "1Gi"})).shape)) == []


def test_a_thousand_pods_on_two_hundred_nodes_cost_well_under_two_seconds() -> None:
    """CPU time, so a busy machine does not matter; measured at 0.06 s."""
    macos = Taint(key="tuist.dev/macos", effect="NoSchedule", value="true")
    fleet = fleet_of(
        *(
            node(f"mac-{n:03}", pods="5", cpu="40", memory="80Gi", labels={"fleet": f"f{n % 4}"}, taints=(macos,))
            for n in range(200)
        )
    )
    decider = Decider(fleet)
    tolerates = (Toleration(key="tuist.dev/macos", operator="Exists", effect="NoSchedule"),)
    runners = [
        pod(
            f"runner-{n}",
            requests={"cpu": "4", "memory": "8Gi"},
            node_selector={"fleet": f"f{n % 4}"},
            tolerations=tolerates,
            affinity=GOLDEN,
        )
        for n in range(1000)
    ]
    began_s = time.process_time()
    placed = [place(fleet, decider, runner) for runner in runners]
    took_s = time.process_time() - began_s
    assert all(placed)
    assert took_s < 2.0
