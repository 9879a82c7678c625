"""What a Node says of itself, from what was found out."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import ObjectMeta
from applecart.api.nodes import Node, NodeCondition, NodeStatus
from applecart.api.reasons import kubelet as reasons
from applecart.clock import EPOCH
from applecart.kubelet.node.conditions import FAILURES_NEEDED, CheckState, Findings, node_conditions
from applecart.tart.mac import Disk

TART = CheckState("tart", reasons.TART_NOT_ANSWERING, "run `tart list`")
GUI = CheckState("gui-session", reasons.NO_GUI_SESSION, "log in")
SCRATCH = CheckState("scratch-vm", reasons.SCRATCH_VM_FAILED, "see the log", is_awaited=False)


def looks(outcome: CheckState, *faults: str) -> CheckState:
    for number, fault in enumerate(faults):
        outcome = outcome.after(fault, EPOCH + number * timedelta(seconds=30))
    return outcome


def said(type_: str, found: Findings, node: Node | None = None) -> NodeCondition:
    return next(condition for condition in node_conditions(found, node) if condition.type == type_)


def node_that_says(type_: str, status: str, message: str = "", reason: str = "Before") -> Node:
    condition = NodeCondition(type=type_, status=status, reason=reason, message=message)
    return Node(metadata=ObjectMeta(name="mac-1"), status=NodeStatus(conditions=(condition,)))


def ready(*outcomes: CheckState, is_start_over: bool = False, node: Node | None = None) -> NodeCondition:
    return said("Ready", Findings(outcomes=outcomes, is_start_over=is_start_over), node)


def test_a_host_is_ready_when_every_check_was_well() -> None:
    found = ready(looks(TART, ""), looks(GUI, ""))
    assert (found.status, found.reason, found.message) == ("True", "TartKubeletReady", "looked at: tart, gui-session")


def test_a_host_whose_tart_is_broken_is_not_ready() -> None:
    """Weakness 22: Ready was said unconditionally; a host without Tart, screen or disk took Pods it could never start."""
    found = ready(looks(TART, "", "tart list ended with 1", "tart list ended with 1"), looks(GUI, ""))
    assert (found.status, found.reason) == ("False", "TartNotAnswering")
    assert found.message == "tart: tart list ended with 1 (since 2026-01-01T00:00:30Z); run `tart list`"


def test_every_failed_check_is_told_and_the_first_gives_the_reason() -> None:
    found = ready(looks(TART, ""), looks(GUI, "nobody", "nobody"), looks(SCRATCH, "no address", "no address"))
    assert found.reason == "NoGuiSession"
    assert "nobody" in found.message
    assert "no address" in found.message


def test_one_failed_look_does_not_cost_a_node_its_ready_and_one_good_look_gives_it_back() -> None:
    assert ready(looks(TART, "", "hiccup")).status == "True"
    assert ready(looks(TART, "", "hiccup", "", "hiccup")).status == "True"
    assert ready(looks(TART, "bad", "bad", "")).status == "True"


def test_the_time_of_a_failure_is_that_of_its_first_look() -> None:
    outcome = looks(TART, "", "a", "b", "c")
    assert outcome.since == EPOCH + timedelta(seconds=30)
    assert outcome.at == EPOCH + timedelta(seconds=90)


@pytest.mark.parametrize("silent", [TART, looks(TART, "first look failed")])
def test_right_after_a_start_a_node_says_what_it_said_before(silent: CheckState) -> None:
    """An agent that is restarted must not take its host out of service, nor promise what it has not seen."""
    for status in ("True", "False"):
        assert ready(silent, node=node_that_says("Ready", status)).reason == "Before"
    for node in (None, node_that_says("Ready", "Unknown")):
        found = ready(silent, looks(GUI, ""), node=node)
        assert (found.status, found.reason) == ("False", "TartKubeletStarting")
        assert found.message == "the agent has just started and waits for: tart"


def test_a_check_that_stays_silent_is_not_waited_for_for_ever() -> None:
    assert ready(TART, looks(GUI, ""), is_start_over=True).status == "True"


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_check_that_only_ever_failed_has_failed_when_the_start_is_over(status: str) -> None:
    """A host whose Tart hung was Ready for half a minute after every start: between the end of the start and the second
    failure."""
    found = ready(looks(TART, "hangs"), looks(GUI, ""), is_start_over=True, node=node_that_says("Ready", status))
    assert (found.status, found.reason) == ("False", "TartNotAnswering")
    assert ready(looks(SCRATCH, "no address"), is_start_over=True).status == "True"


def test_a_failure_of_the_scratch_vm_outlives_its_agent_until_the_next_check() -> None:
    """I11: it is checked once an hour; until then nothing has shown that the host is well again."""
    broken = node_that_says("Ready", "False", "no address", reason="ScratchVmFailed")
    for silent in (SCRATCH, looks(SCRATCH, "no address")):
        found = ready(looks(TART, ""), silent, is_start_over=True, node=broken)
        assert (found.status, found.reason, found.message) == ("False", "ScratchVmFailed", "no address")
    assert ready(looks(TART, ""), looks(SCRATCH, ""), node=broken).status == "True"
    assert ready(looks(TART, ""), node=broken).status == "True"  # no longer checked
    assert ready(looks(TART, ""), SCRATCH, node=node_that_says("Ready", "False")).status == "True"


def test_nobody_waits_for_the_scratch_vm() -> None:
    assert ready(looks(TART, ""), SCRATCH).status == "True"


@given(st.lists(st.sampled_from(["", "bad"])), st.lists(st.sampled_from(["", "bad"])), st.booleans())
def test_ready_is_false_exactly_after_two_failures_in_a_row_or_when_nothing_ever_went(
    tart: list[str], gui: list[str], is_start_over: bool
) -> None:
    outcomes = (looks(TART, *tart), looks(GUI, *gui))
    failed = any(faults[-FAILURES_NEEDED:] == ["bad"] * FAILURES_NEEDED for faults in (tart, gui))
    unproven = any("" not in faults for faults in (tart, gui) if faults or not is_start_over)
    assert ready(*outcomes, is_start_over=is_start_over).status == ("False" if failed or unproven else "True")


def disk(free_percent: float) -> Disk:
    return Disk(100_000, int(free_percent * 1000))


def pressure(found: Findings, node: Node | None = None) -> NodeCondition:
    return said("DiskPressure", found, node)


def test_a_host_short_of_disk_says_how_short() -> None:
    found = pressure(Findings(disk=disk(8.34), guests={"ci-a": 97, "ci-b": 10}))
    assert (found.status, found.reason) == ("True", "TartKubeletHasDiskPressure")
    assert found.message == ("host root volume 8.3% free (below 10% floor); guest root volume(s) near capacity: ci-a at 97%")
    assert pressure(Findings(disk=disk(10.0))).status == "False"


def test_a_full_guest_alone_puts_no_pressure_on_its_node() -> None:
    """Weakness 23: one guest at 90 percent kept Pods off a host with plenty of room."""
    found = pressure(Findings(disk=disk(60), guests={"ci-a": 100}))
    assert (found.status, found.reason) == ("False", "TartKubeletHasSufficientDisk")


def test_disk_pressure_is_never_unknown_and_a_disk_that_cannot_be_read_changes_nothing() -> None:
    """Incident 37: the condition stayed Unknown while a disk was full."""
    assert pressure(Findings()).status == "False"
    assert pressure(Findings(), node_that_says("DiskPressure", "Unknown")).status == "False"
    kept = pressure(Findings(), node_that_says("DiskPressure", "True", "8% free"))
    assert (kept.status, kept.message) == ("True", "8% free")
    assert pressure(Findings(disk=disk(5)), node_that_says("DiskPressure", "Unknown")).status == "True"


@pytest.mark.parametrize(
    ("works_on", "status", "reason"),
    [
        (None, "Unknown", "ProcessesUnreadable"),
        ([], "False", "NothingRuns"),
        (["VM a runs"], "True", "VmOrBuildRuns"),
    ],
)
def test_a_host_is_idle_only_when_that_is_known(works_on: list[str] | None, status: str, reason: str) -> None:
    found = said("TartKubeletHostBusy", Findings(works_on=works_on))
    assert (found.status, found.reason) == (status, reason)


def test_the_pressures_that_cannot_arise_are_said_so_that_describe_shows_them() -> None:
    conditions = node_conditions(Findings(), None)
    assert {condition.type for condition in conditions} == {
        "Ready",
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "TartKubeletHostBusy",
    }
    assert said("MemoryPressure", Findings()).status == said("PIDPressure", Findings()).status == "False"
    assert all(condition.reason for condition in conditions)


def test_an_agent_that_cannot_write_its_memory_takes_on_nothing_and_keeps_what_runs() -> None:
    """I10: on a read-only or full state folder new Pods waited in silence, on a Node that asked for more of them. It is no
    reason to be unready, which would cost Pods that run their host."""
    found = Findings(outcomes=[looks(TART, "")], disk=disk(60), state_fault="[Errno 30] Read-only file system: '/var/state'")
    assert (pressure(found).status, pressure(found).reason) == ("True", "TartKubeletStateNotWritable")
    assert "Read-only file system" in pressure(found).message
    assert said("Ready", found).status == "True"
