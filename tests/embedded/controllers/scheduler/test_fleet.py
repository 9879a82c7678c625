"""Room: who takes it, and when it comes back."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.embedded.controllers.scheduler.fit import fits, has_room, ports_meet, shortage
from applecart.embedded.controllers.scheduler.fleet import Fleet, facts_of
from applecart.embedded.controllers.scheduler.pod_shape import HostPort, PodShape, wants_of
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
    assert (room.pod_count, room.free["cpu"], room.ports) == (1, 2000, {(80, "TCP"): {"0.0.0.0": 1}})


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


def ports_of(*residents: tuple[HostPort, ...]) -> Fleet:
    """A fleet of one node, with residents `0`, `1`... that hold these ports."""
    fleet = fleet_of(node(pods="10"))
    for number, ports in enumerate(residents):
        fleet.observe_bound(str(number), "mac-1", (), ports)
    return fleet


def meet(wanted: tuple[HostPort, ...], fleet: Fleet) -> bool:
    room = fleet.node("mac-1")
    assert room is not None
    return ports_meet(wanted, room.ports)


@pytest.mark.parametrize(
    ("other", "meets"),
    [
        (HostPort("10.0.0.1", "TCP", 80), True),
        (HostPort("0.0.0.0", "TCP", 80), True),
        (HostPort("10.0.0.2", "TCP", 80), False),
        (HostPort("10.0.0.1", "UDP", 80), False),
        (HostPort("10.0.0.1", "TCP", 81), False),
    ],
)
def test_ports_meet_on_the_same_address_or_on_all(other: HostPort, meets: bool) -> None:
    port = HostPort("10.0.0.1", "TCP", 80)
    assert (meet((port,), ports_of((other,))), meet((other,), ports_of((port,)))) == (meets, meets)


PORTS = st.builds(HostPort, st.sampled_from(["0.0.0.0", "a", "b"]), st.sampled_from(["TCP", "UDP"]), st.integers(1, 2))


@given(st.lists(st.lists(PORTS, max_size=3), max_size=4), st.sets(st.sampled_from("0123")), PORTS)
def test_a_port_is_free_again_when_the_last_who_holds_it_is_gone(
    residents: list[list[HostPort]], gone: set[str], wanted: HostPort
) -> None:
    fleet = ports_of(*map(tuple, residents))
    for uid in gone:
        fleet.forget_pod(uid)
    left = tuple(tuple(ports) for number, ports in enumerate(residents) if str(number) not in gone)
    assert meet((wanted,), fleet) == meet((wanted,), ports_of(*left))
    assert meet((wanted,), fleet) == any(meet((wanted,), ports_of((port,))) for ports in left for port in ports)


class Compared(int):
    """Counts how often numbers like it are compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def test_ports_are_not_compared_one_by_one() -> None:
    """Two Pods of 10,000 ports each held up the whole API for 10 s."""
    theirs, ours = (tuple(HostPort("0.0.0.0", "TCP", Compared(n)) for n in some) for some in (range(1, 501), range(501, 1001)))
    fleet = ports_of(theirs)
    room, wanted = fleet.node("mac-1"), msgspec.structs.replace(shape(pod()), ports=ours)
    assert room is not None
    Compared.times = 0
    assert has_room(wanted, room)
    assert shortage(wanted, room) is None
    fleet.forget_pod("0")
    assert Compared.times <= len(theirs) + len(ours)


def test_what_nobody_knows_is_forgotten_quietly() -> None:
    fleet = Fleet()
    assert fleet.forget_pod("uid") == ""
    fleet.forget_node("mac-1")
    assert fleet.version == 0
