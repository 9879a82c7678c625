"""Who is silent: by our clock, only while we look, and never because of anybody's wall clock."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats, Seen, Timing, seen
from tests.embedded.controllers.node_lifecycle.objects import lease, node

TIMING = Timing()


def host(mark: str = "1", *, uid: str = "uid", has_posted: bool = True, name: str = "mac-1") -> Seen:
    return Seen(name, uid, (mark, ""), has_posted)


def watched(until_s: float, *, has_posted: bool = True, from_s: float = 0.0) -> Heartbeats:
    """After looks every 5 s at a host that never says anything."""
    heartbeats = Heartbeats(TIMING)
    now_s = from_s
    while now_s <= until_s:
        heartbeats.look(now_s, [host(has_posted=has_posted)])
        now_s += TIMING.look_every_s
    return heartbeats


@pytest.mark.parametrize(
    ("until_s", "has_posted", "is_silent"),
    [(0, True, False), (50, True, False), (55, True, True), (60, False, False), (65, False, True)],
)
def test_a_host_is_silent_after_its_grace_period(until_s: float, has_posted: bool, is_silent: bool) -> None:
    assert watched(until_s, has_posted=has_posted).is_silent("mac-1") is is_silent


def test_a_host_that_nobody_ever_saw_is_not_silent() -> None:
    assert not watched(100).is_silent("mac-2")


def test_any_change_of_its_mark_is_a_heartbeat() -> None:
    heartbeats = watched(55)
    heartbeats.look(60, [host("0")])
    assert not heartbeats.is_silent("mac-1")


def test_another_node_of_the_same_name_has_its_own_grace_period() -> None:
    heartbeats = watched(55)
    heartbeats.look(60, [host(uid="other")])
    assert not heartbeats.is_silent("mac-1")


def test_a_host_that_left_is_forgotten() -> None:
    heartbeats = watched(55)
    heartbeats.look(60, [])
    assert not heartbeats.is_silent("mac-1")
    heartbeats.look(65, [host()])
    assert not heartbeats.is_silent("mac-1")


def test_the_first_look_and_one_after_a_gap_say_so() -> None:
    heartbeats = Heartbeats(TIMING)
    assert heartbeats.look(1000, [host()])
    assert not heartbeats.look(1005, [host()])
    assert not heartbeats.look(1015, [host()])
    assert heartbeats.look(1025.1, [host()])


def test_after_a_gap_everybody_has_a_fresh_grace_period() -> None:
    heartbeats = watched(55)
    assert heartbeats.is_silent("mac-1")
    heartbeats.look(600, [host()])
    assert not heartbeats.is_silent("mac-1")


def test_without_a_recent_look_nothing_may_be_concluded() -> None:
    heartbeats = watched(55)
    assert heartbeats.is_attentive(65)
    assert not heartbeats.is_attentive(65.1)
    assert not Heartbeats(TIMING).is_attentive(0)


def test_forgiving_begins_every_grace_period_anew() -> None:
    heartbeats = watched(55)
    heartbeats.forgive(55)
    assert not heartbeats.is_silent("mac-1")


def test_a_live_read_confirms_a_silence_or_ends_it() -> None:
    heartbeats = watched(55)
    assert heartbeats.confirm(56, host())
    assert not heartbeats.confirm(56, host("2"))
    assert not heartbeats.is_silent("mac-1")


def test_the_same_live_read_ends_a_silence_only_once() -> None:
    """The watch is frozen: looks go on seeing the old mark, and the host dies after one more beat."""
    heartbeats = watched(55)
    assert not heartbeats.confirm(56, host("2"))
    for now_s in range(60, 120, 5):
        heartbeats.look(now_s, [host()])
    assert heartbeats.is_silent("mac-1")
    assert heartbeats.confirm(116, host("2"))


def test_a_live_read_of_another_node_confirms_nothing() -> None:
    heartbeats = watched(55)
    assert not heartbeats.confirm(56, host(uid="other"))
    assert not heartbeats.confirm(56, host(name="mac-2"))


def test_a_mark_is_the_renewal_and_the_posted_status() -> None:
    later = EPOCH + timedelta(seconds=1)
    marks = [
        seen(node(), None).mark,
        seen(node(), lease()).mark,
        seen(node(), lease(at=later)).mark,
        seen(node(at=later), lease(at=later)).mark,
        seen(node(ready=""), lease(at=later)).mark,
    ]
    assert len(set(marks)) == len(marks)
    assert seen(node(ready="False"), lease()).mark == seen(node(), lease()).mark
    assert (seen(node(), None).has_posted, seen(node(ready=""), None).has_posted) == (True, False)


@given(gaps=st.lists(st.floats(0.0, 500.0), max_size=40), beats=st.data())
def test_nobody_is_silent_whose_heartbeat_or_a_gap_is_within_the_grace(gaps: list[float], beats: st.DataObject) -> None:
    """The model: silence is the time since the last beat or gap, whichever came later."""
    heartbeats = Heartbeats(TIMING)
    now_s, mark, fresh_s = 0.0, 0, 0.0
    heartbeats.look(now_s, [host(str(mark))])
    for gap_s in gaps:
        now_s += gap_s
        is_beat = beats.draw(st.booleans())
        mark += is_beat
        is_gap = heartbeats.look(now_s, [host(str(mark))])
        assert is_gap == (now_s - (now_s - gap_s) > TIMING.longest_gap_s)
        fresh_s = now_s if is_beat or is_gap else fresh_s
        assert heartbeats.is_silent("mac-1") == (now_s - fresh_s > TIMING.grace_s)
