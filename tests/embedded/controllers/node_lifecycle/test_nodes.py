"""What the status and the taints of a Node say whose agent is silent."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.nodes import Node, Taint
from applecart.clock import EPOCH
from applecart.embedded.controllers.node_lifecycle.nodes import (
    KEPT_BY_THE_AGENT,
    is_told_to_leave,
    lost_conditions,
    readiness,
    taints_that_evict,
    taints_that_still_evict,
    unready_condition,
    wanted_taints,
)
from tests.embedded.controllers.node_lifecycle.objects import NOT_READY, UNREACHABLE, condition, node, pod

NOW = EPOCH + timedelta(hours=1, microseconds=5)
WHOLE = EPOCH + timedelta(hours=1)

MACOS = Taint(key="tuist.dev/macos", effect="NoSchedule", value="true")
OURS = (
    NOT_READY,
    UNREACHABLE,
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
)
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


def test_every_condition_of_the_agent_becomes_unknown_and_says_why() -> None:
    changed = lost_conditions(node(more=(condition("DiskPressure", "False"),)), NOW)
    by_type = {said.type: said for said in changed}
    assert set(by_type) == {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}
    assert {said.status for said in changed} == {"Unknown"}
    assert {said.last_transition_time for said in changed} == {WHOLE}
    assert by_type["Ready"].reason == "NodeStatusUnknown"
    assert by_type["DiskPressure"].message == "Kubelet stopped posting node status."
    assert by_type["Ready"].last_heartbeat_time == EPOCH
    assert (by_type["PIDPressure"].reason, by_type["PIDPressure"].message) == (
        "NodeStatusNeverUpdated",
        "Kubelet never posted node status.",
    )


def test_what_is_unknown_already_keeps_its_reason_and_time() -> None:
    known = tuple(condition(type_, "Unknown", reason="Before") for type_ in KEPT_BY_THE_AGENT)
    assert lost_conditions(node(ready="", more=known), NOW) == []


def test_the_network_is_not_judged_by_silence() -> None:
    changed = lost_conditions(node(more=(condition("NetworkUnavailable", "False"),)), NOW)
    assert "NetworkUnavailable" not in {said.type for said in changed}


@pytest.mark.parametrize("status", ["True", "False", "Unknown", ""])
def test_readiness_is_the_status_of_ready(status: str) -> None:
    assert readiness(node(ready=status)) == status


@pytest.mark.parametrize(("ready", "is_written"), [("True", True), ("Unknown", True), ("False", False), ("", False)])
def test_a_pod_on_a_lost_node_that_claims_readiness_loses_it(ready: str, is_written: bool) -> None:
    said = unready_condition(pod(ready=ready), NOW)
    assert (said is not None) is is_written
    if said is not None:
        assert (said.status, said.last_transition_time) == ("False", WHOLE)


@given(statuses=st.dictionaries(st.sampled_from([*KEPT_BY_THE_AGENT, "Other"]), st.sampled_from(["True", "False", "Unknown"])))
def test_once_written_a_verdict_has_nothing_to_add(statuses: dict[str, str]) -> None:
    before = node(ready="", more=tuple(condition(type_, status) for type_, status in statuses.items()))
    written = {said.type: said for said in (*before.status.conditions, *lost_conditions(before, NOW))}
    assert lost_conditions(node(ready="", more=tuple(written.values())), NOW) == []
    assert {written[type_].status for type_ in KEPT_BY_THE_AGENT} == {"Unknown"}


def keys(node: Node, *, may_execute: bool = False) -> set[tuple[str, str]]:
    return {(taint.key, taint.effect) for taint in wanted_taints(node, may_execute=may_execute, now=EPOCH)}


@pytest.mark.parametrize(
    ("ready", "may_execute", "expected"),
    [
        ("True", True, set()),
        ("", True, set()),
        ("False", False, {(NOT_READY, "NoSchedule")}),
        ("False", True, {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}),
        ("Unknown", False, {(UNREACHABLE, "NoSchedule")}),
        ("Unknown", True, {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}),
    ],
)
def test_readiness_decides_who_may_come_and_who_must_go(ready: str, may_execute: bool, expected: set[tuple[str, str]]) -> None:
    assert keys(node(ready=ready), may_execute=may_execute) == expected


@pytest.mark.parametrize(
    ("type_", "status", "key"),
    [
        ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
        ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
        ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
        ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
        ("DiskPressure", "False", ""),
        ("DiskPressure", "Unknown", ""),
        ("TartKubeletHostBusy", "True", ""),
    ],
)
def test_a_pressure_keeps_new_pods_away(type_: str, status: str, key: str) -> None:
    expected = {(key, "NoSchedule")} if key else set()
    assert keys(node(more=(condition(type_, status),)), may_execute=True) == expected


def test_a_cordon_is_a_taint() -> None:
    assert keys(node(unschedulable=True)) == {("node.kubernetes.io/unschedulable", "NoSchedule")}


def test_a_new_taint_says_since_when_and_an_old_one_keeps_its_time() -> None:
    old = Taint(key=UNREACHABLE, effect="NoSchedule", time_added=EPOCH.replace(year=2025))
    first, second = wanted_taints(node(ready="Unknown", taints=(old,)), may_execute=True, now=EPOCH.replace(microsecond=7))
    assert first is old
    assert second == Taint(key=UNREACHABLE, effect="NoExecute", time_added=EPOCH)


def test_a_node_that_is_as_it_should_be_gets_its_own_tuple_back() -> None:
    well = node(taints=(MACOS,))
    assert wanted_taints(well, may_execute=True, now=EPOCH) is well.spec.taints


def test_a_node_that_goes_from_not_ready_to_unknown_swaps_its_taints() -> None:
    before = node(ready="False")
    tainted = node(ready="Unknown", taints=wanted_taints(before, may_execute=True, now=EPOCH))
    assert keys(tainted, may_execute=True) == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}


def test_in_a_dark_fleet_the_taint_that_evicts_goes_and_the_other_stays() -> None:
    before = node(ready="Unknown")
    tainted = node(ready="Unknown", taints=wanted_taints(before, may_execute=True, now=EPOCH))
    assert keys(tainted, may_execute=False) == {(UNREACHABLE, "NoSchedule")}


@pytest.mark.parametrize(
    ("taint", "ready", "evicts", "still"),
    [
        (Taint(key=UNREACHABLE, effect="NoExecute"), "Unknown", True, True),
        (Taint(key=UNREACHABLE, effect="NoExecute"), "True", True, False),
        (Taint(key="maintenance", effect="NoExecute"), "True", True, True),
        (Taint(key=UNREACHABLE, effect="NoSchedule"), "Unknown", False, False),
    ],
)
def test_our_taint_evicts_nobody_from_a_host_that_is_back(taint: Taint, ready: str, evicts: bool, still: bool) -> None:
    tainted = node(ready=ready, taints=(taint,))
    assert bool(taints_that_evict(tainted)) is evicts
    assert bool(taints_that_still_evict(tainted)) is still
    assert is_told_to_leave(tainted) is (evicts and taint.key == UNREACHABLE)


nodes = st.builds(
    lambda ready, cordoned, pressed, taints: node(
        ready=ready,
        unschedulable=cordoned,
        more=tuple(condition(type_, "True") for type_ in pressed),
        taints=tuple(Taint(key=key, effect=effect) for key, effect in taints),
    ),
    st.sampled_from(["", "True", "False", "Unknown"]),
    st.booleans(),
    st.sets(st.sampled_from(["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Other"])),
    st.sets(st.tuples(st.sampled_from([*OURS, "a", "tuist.dev/macos"]), st.sampled_from(EFFECTS))),
)


@given(nodes, st.booleans())
def test_taints_of_others_are_never_touched_and_a_second_look_changes_nothing(before: Node, may_execute: bool) -> None:
    after = wanted_taints(before, may_execute=may_execute, now=EPOCH)
    theirs = [taint for taint in before.spec.taints if taint.key not in OURS or taint.effect == "PreferNoSchedule"]
    assert [taint for taint in after if taint in theirs] == theirs
    tainted = node(
        ready=next((c.status for c in before.status.conditions if c.type == "Ready"), ""),
        unschedulable=before.spec.unschedulable,
        more=tuple(c for c in before.status.conditions if c.type != "Ready"),
        taints=after,
    )
    assert wanted_taints(tainted, may_execute=may_execute, now=EPOCH) is tainted.spec.taints


@given(nodes)
def test_nobody_is_told_to_leave_without_permission(before: Node) -> None:
    after = wanted_taints(before, may_execute=False, now=EPOCH)
    assert not any(taint.effect == "NoExecute" and taint.key in (NOT_READY, UNREACHABLE) for taint in after)
