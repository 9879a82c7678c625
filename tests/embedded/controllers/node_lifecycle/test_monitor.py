"""Whether the fleet looks sane enough to move Pods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.controllers.node_lifecycle.heartbeats import Timing
from applecart.embedded.controllers.node_lifecycle.monitor import Turns, outlook, zone_of
from tests.embedded.controllers.node_lifecycle.objects import node

TIMING = Timing()
REGION, ZONE = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
NOWHERE = ("", "")


@pytest.mark.parametrize(
    ("ready", "lost", "is_dark", "rate"),
    [
        (3, 0, False, 0.1),
        (2, 1, False, 0.1),
        (0, 1, True, 0.1),
        (0, 3, True, 0.1),
        (1, 2, False, 0.1),  # two lost ones never make a zone suspicious
        (2, 3, False, 0.0),  # most of a small zone
        (3, 3, False, 0.1),
        (45, 55, False, 0.01),  # most of a large one
        (56, 44, False, 0.1),
        (22, 28, False, 0.0),  # fifty are still few
        (22, 29, False, 0.01),
    ],
)
def test_the_share_of_lost_nodes_decides_how_fast_they_are_given_up(ready: int, lost: int, is_dark: bool, rate: float) -> None:
    nodes = [(node(f"mac-{number}"), number < ready) for number in range(ready + lost)]
    found = outlook(nodes, TIMING)
    assert (found.is_dark, found.nodes_per_s) == (is_dark, {NOWHERE: rate})


def test_a_zone_that_is_wholly_lost_is_given_up_while_another_lives() -> None:
    lost = [(node(f"a{number}", labels={ZONE: "a"}), False) for number in range(5)]
    well = [(node(f"b{number}", labels={ZONE: "b"}), True) for number in range(5)]
    found = outlook([*lost, *well], TIMING)
    assert (found.is_dark, found.nodes_per_s) == (False, {("", "a"): 0.1, ("", "b"): 0.1})


def test_a_node_that_is_not_counted_does_not_light_up_a_dark_fleet() -> None:
    uncounted = node("tool", labels={"node.kubernetes.io/exclude-disruption": ""})
    assert outlook([(uncounted, True), (node(), False)], TIMING).is_dark


def test_without_any_node_nothing_may_be_given_up() -> None:
    assert outlook([], TIMING).is_dark


@pytest.mark.parametrize(
    ("labels", "zone"),
    [({}, NOWHERE), ({REGION: "fr", ZONE: "1"}, ("fr", "1")), ({ZONE: "1", OLD_ZONE: "2"}, ("", "2"))],
)
def test_a_zone_is_read_from_labels(labels: dict[str, str], zone: tuple[str, str]) -> None:
    assert zone_of(node(labels=labels)) == zone


def test_turns_come_at_the_rate_of_the_zone() -> None:
    turns = Turns()
    taken = [second for second in range(40) if turns.take(NOWHERE, 0.1, second)]
    assert taken == [0, 10, 20, 30]
    assert turns.take(("", "other"), 0.1, 39)


def test_a_zone_that_is_stopped_gives_no_turn() -> None:
    assert not any(Turns().take(NOWHERE, 0.0, second) for second in range(1000))


@given(st.lists(st.booleans(), min_size=1, max_size=120))
def test_a_fleet_is_dark_exactly_when_no_node_is_ready(ready: list[bool]) -> None:
    found = outlook([(node(f"mac-{number}"), is_ready) for number, is_ready in enumerate(ready)], TIMING)
    assert found.is_dark == (not any(ready))
    assert found.nodes_per_s[NOWHERE] in (0.0, TIMING.slow_nodes_per_s, TIMING.nodes_per_s)
