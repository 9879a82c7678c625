"""Room: who takes it, and when it comes back."""

from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.embedded.controllers.scheduler.fit import fits
from applecart.embedded.controllers.scheduler.fleet import Fleet, facts_of
from applecart.embedded.controllers.scheduler.pod_shape import PodShape, wants_of
from tests.embedded.controllers.scheduler.objects import node, pod


def shape(wanted: Pod) -> PodShape:
    return wants_of(wanted).shape


def fleet_of(*nodes: Node) -> Fleet:
    fleet = Fleet()
    for each in nodes:
        fleet.observe_node(facts_of(each))
    return fleet


BIG = pod("big", requests={"cpu": "6"}, host_port=80)


def test_a_binding_of_unknown_outcome_holds_its_room() -> None:
    fleet = fleet_of(node())
    fleet.hold("uid-big", "mac-1", shape(BIG))
    assert not fits(shape(pod(requests={"cpu": "4"})), fleet.node("mac-1"))
    assert fleet.held_node("uid-big") == "mac-1"


def test_seeing_our_own_binding_counts_it_once() -> None:
    fleet = fleet_of(node())
    fleet.hold("uid-big", "mac-1", shape(BIG))
    assert fleet.observe_bound("uid-big", "mac-1", shape(BIG).amounts, shape(BIG).ports) == ""
    assert not fleet.held_node("uid-big")
    assert fleet.release("uid-big") == ""  # what the API showed cannot be refused any more
    room = fleet.node("mac-1")
    assert room is not None
    assert (room.pod_count, room.free["cpu"], room.ports) == (1, 2000, [*shape(BIG).ports])


def test_a_pod_that_somebody_else_put_elsewhere_gives_our_node_back() -> None:
    fleet = fleet_of(node(), node("mac-2"))
    fleet.hold("uid-big", "mac-1", shape(BIG))
    assert fleet.observe_bound("uid-big", "mac-2", shape(BIG).amounts, shape(BIG).ports) == "mac-1"
    assert fits(shape(BIG), fleet.node("mac-1"))
    assert not fits(shape(BIG), fleet.node("mac-2"))


def test_a_refused_binding_gives_everything_back() -> None:
    fleet = fleet_of(node())
    fleet.hold("uid-big", "mac-1", shape(BIG))
    assert fleet.release("uid-big") == "mac-1"
    assert fits(shape(BIG), fleet.node("mac-1"))
    assert fleet.forget_pod("uid-big") == ""


def test_a_resize_is_counted() -> None:
    fleet = fleet_of(node())
    fleet.observe_bound("uid", "mac-1", (("cpu", 2000),), ())
    fleet.observe_bound("uid", "mac-1", (("cpu", 7000),), ())
    assert not fits(shape(pod(requests={"cpu": "2"})), fleet.node("mac-1"))
    assert fits(shape(pod(requests={"cpu": "1"})), fleet.node("mac-1"))


def test_pods_that_are_known_before_their_node_count_when_it_comes() -> None:
    fleet = Fleet()
    fleet.observe_bound("uid", "mac-1", (("cpu", 7000),), ())
    assert fleet.node("mac-1") is None
    assert list(fleet) == []
    fleet.observe_node(facts_of(node()))
    assert not fits(shape(pod(requests={"cpu": "2"})), fleet.node("mac-1"))


def test_a_node_that_comes_back_still_has_its_pods() -> None:
    fleet = fleet_of(node(pods="1"))
    fleet.observe_bound("uid", "mac-1", (), ())
    fleet.forget_node("mac-1")
    assert not fits(shape(pod()), fleet.node("mac-1"))
    fleet.observe_node(facts_of(node(pods="1")))
    assert not fits(shape(pod()), fleet.node("mac-1"))
    fleet.forget_pod("uid")
    assert fits(shape(pod()), fleet.node("mac-1"))


def test_a_node_that_shrinks_below_its_pods_takes_nobody() -> None:
    fleet = fleet_of(node(cpu="8"))
    fleet.observe_bound("uid", "mac-1", (("cpu", 6000),), ())
    fleet.observe_node(facts_of(node(cpu="4")))
    assert not fits(shape(pod(requests={"cpu": "1m"})), fleet.node("mac-1"))


def test_a_heartbeat_says_nothing_new() -> None:
    fleet = fleet_of(node())
    before = fleet.version
    assert not fleet.observe_node(facts_of(node()))
    assert fleet.version == before
    assert fleet.observe_node(facts_of(node(cpu="7")))
    assert fleet.version > before


def test_what_nobody_knows_is_forgotten_quietly() -> None:
    fleet = Fleet()
    assert fleet.forget_pod("uid") == ""
    fleet.forget_node("mac-1")
    assert fleet.version == 0
