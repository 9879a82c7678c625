"""What the Node says of itself, derived from what was found out (I11): pure.

Ready follows from checks of outcomes, not from the agent being alive. One failed look is a hiccup, two in a row are a failure,
one success ends it. Until every check has spoken after a start the Node says what it said before, for a minute at most; after
that minute a check that only ever failed has failed. A failure that a new agent finds on its Node stands until the check that
found it has spoken again, however rare that check is. Only the host's own disk makes DiskPressure, when it is nearly full or
the agent's memory cannot be written: a full guest must not cost the other one its host. A disk that cannot be read changes
nothing, and what runs on a host that cannot be read is unknown, which is not idle (I7). Times are set by whoever writes.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from applecart.api.conditions import DISK_PRESSURE, HOST_BUSY, MEMORY_PRESSURE, PID_PRESSURE, READY
from applecart.api.nodes import Node, NodeCondition
from applecart.api.reasons import ConditionReason
from applecart.api.reasons import kubelet as reasons
from applecart.kube.conditions import FALSE, TRUE, UNKNOWN
from applecart.kubelet.node import guest_disks, host_busy
from applecart.tart.mac import Disk

FAILURES_NEEDED = 2  # in a row: a Node that flaps loses Pods to other hosts for nothing
DISK_FLOOR_PERCENT = 10.0  # below it pulls, logs and even the host's own updates begin to fail


class CheckState(msgspec.Struct, frozen=True):
    """What one check found last."""

    name: str
    reason: ConditionReason  # of a Ready that is False because of it
    fix: str
    is_awaited: bool = True
    fault: str = ""  # a sentence; empty when all is well
    at: datetime | None = None  # None: it has not reported yet
    failures: int = 0  # in a row
    since: datetime | None = None  # of the first of them
    was_well: bool = False  # once, since the agent started

    @property
    def has_failed(self) -> bool:
        return self.failures >= FAILURES_NEEDED

    @property
    def is_decided(self) -> bool:
        return self.was_well or self.has_failed

    def after(self, fault: str, now: datetime) -> "CheckState":
        if not fault:
            return msgspec.structs.replace(self, fault="", at=now, failures=0, since=None, was_well=True)
        since = self.since or now
        return msgspec.structs.replace(self, fault=fault, at=now, failures=self.failures + 1, since=since)

    def told(self) -> str:
        """What is wrong, since when, and what to do."""
        since = f"{self.since:%Y-%m-%dT%H:%M:%SZ}" if self.since else "now"
        return f"{self.name}: {self.fault} (since {since}); {self.fix}"


class Findings(msgspec.Struct, frozen=True):
    """Everything that was found out by now."""

    outcomes: Sequence[CheckState] = ()
    is_start_over: bool = False  # checks that are still silent are not waited for any longer
    disk: Disk | None = None  # None: could not be read so far
    state_fault: str = ""  # why the agent's own memory cannot be written; empty when it can
    guests: Mapping[str, int] = {}  # percentage used, by VM
    works_on: Sequence[str] | None = None  # None: not known


def node_conditions(found: Findings, node: Node | None) -> tuple[NodeCondition, ...]:
    """All conditions that are ours, given those that stand."""
    return (
        _ready(found, node.condition(READY) if node else None),
        _said(MEMORY_PRESSURE, FALSE, reasons.SUFFICIENT_MEMORY, "VMs get their memory when they start"),
        _disk_pressure(found, node.condition(DISK_PRESSURE) if node else None),
        _said(PID_PRESSURE, FALSE, reasons.SUFFICIENT_PIDS, "a VM costs the host a few processes"),
        _host_busy(found.works_on),
    )


def _ready(found: Findings, known: NodeCondition | None) -> NodeCondition:
    failed = [outcome for outcome in found.outcomes if outcome.has_failed or (found.is_start_over and _never_went(outcome))]
    if failed:
        return _said(READY, FALSE, failed[0].reason, "; ".join(outcome.told() for outcome in failed))
    silent = [outcome.name for outcome in found.outcomes if outcome.is_awaited and not outcome.is_decided]
    if silent and not found.is_start_over:
        if known is not None and known.status != UNKNOWN:
            return known
        return _said(READY, FALSE, reasons.NODE_STARTING, f"the agent has just started and waits for: {', '.join(silent)}")
    if known is not None and known.status == FALSE and any(_stands(outcome, known) for outcome in found.outcomes):
        return known
    proven = [outcome.name for outcome in found.outcomes if outcome.was_well]
    return _said(READY, TRUE, reasons.NODE_READY, f"looked at: {', '.join(proven)}" if proven else "")


def _never_went(outcome: CheckState) -> bool:
    """Nothing speaks for the host yet, so there is no Ready to keep for a hiccup."""
    return outcome.is_awaited and not outcome.was_well and bool(outcome.fault)


def _stands(outcome: CheckState, known: NodeCondition) -> bool:
    return outcome.reason.name == known.reason and not outcome.is_decided and not outcome.is_awaited


def _disk_pressure(found: Findings, known: NodeCondition | None) -> NodeCondition:
    disk = found.disk
    if found.state_fault:  # not a reason to be unready: that would cost the Pods that run their host
        message = f"the agent's memory cannot be written, so it takes on no Pod: {found.state_fault}"
        return _said(DISK_PRESSURE, TRUE, reasons.STATE_NOT_WRITABLE, message)
    if disk is None:
        if known is not None and known.status != UNKNOWN:
            return known
        return _said(DISK_PRESSURE, FALSE, reasons.SUFFICIENT_DISK, "the host's disk could not be read yet")
    if disk.free_percent >= DISK_FLOOR_PERCENT:
        return _said(DISK_PRESSURE, FALSE, reasons.SUFFICIENT_DISK, "")
    host = f"host root volume {disk.free_percent:.1f}% free (below {DISK_FLOOR_PERCENT:.0f}% floor)"
    message = "; ".join(filter(None, (host, guest_disks.in_words(found.guests))))
    return _said(DISK_PRESSURE, TRUE, reasons.DISK_NEARLY_FULL, message)


def _host_busy(works_on: Sequence[str] | None) -> NodeCondition:
    if works_on is None:
        return _said(HOST_BUSY, UNKNOWN, reasons.HOST_UNREADABLE, "what runs on the host is not known; take it as busy")
    if works_on:
        return _said(HOST_BUSY, TRUE, reasons.HOST_WORKS, host_busy.in_words(list(works_on)))
    return _said(HOST_BUSY, FALSE, reasons.HOST_IS_IDLE, "no VM, push or job runs")


def _said(type_: str, status: str, reason: ConditionReason, message: str) -> NodeCondition:
    return NodeCondition(type=type_, status=status, reason=reason.name, message=message)
