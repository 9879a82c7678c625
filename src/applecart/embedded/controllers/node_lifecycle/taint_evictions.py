"""Makes Pods leave Nodes with a NoExecute taint, whoever put it there, when the time that they tolerate it is over.

The time counts from when we saw the taint, on our monotonic clock; a restart and a gap in which the API could not be read
begin it anew, so an outage of the control plane never evicts anybody (I12). Before a Pod is deleted, a live read of the Node
must show that the taint still stands. Only asks for the deletion, with the Pod's own grace: finalizers are others' work (I5).
"""

from collections.abc import Iterable
from datetime import timedelta

from applecart.api.events import NORMAL
from applecart.api.meta import Key
from applecart.api.nodes import Node, Taint
from applecart.api.pods import Pod
from applecart.api.scheduling import Toleration
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats, Timing
from applecart.embedded.controllers.node_lifecycle.nodes import BY_NODE, by_node, taints_that_evict, taints_that_still_evict
from applecart.embedded.controllers.pod_garbage import delete_pod, disrupted, write_pod_status
from applecart.embedded.controllers.scheduler.fit import is_tolerated
from applecart.kube.cache import Change
from applecart.kube.controller import DONE, Controller, Result, again_in
from applecart.kube.errors import NotFound
from applecart.kube.manager import Manager
from applecart.observe.logs import logger

FOREVER = None

WORKERS = 8  # Pods at a time; most of the work is waiting for the API
TICK_S = 0.001  # a rest of time so short that a timer for it might not move a clock
COMPONENT = "taint-eviction-controller"
REASON = "DeletionByTaintManager"
MESSAGE = "Taint manager: deleting due to NoExecute taint"
EVENT = "TaintManagerEviction"


log = logger(__name__)


def tolerated_s(tolerations: Iterable[Toleration], taints: Iterable[Taint]) -> float | None:
    """Seconds from when the taints were seen; 0 when one is not tolerated at all, FOREVER when nothing limits the stay.

    The first toleration that matches a taint speaks for it, and the shortest of them for the Pod.
    """
    tolerations = tuple(tolerations)
    shortest: float | None = FOREVER
    for taint in taints:
        used = next((toleration for toleration in tolerations if is_tolerated(taint, (toleration,))), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            limit_s = float(max(0, used.toleration_seconds))
            shortest = limit_s if shortest is None else min(shortest, limit_s)
    return shortest


class Evictions:
    def __init__(self, manager: Manager, heartbeats: Heartbeats, timing: Timing) -> None:
        self._client = manager.client
        self._nodes = manager.informer(Node)
        self._pods = manager.informer(Pod, indexes={BY_NODE: by_node})
        self._heartbeats = heartbeats
        self._recorder = manager.recorder(COMPONENT)
        self._clock = manager.clock
        self._timing = timing
        self._since: dict[Key, tuple[str, float]] = {}  # uid of a Pod that must leave, and since when
        controller: Controller[Key] = manager.controller(
            "evictions", self.reconcile, workers=WORKERS, deadline_s=timing.deadline_s
        )
        controller.watch(self._pods, when=_moves_or_tolerates)
        controller.watch(self._nodes, keys_of=self._pods_on, when=_taints_changed)

    def restart(self) -> None:
        """Everybody's time begins anew."""
        now_s = self._clock.monotonic()
        self._since = {key: (uid, now_s) for key, (uid, _) in self._since.items()}

    async def reconcile(self, key: Key) -> Result:
        pod = self._pods.get(key)
        node = self._nodes.get(Key("", pod.spec.node_name)) if pod is not None else None
        if pod is None or pod.is_being_deleted:
            self._since.pop(key, None)
            return DONE
        stay_s = tolerated_s(pod.spec.tolerations, taints_that_evict(node)) if node is not None else FOREVER
        if stay_s is FOREVER or node is None:
            if self._since.pop(key, None) is not None:
                self._recorder.event(pod, NORMAL, EVENT, f"Cancelling deletion of Pod {key}")
            return DONE
        now_s = self._clock.monotonic()
        since_s = self._seen_since_s(pod, now_s)
        left_s = since_s + stay_s - now_s
        if left_s > TICK_S:
            return again_in(timedelta(seconds=left_s))
        if stay_s > 0 and not self._heartbeats.is_attentive(now_s):
            return again_in(timedelta(seconds=self._timing.look_every_s))
        live_stay_s = await self._live_stay_s(pod, node)
        if live_stay_s is FOREVER or since_s + live_stay_s - now_s > TICK_S:
            return again_in(timedelta(seconds=self._timing.look_every_s))
        await self._evict(pod)
        return DONE

    def _seen_since_s(self, pod: Pod, now_s: float) -> float:
        uid, since_s = self._since.get(pod.key, ("", now_s))
        if uid != pod.uid:
            since_s = now_s
        self._since[pod.key] = (pod.uid, since_s)
        return since_s

    async def _live_stay_s(self, pod: Pod, node: Node) -> float | None:
        """By what the API holds now: the cache may not have heard yet that the taint is gone or the host back."""
        try:
            live = await self._client.get(Node, node.key)
        except NotFound:
            return FOREVER
        if live.uid != node.uid:
            return FOREVER
        return tolerated_s(pod.spec.tolerations, taints_that_still_evict(live))

    async def _evict(self, pod: Pod) -> None:
        self._recorder.event(pod, NORMAL, EVENT, f"Marking for deletion Pod {pod.key}")
        log.bind(pod.key).warning("a Pod leaves a Node with a NoExecute taint", node=pod.spec.node_name)
        if await write_pod_status(self._client, pod, disrupted(pod, REASON, MESSAGE, self._clock.now())):
            await delete_pod(self._client, pod)
        self._since.pop(pod.key, None)

    def _pods_on(self, node: Node) -> list[Key]:
        return [pod.key for pod in self._pods.by_index(BY_NODE, node.name)]


def _moves_or_tolerates(change: Change[Pod]) -> bool:
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return (old.spec.node_name, old.spec.tolerations) != (new.spec.node_name, new.spec.tolerations)


def _taints_changed(change: Change[Node]) -> bool:
    before = taints_that_evict(change.old) if change.old is not None else ()
    after = taints_that_evict(change.new) if change.new is not None else ()
    return before != after
