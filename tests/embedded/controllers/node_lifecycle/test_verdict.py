"""What a lost Node and the Pods on it say."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import EPOCH
from applecart.embedded.controllers.node_lifecycle.verdict import (
    KEPT_BY_THE_AGENT,
    lost_conditions,
    readiness,
    unready_condition,
)
from tests.embedded.controllers.node_lifecycle.objects import condition, node, pod

NOW = EPOCH + timedelta(hours=1, microseconds=5)
WHOLE = EPOCH + timedelta(hours=1)


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
