"""Brings one Node's conditions and taints, and the readiness of its Pods, in line with what is known of its agent.

A Node is declared lost only after a live read says the same as the cache: a watch that silently stopped must not cost a
healthy host its Pods (I12). The words are the real controller's. NoSchedule follows every condition at once; NoExecute, which
makes Pods leave, follows Ready only, and only when `monitor.py` grants it. Taints of anybody else are kept. Every write names
the revision it was decided on. Never deletes a Pod and never touches a Node's finalizers.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from applecart.api.conditions import DISK_PRESSURE, MEMORY_PRESSURE, NETWORK_UNAVAILABLE, PID_PRESSURE, READY
from applecart.api.coordination import Lease
from applecart.api.events import NORMAL, WARNING
from applecart.api.meta import Key
from applecart.api.node_access import NODE_LEASES
from applecart.api.nodes import Node, NodeCondition, Taint
from applecart.api.pods import Pod, PodCondition
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats, Timing, seen
from applecart.embedded.controllers.pod_garbage import write_pod_status
from applecart.kube.client import Client
from applecart.kube.conditions import FALSE, TRUE, UNKNOWN
from applecart.kube.controller import DONE, Controller, Result, again_in
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.events import Recorder
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge, Strategic
from applecart.observe.logs import logger

KEPT_BY_THE_AGENT = (READY, MEMORY_PRESSURE, DISK_PRESSURE, PID_PRESSURE)
STOPPED_REASON, STOPPED = "NodeStatusUnknown", "Kubelet stopped posting node status."
NEVER_REASON, NEVER = "NodeStatusNeverUpdated", "Kubelet never posted node status."

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OF_CONDITION = {
    (READY, FALSE): NOT_READY,
    (READY, UNKNOWN): UNREACHABLE,
    (MEMORY_PRESSURE, TRUE): "node.kubernetes.io/memory-pressure",
    (DISK_PRESSURE, TRUE): "node.kubernetes.io/disk-pressure",
    (PID_PRESSURE, TRUE): "node.kubernetes.io/pid-pressure",
    (NETWORK_UNAVAILABLE, TRUE): "node.kubernetes.io/network-unavailable",
}
_KEPT_HERE = frozenset({(key, NO_SCHEDULE) for key in (*_OF_CONDITION.values(), UNSCHEDULABLE)}) | {
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
}

BY_NODE = "node"  # index of Pods
WORKERS = 8  # Nodes at a time; most of the work is waiting for the API
A_MOMENT = timedelta(seconds=1)  # the watch brings the change sooner


log = logger(__name__)


def readiness(node: Node) -> str:
    """The status of Ready; empty when nobody ever wrote one."""
    ready = node.condition(READY)
    return ready.status if ready is not None else ""


def lost_conditions(node: Node, now: datetime) -> list[NodeCondition]:
    """The conditions to write when nothing is heard of the agent; none when all say so already."""
    at = now.replace(microsecond=0)
    changed = []
    for type_ in KEPT_BY_THE_AGENT:
        known, reason, message = node.condition(type_), STOPPED_REASON, STOPPED
        if known is None:
            known = NodeCondition(type=type_, status="", last_heartbeat_time=node.metadata.creation_timestamp)
            reason, message = NEVER_REASON, NEVER
        if known.status != UNKNOWN:
            lost = msgspec.structs.replace(known, status=UNKNOWN, reason=reason, message=message, last_transition_time=at)
            changed.append(lost)
    return changed


def unready_condition(pod: Pod, now: datetime) -> PodCondition | None:
    """Ready=False for a Pod that still claims another readiness on a lost Node; None when there is nothing to write."""
    ready = pod.condition(READY)
    if ready is None or ready.status == FALSE:
        return None
    return msgspec.structs.replace(ready, status=FALSE, last_transition_time=now.replace(microsecond=0))


def was_ready(node: Node) -> bool:
    return readiness(node) == TRUE


def wanted_taints(node: Node, *, may_execute: bool, now: datetime) -> tuple[Taint, ...]:
    """All taints of the Node as they should be; the Node's own tuple when nothing has to change."""
    told = (_OF_CONDITION.get((condition.type, condition.status)) for condition in node.status.conditions)
    wanted = [(key, NO_SCHEDULE) for key in told if key]
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE, NO_SCHEDULE))
    lost = lost_key(node)
    if lost and may_execute:
        wanted.append((lost, NO_EXECUTE))
    kept = tuple(taint for taint in node.spec.taints if (_id := (taint.key, taint.effect)) not in _KEPT_HERE or _id in wanted)
    there = {(taint.key, taint.effect) for taint in kept}
    at = now.replace(microsecond=0)
    new = tuple(Taint(key=key, effect=effect, time_added=at) for key, effect in wanted if (key, effect) not in there)
    return node.spec.taints if not new and len(kept) == len(node.spec.taints) else (*kept, *new)


def lost_key(node: Node) -> str:
    """The key of the taint that makes Pods leave; empty while the Node is ready or never said."""
    return _OF_CONDITION.get((READY, readiness(node)), "")


def is_told_to_leave(node: Node) -> bool:
    """Whether the Node has one of our taints that make Pods leave."""
    return any(taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE) for taint in node.spec.taints)


def taints_that_evict(node: Node) -> tuple[Taint, ...]:
    return tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


def taints_that_still_evict(node: Node) -> tuple[Taint, ...]:
    """Without ours on a Node that is ready: they are about to go, and nobody may leave for them any more."""
    gone = (NOT_READY, UNREACHABLE) if was_ready(node) else ()
    return tuple(taint for taint in taints_that_evict(node) if taint.key not in gone)


async def write_conditions(client: Client, node: Node, conditions: list[NodeCondition]) -> Node:
    body = {"status": {"conditions": msgspec.to_builtins(conditions)}}
    return await client.patch_status(Node, node.key, Strategic(body), if_revision=node.revision)


async def write_taints(client: Client, node: Node, taints: tuple[Taint, ...]) -> Node:
    # The whole list: a strategic merge would join two effects of one key into one taint.
    body = {"spec": {"taints": msgspec.to_builtins(taints) or None}}
    return await client.patch(Node, node.key, Merge(body), if_revision=node.revision)


def by_node(pod: Pod) -> tuple[str, ...]:
    """The function of the index `BY_NODE`."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class NodeKeeper:
    def __init__(
        self, manager: Manager, heartbeats: Heartbeats, may_execute: Callable[[Node], bool], recorder: Recorder, timing: Timing
    ) -> None:
        self._client = manager.client
        self._nodes = manager.informer(Node)
        self._pods = manager.informer(Pod, indexes={BY_NODE: by_node})
        self._heartbeats = heartbeats
        self._may_execute = may_execute
        self._recorder = recorder
        self._clock = manager.clock
        self.controller: Controller[Key] = manager.controller(
            "nodes", self.reconcile, workers=WORKERS, deadline_s=timing.deadline_s
        )
        self.controller.watch(self._nodes, when=lambda change: change.new is not None and self._has_work(change.new))
        self.controller.read_from(self._pods)  # before they are known no Pod could be marked

    def look(self) -> None:
        """Queue the Nodes for which something is to be written."""
        for node in self._nodes:
            if self._has_work(node):
                self.controller.queue.add(node.key)

    async def reconcile(self, key: Key) -> Result:
        node = self._nodes.get(key)
        if node is None:
            return DONE
        try:
            node = await self._write(node)
        except (Conflict, NotFound):
            return again_in(A_MOMENT)  # it changed or went before we heard of it: decide again on what it is now
        if self._is_silent(node):
            await self._mark_pods(node)
        return DONE

    def _has_work(self, node: Node) -> bool:
        """Whether a reconcile would write anything: spares the queue a fleet that is well."""
        now = self._clock.now()
        if wanted_taints(node, may_execute=self._may_execute(node), now=now) is not node.spec.taints:
            return True
        if not self._is_silent(node):
            return False
        return bool(lost_conditions(node, now)) or any(
            unready_condition(pod, now) for pod in self._pods.by_index(BY_NODE, node.name)
        )

    async def _write(self, node: Node) -> Node:
        if self._is_silent(node) and lost_conditions(node, self._clock.now()):
            node = await self._declare_lost(node)
        taints = wanted_taints(node, may_execute=self._may_execute(node), now=self._clock.now())
        return node if taints is node.spec.taints else await write_taints(self._client, node, taints)

    def _is_silent(self, node: Node) -> bool:
        return self._heartbeats.is_attentive(self._clock.monotonic()) and self._heartbeats.is_silent(node.name)

    async def _declare_lost(self, node: Node) -> Node:
        """The Node as it stands then; unchanged when a live read shows that its agent lives."""
        live = await self._client.get(Node, node.key)
        try:
            lease: Lease | None = await self._client.get(Lease, Key(NODE_LEASES, node.name))
        except NotFound:
            lease = None
        if not self._heartbeats.confirm(self._clock.monotonic(), seen(live, lease)):
            log.bind(node.key).warning("a heartbeat arrived that the watch did not bring; the Node is not lost")
            return live
        conditions = lost_conditions(live, self._clock.now())
        if not conditions:
            return live
        lost = await write_conditions(self._client, live, conditions)
        log.bind(node.key).warning("nothing is heard of the Node's agent; its status is unknown")
        if was_ready(live):
            self._recorder.event(live, NORMAL, "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")
        return lost

    async def _mark_pods(self, node: Node) -> None:
        """The agent can no longer say so itself."""
        for pod in self._pods.by_index(BY_NODE, node.name):
            condition = unready_condition(pod, self._clock.now())
            if condition is not None and await write_pod_status(self._client, pod, condition):
                self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")
