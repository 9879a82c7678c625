"""Pods as rows: one word for what a Pod is doing, out of its phase, its containers and its deletion.

The order of the rules is the contract: an init container that has not ended hides the containers, a waiting or ended container
hides the phase, and a deletion hides everything but an end. People and scripts read `CrashLoopBackOff` and `Init:0/2` here.
"""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.tables.columns import AGE_TEXT, NAME, NONE, BuiltInTable, age

COLUMNS = (
    NAME,
    Column("Ready", description="Containers that are ready, of all."),
    Column("Status", description="What the Pod is doing."),
    Column("Restarts", description="Restarts of its containers, and how long ago the last one was."),
    AGE_TEXT,
    Column("IP", description="Address of the Pod.", priority=1),
    Column("Node", description="Node that runs the Pod.", priority=1),
    Column("Nominated Node", description="Node that is being made free for the Pod.", priority=1),
    Column("Readiness Gates", description="Extra conditions that hold, of all that are asked for.", priority=1),
)

NODE_LOST = "NodeLost"
_NOTHING: dict[str, Any] = {}

_ENDS = {
    "Succeeded": [
        {"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."}
    ],
    "Failed": [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
}


class _Restarts:
    """How often containers restarted, and when the last of them ended before."""

    __slots__ = ("count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last = ""

    def add(self, status: dict[str, Any]) -> None:
        self.count += status.get("restartCount") or 0
        if (ended := (status.get("lastState") or _NOTHING).get("terminated")) and (at := ended.get("finishedAt")):
            # Instants are stored in one form, UTC to the second, so that texts compare as instants do.
            self.last = max(self.last, at)

    def text(self, now: datetime) -> str:
        return f"{self.count} ({age(self.last, now)} ago)" if self.count and self.last else str(self.count)


def pod_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    spec = obj.get("spec") or _NOTHING
    status = obj.get("status") or _NOTHING
    conditions = {one.get("type"): one for one in reversed(status.get("conditions") or ())}
    phase = status.get("phase") or ""
    reason = status.get("reason") or phase
    if conditions.get("PodScheduled", _NOTHING).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"

    total = len(spec.get("containers") or ())
    ready = 0
    sidecars = _sidecars(spec)
    init_restarts, restarts = _Restarts(), _Restarts()
    init_reason = ""
    if init_statuses := status.get("initContainerStatuses"):
        init_reason, ready = _initialization(init_statuses, spec, sidecars, init_restarts, restarts)
    if init_reason:
        reason = init_reason
    if not init_reason or _is_true(conditions.get("Initialized")):
        reason, more_ready = _containers(status.get("containerStatuses") or [], reason, conditions, restarts)
        ready += more_ready
    else:
        restarts = init_restarts

    if metadata.get("deletionTimestamp"):
        if status.get("reason") == NODE_LOST:
            reason = "Unknown"
        elif phase not in _ENDS:
            reason = "Terminating"
    addresses = status.get("podIPs")
    return [
        metadata.get("name", ""),
        f"{ready}/{total + len(sidecars)}",
        reason,
        restarts.text(now),
        age(metadata.get("creationTimestamp"), now),
        (addresses[0].get("ip") if addresses else None) or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec.get("readinessGates"), conditions),
    ]


def _sidecars(spec: dict[str, Any]) -> tuple[str, ...]:
    """Init containers that keep running."""
    found = spec.get("initContainers")
    return tuple(one.get("name") for one in found if one.get("restartPolicy") == "Always") if found else ()


def _initialization(
    statuses: list[dict[str, Any]],
    spec: dict[str, Any],
    sidecars: tuple[str, ...],
    all_restarts: _Restarts,
    sidecar_restarts: _Restarts,
) -> tuple[str, int]:
    """What holds the start up ("" when nothing does), and how many sidecars are ready so far."""
    ready = 0
    for number, one in enumerate(statuses):
        is_sidecar = one.get("name") in sidecars
        all_restarts.add(one)
        if is_sidecar:
            sidecar_restarts.add(one)
        state = one.get("state") or _NOTHING
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and one.get("started"):
            ready += bool(one.get("ready"))
            continue
        if ended is not None:
            return f"Init:{_ended_reason(ended)}", ready
        waits_for = (state.get("waiting") or _NOTHING).get("reason")
        if waits_for and waits_for != "PodInitializing":
            return f"Init:{waits_for}", ready
        return f"Init:{number}/{len(spec.get('initContainers') or ())}", ready
    return "", ready


def _containers(
    statuses: list[dict[str, Any]], reason: str, conditions: dict[Any, dict[str, Any]], restarts: _Restarts
) -> tuple[str, int]:
    """The word of the containers, the first one's last, and how many are ready."""
    ready = 0
    failure = ""
    for one in reversed(statuses):
        restarts.add(one)
        state = one.get("state") or _NOTHING
        if (waiting := state.get("waiting")) and waiting.get("reason"):
            reason = waiting["reason"]
        elif (ended := state.get("terminated")) is not None:
            reason = _ended_reason(ended)
            if ended.get("exitCode"):
                failure = reason
        elif one.get("ready") and state.get("running") is not None:
            ready += 1
    if reason == "Completed":
        if ready and _is_true(conditions.get("Ready")):
            reason = "Running"
        elif failure:
            reason = failure
        elif ready:
            reason = "NotReady"
    return reason, ready


def _ended_reason(ended: dict[str, Any]) -> str:
    if reason := ended.get("reason"):
        return str(reason)
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode') or 0}"


def _is_true(condition: dict[str, Any] | None) -> bool:
    return condition is not None and condition.get("status") == "True"


def _gates(gates: list[dict[str, Any]] | None, conditions: dict[Any, dict[str, Any]]) -> str:
    if not gates:
        return NONE
    return f"{sum(_is_true(conditions.get(gate.get('conditionType'))) for gate in gates)}/{len(gates)}"


def pod_conditions(obj: Document) -> list[dict[str, str]] | None:
    status = obj.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    return _ENDS.get(phase) if isinstance(phase, str) else None


PODS = BuiltInTable(COLUMNS, pod_row, pod_conditions)
