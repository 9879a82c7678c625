"""Brings one Node's conditions and taints, and the readiness of its Pods, in line with what is known of its agent.

A Node is declared lost only after a live read says the same as the cache: a watch that silently stopped must not cost a
healthy host its Pods (I12). Decisions are in `verdict.py` and `taints.py`; who is silent and who may be given up is decided by
`monitor.py`. Never deletes a Pod and never touches a Node's finalizers.
"""

from collections.abc import Callable
from datetime import timedelta

from applecart.api.coordination import Lease
from applecart.api.events import NORMAL, WARNING
from applecart.api.meta import Key
from applecart.api.nodes import Node
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats, seen
from applecart.embedded.controllers.node_lifecycle.taints import wanted_taints
from applecart.embedded.controllers.node_lifecycle.verdict import lost_conditions, unready_condition, was_ready
from applecart.embedded.controllers.node_lifecycle.writes import write_conditions, write_taints
from applecart.embedded.controllers.pod_garbage.removal import write_pod_status
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.events import Recorder
from applecart.kube.informer import Informer
from applecart.kube.results import DONE, Result, again_in
from applecart.observe.logs import logger

LEASES = "kube-node-lease"  # the namespace where agents renew
BY_NODE = "node"  # index of Pods
A_MOMENT = timedelta(seconds=1)  # the watch brings the change sooner

log = logger(__name__)


def by_node(pod: Pod) -> tuple[str, ...]:
    """The function of the index `BY_NODE`."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class NodeKeeper:
    def __init__(
        self,
        client: Client,
        nodes: Informer[Node],
        pods: Informer[Pod],
        heartbeats: Heartbeats,
        may_execute: Callable[[Node], bool],
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._pods = pods
        self._heartbeats = heartbeats
        self._may_execute = may_execute
        self._recorder = recorder
        self._clock = clock

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

    def has_work(self, node: Node) -> bool:
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
        live, lease = await self._read_live(node)
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

    async def _read_live(self, node: Node) -> tuple[Node, Lease | None]:
        live = await self._client.get(Node, node.key)
        try:
            return live, await self._client.get(Lease, Key(LEASES, node.name))
        except NotFound:
            return live, None

    async def _mark_pods(self, node: Node) -> None:
        """The agent can no longer say so itself."""
        for pod in self._pods.by_index(BY_NODE, node.name):
            condition = unready_condition(pod, self._clock.now())
            if condition is not None and await write_pod_status(self._client, pod, condition):
                self._recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")
