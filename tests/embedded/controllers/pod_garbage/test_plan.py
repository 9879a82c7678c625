"""Which Pods are garbage."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Taint
from applecart.clock import EPOCH
from applecart.embedded.controllers.pod_garbage.plan import (
    Quarantine,
    beyond_threshold,
    never_placed,
    on_dead_hosts,
    orphans,
)
from tests.embedded.controllers.pod_garbage.pods import OUT_OF_SERVICE, node, pod

NOW = EPOCH + timedelta(hours=1)


def looked(quarantine: Quarantine, now_s: float, *existing: str, named: tuple[str, ...] = ("gone",)) -> list[str]:
    pods = [pod(f"on-{name}", on=name) for name in named]
    return quarantine.look(pods, lambda name: name in existing, now_s)


def test_a_node_is_gone_only_after_a_whole_quarantine() -> None:
    quarantine = Quarantine(40)
    assert [looked(quarantine, now_s) for now_s in (0, 20, 39.9, 40)] == [[], [], [], ["gone"]]


def test_a_node_that_shows_up_begins_its_quarantine_anew() -> None:
    quarantine = Quarantine(40)
    looked(quarantine, 0)
    looked(quarantine, 20, "gone")
    assert looked(quarantine, 40) == []
    assert looked(quarantine, 80) == ["gone"]


def test_a_node_that_no_pod_names_is_of_no_interest() -> None:
    quarantine = Quarantine(40)
    looked(quarantine, 0)
    looked(quarantine, 20, named=("",))
    assert looked(quarantine, 40) == []


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans()), max_size=30))
def test_a_node_seen_within_the_quarantine_is_never_gone(steps: list[tuple[float, bool]]) -> None:
    quarantine = Quarantine(40)
    now_s, missing_since_s = 0.0, None
    for step_s, is_there in steps:
        now_s += step_s
        missing_since_s = None if is_there else (now_s if missing_since_s is None else missing_since_s)
        gone = looked(quarantine, now_s, *(("gone",) if is_there else ()))
        assert bool(gone) == (missing_since_s is not None and now_s - missing_since_s >= 40)


def test_only_pods_of_a_gone_node_are_orphans() -> None:
    pods = [pod("a", on="gone"), pod("b", on="here"), pod("c")]
    assert [removal.pod.name for removal in orphans(pods, ["gone"])] == ["a"]
    assert all(removal.is_orphan for removal in orphans(pods, ["gone"]))


@pytest.mark.parametrize(
    ("phase", "grace_s", "is_asked_again"), [("Failed", 0, False), ("Failed", 30, True), ("Running", 0, True)]
)
def test_an_orphan_that_only_waits_for_its_finalizer_is_left_in_peace(phase: str, grace_s: int, is_asked_again: bool) -> None:
    waiting = pod(on="gone", phase=phase, deleted_at=NOW, grace_s=grace_s)
    assert bool(orphans([waiting], ["gone"])) is is_asked_again


@pytest.mark.parametrize(("is_deleted", "on", "is_garbage"), [(True, "", True), (False, "", False), (True, "mac-1", False)])
def test_a_pod_that_goes_without_ever_having_had_a_node_is_garbage(is_deleted: bool, on: str, is_garbage: bool) -> None:
    found = never_placed([pod(on=on, phase="Pending", deleted_at=NOW if is_deleted else None, grace_s=30)])
    assert bool(found) is is_garbage


@pytest.mark.parametrize(
    ("ready", "taints", "is_deleted", "is_garbage"),
    [
        ("Unknown", (OUT_OF_SERVICE,), True, True),
        ("False", (OUT_OF_SERVICE,), True, True),
        ("True", (OUT_OF_SERVICE,), True, False),
        ("Unknown", (OUT_OF_SERVICE,), False, False),
        ("Unknown", (Taint(key="maintenance", effect="NoExecute"),), True, False),
        ("Unknown", (), True, False),
    ],
)
def test_only_a_person_can_declare_a_host_dead(
    ready: str, taints: tuple[Taint, ...], is_deleted: bool, is_garbage: bool
) -> None:
    leaving = pod(on="mac-1", deleted_at=NOW if is_deleted else None, grace_s=30)
    assert bool(on_dead_hosts([leaving], lambda _: node(ready=ready, taints=taints))) is is_garbage
    assert on_dead_hosts([leaving], lambda _: None) == []


def test_the_oldest_finished_pods_above_the_threshold_go_and_evicted_ones_first() -> None:
    pods = [
        pod("new", phase="Succeeded", age_s=1),
        pod("old", phase="Succeeded", age_s=100),
        pod("b-older", phase="Failed", age_s=200),
        pod("a-older", phase="Failed", age_s=200),
        pod("evicted", phase="Failed", reason="Evicted", age_s=2),
        pod("running", phase="Running", age_s=900),
        pod("going", phase="Failed", age_s=900, deleted_at=NOW),
    ]
    order = [removal.pod.name for removal in beyond_threshold(pods, 1)]
    assert order == ["evicted", "a-older", "b-older", "old"]
    assert [removal.pod.name for removal in beyond_threshold(pods, 4)] == ["evicted"]
    assert beyond_threshold(pods, 5) == beyond_threshold(pods, 0) == []


phases = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])


@given(st.lists(st.tuples(phases, st.booleans(), st.sampled_from(["", "here"])), max_size=30), st.integers(0, 10))
def test_a_living_pod_of_a_living_node_is_never_garbage(states: list[tuple[str, bool, str]], threshold: int) -> None:
    pods = [
        pod(f"p{number}", phase=phase, on=on, deleted_at=NOW if going else None)
        for number, (phase, going, on) in enumerate(states)
    ]
    well = node()
    removals = [
        *orphans(pods, ["gone"]),
        *never_placed(pods),
        *on_dead_hosts(pods, lambda _: well),
        *beyond_threshold(pods, threshold),
    ]
    for removal in removals:
        assert removal.pod.is_terminal or (removal.pod.is_being_deleted and not removal.pod.spec.node_name)
    kept = sum(each.is_terminal and not each.is_being_deleted for each in pods) - len(beyond_threshold(pods, threshold))
    assert threshold == 0 or kept <= threshold
