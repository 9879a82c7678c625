"""The status of a Pod that is a VM, complete at every moment.

Pure: the Pod as the API has it, the journal's entry and what was seen of the guest in, the whole status out. It keeps what
others wrote (`PodScheduled`, the quality-of-service class, conditions of strangers), always says something about the
container, and only goes forward: a Pod that ended stays as it ended (I4), and one that runs does not fall back to Pending
because one look at its guest failed. `status_patch` is what of it the API does not know yet.
"""

from datetime import datetime
from typing import Any

import msgspec

from applecart.api import names
from applecart.api.conditions import CONTAINERS_READY, POD_INITIALIZED, POD_SCHEDULED, READY
from applecart.api.containers import (
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
)
from applecart.api.pods import FAILED, PENDING, RUNNING, HostIP, Pod, PodCondition, PodIP, PodStatus
from applecart.api.reasons import kubelet as reasons
from applecart.kube.conditions import FALSE, TRUE, find, is_true, set_condition
from applecart.kube.patch import Strategic, difference
from applecart.kubelet.entry import Exit, JournalEntry
from applecart.observe import published
from applecart.secrets import redact

READY_TO_START = "PodReadyToStartContainers"
CREATING = "ContainerCreating"
NOT_READY = "ContainersNotReady"
GATES_NOT_READY = "ReadinessGatesNotReady"
COMPLETED_POD, FAILED_POD = "PodCompleted", "PodFailed"


class View(msgspec.Struct, frozen=True):
    """What is known of the guest now. Empty means unknown, and what is unknown changes nothing."""

    host_ip: str = ""
    pod_ip: str = ""  # the guest's, or the host's where the host forwards its port
    is_ready: bool = True  # by its probes; asked only while it runs
    is_started: bool = True  # likewise
    not_ready: str = ""  # why, for people
    waiting: str = ""  # what is being done while it does not run, for people


def pod_status(pod: Pod, entry: JournalEntry | None, view: View, now: datetime) -> PodStatus:
    """What the API shall say of the Pod."""
    if pod.is_terminal:
        return pod.status
    if entry is not None and entry.exit is not None:
        return _ended(pod, entry, entry.exit, view, now)
    is_up = entry is not None and entry.booted_at is not None
    if is_up or pod.status.phase == RUNNING:
        return _running(pod, entry, view, now)
    return _pending(pod, entry, view, now)


def refused_status(pod: Pod, end: Exit, view: View, now: datetime) -> PodStatus:
    """Of a Pod that was never accepted."""
    return pod.status if pod.is_terminal else _ended(pod, None, end, view, now)


def status_patch(old: PodStatus, new: PodStatus, uid: str) -> Strategic | None:
    """The difference, which the API calls invalid when the name now belongs to another Pod; None when there is none."""
    changes: dict[str, Any] = {name: value or None for name, value in difference(old, new).items()}
    if not changes:
        return None
    if "conditions" in changes:
        changes["conditions"] = [_whole(each) for each in new.conditions if each not in old.conditions]
    for name, before, after in (("podIPs", old.pod_ips, new.pod_ips), ("hostIPs", old.host_ips, new.host_ips)):
        if name in changes:  # the API adds to these lists unless it is told what goes
            gone = [each for each in before if each not in after]
            changes[name] = [*({"ip": each.ip} for each in after), *({"$patch": "delete", "ip": each.ip} for each in gone)]
    return Strategic({"metadata": {"uid": uid}, "status": changes})


def _whole(condition: PodCondition) -> dict[str, Any]:
    """With what it does not say any more: the API merges a condition into the one it has."""
    return {"reason": None, "message": None, **msgspec.to_builtins(condition)}


def _pending(pod: Pod, entry: JournalEntry | None, view: View, now: datetime) -> PodStatus:
    trouble = entry.trouble if entry else None
    waiting = ContainerWaiting(reason=CREATING, message=_public(view.waiting))
    if trouble is not None:
        waiting = ContainerWaiting(reason=trouble.reason, message=_public(trouble.sentence))
    state = ContainerState(waiting=waiting)
    return _status(
        pod,
        entry,
        view,
        phase=PENDING,
        reason=reasons.CREATE_FAILED.name if trouble else "",
        message=waiting.message if trouble else "",
        containers=tuple(_container(each, entry, state) for each in pod.spec.containers),
        conditions=_conditions(pod, now, has_network=False, is_ready=False, reason=NOT_READY),
        now=now,
    )


def _running(pod: Pod, entry: JournalEntry | None, view: View, now: datetime) -> PodStatus:
    state = ContainerState(running=ContainerRunning(started_at=_started_at(pod, entry, now)))
    is_ready = view.is_ready and view.is_started
    return _status(
        pod,
        entry,
        view,
        phase=RUNNING,
        containers=tuple(
            _container(each, entry, state, is_ready=is_ready, is_started=view.is_started) for each in pod.spec.containers
        ),
        conditions=_conditions(pod, now, has_network=True, is_ready=is_ready, reason=NOT_READY, why=view.not_ready),
        now=now,
    )


def _ended(pod: Pod, entry: JournalEntry | None, end: Exit, view: View, now: datetime) -> PodStatus:
    terminated = ContainerTerminated(
        exit_code=end.code,
        signal=end.signal,
        reason=end.container_reason,
        message=_public(end.message),
        started_at=_second(entry.started_at) if entry and entry.started_at else None,
        finished_at=_second(end.finished_at or now),
        container_id=names.container_id(entry.vm) if entry and entry.started_at else "",
    )
    state = ContainerState(terminated=terminated)
    return _status(
        pod,
        entry,
        view,
        phase=end.phase,
        reason=end.reason,
        message=terminated.message,
        containers=tuple(_container(each, entry, state) for each in pod.spec.containers),
        conditions=_conditions(
            pod, now, has_network=False, is_ready=False, reason=FAILED_POD if end.phase == FAILED else COMPLETED_POD
        ),
        now=now,
    )


def _status(
    pod: Pod,
    entry: JournalEntry | None,
    view: View,
    *,
    phase: str,
    containers: tuple[ContainerStatus, ...],
    conditions: tuple[PodCondition, ...],
    now: datetime,
    reason: str = "",
    message: str = "",
) -> PodStatus:
    old = pod.status
    host_ip = view.host_ip or old.host_ip
    pod_ip = view.pod_ip or old.pod_ip
    return msgspec.structs.replace(
        old,
        phase=phase,
        reason=reason,
        message=message,
        conditions=conditions,
        container_statuses=containers,
        host_ip=host_ip,
        host_ips=(HostIP(ip=host_ip),) if host_ip else (),
        pod_ip=pod_ip,
        pod_ips=(PodIP(ip=pod_ip),) if pod_ip else (),
        start_time=old.start_time or _second(entry.accepted_at if entry else now),
    )


def _container(
    container: Container, entry: JournalEntry | None, state: ContainerState, *, is_ready: bool = False, is_started: bool = False
) -> ContainerStatus:
    return ContainerStatus(
        name=container.name,
        state=state,
        last_state=ContainerState(),  # as the API has it; None would be a difference for ever
        ready=is_ready,
        started=is_started,
        image=container.image,
        image_id=entry.digest if entry else "",
        container_id=names.container_id(entry.vm) if entry and entry.started_at else "",
    )


def _conditions(
    pod: Pod, now: datetime, *, has_network: bool, is_ready: bool, reason: str, why: str = ""
) -> tuple[PodCondition, ...]:
    conditions = pod.status.conditions
    shut = [gate.condition_type for gate in pod.spec.readiness_gates if not is_true(conditions, gate.condition_type)]
    unready = ", ".join(container.name for container in pod.spec.containers)
    message = f"containers with unready status: [{unready}]" if reason == NOT_READY else ""
    not_ready = PodCondition(
        type=CONTAINERS_READY, status=FALSE, reason=reason, message=": ".join(filter(None, (message, why)))
    )
    containers_ready = PodCondition(type=CONTAINERS_READY, status=TRUE) if is_ready else not_ready
    ready = msgspec.structs.replace(containers_ready, type=READY)
    if is_ready and shut:
        text = f"the readiness gates {', '.join(shut)} are not True"
        ready = PodCondition(type=READY, status=FALSE, reason=GATES_NOT_READY, message=text)
    initialized = PodCondition(type=POD_INITIALIZED, status=TRUE, reason=reason if reason == COMPLETED_POD else "")
    network = PodCondition(type=READY_TO_START, status=TRUE if has_network else FALSE)
    if find(conditions, POD_SCHEDULED) is None:  # whoever made the Pod chose its node, and no scheduler saw it
        conditions = set_condition(conditions, PodCondition(type=POD_SCHEDULED, status=TRUE), now)
    for condition in (network, initialized, containers_ready, ready):
        conditions = set_condition(conditions, condition, now)
    return conditions


def _started_at(pod: Pod, entry: JournalEntry | None, now: datetime) -> datetime:
    if entry is not None and entry.started_at is not None:
        return _second(entry.started_at)
    for known in pod.status.container_statuses:
        if known.state and known.state.running and known.state.running.started_at:
            return known.state.running.started_at
    return _second(now)


def _second(at: datetime) -> datetime:
    """As the API stores it; a finer time would differ from what comes back, and be sent for ever."""
    return at.replace(microsecond=0)


def _public(text: str) -> str:
    text = redact(text)
    published("status", text)
    return text
