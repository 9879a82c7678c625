"""Looks at all Nodes every few seconds: who is silent, how the fleet looks as a whole, whose Pods may have to leave.

A look waits until the API can be read: the watches are open (`Informer.following`) and a small live read is answered in time,
which a connection that died unnoticed cannot fake. While that is not so no look happens and no silence counts, and the first
look afterwards treats everybody as after a restart (I12). Only decides and queues; `nodes.py` and `taint_evictions.py` act.

When no Node is ready, the fault is ours or the network's: nobody is moved. When more than half of a zone is lost, a small zone
stops and a large one goes on slowly. Else lost Nodes are taken one by one at a steady rate. The thresholds are the real
controller's.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing

import msgspec

from applecart.api.coordination import Lease
from applecart.api.events import NORMAL
from applecart.api.meta import Key
from applecart.api.node_access import NODE_LEASES
from applecart.api.nodes import Node
from applecart.embedded.controllers.node_lifecycle.heartbeats import Heartbeats, Timing, seen
from applecart.embedded.controllers.node_lifecycle.nodes import (
    NodeKeeper,
    is_told_to_leave,
    lost_key,
    was_ready,
)
from applecart.embedded.controllers.node_lifecycle.taint_evictions import Evictions
from applecart.errors import ApplecartError
from applecart.kube.cache import Change
from applecart.kube.events import Recorder
from applecart.kube.manager import Manager
from applecart.observe.logs import logger

REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
NOT_COUNTED_LABEL = "node.kubernetes.io/exclude-disruption"
UNHEALTHY_SHARE = 0.55
FEW = 2  # lost Nodes that never make a zone suspicious, whatever share they are
LARGE_ZONE = 50  # Nodes; below that a zone that is mostly lost is left alone

Zone = tuple[str, str]

NODE_COMPONENT = "node-controller"


log = logger(__name__)


class Outlook(msgspec.Struct, frozen=True):
    """How the fleet looks: no Node is ready anywhere, or how many lost Nodes a second each zone may give up."""

    is_dark: bool
    nodes_per_s: dict[Zone, float] = {}


def zone_of(node: Node) -> Zone:
    labels = node.labels
    region = labels.get(OLD_REGION_LABEL, labels.get(REGION_LABEL, ""))
    return region, labels.get(OLD_ZONE_LABEL, labels.get(ZONE_LABEL, ""))


def outlook(nodes: Iterable[tuple[Node, bool]], timing: Timing) -> Outlook:
    """From all Nodes and whether each is ready."""
    counts: dict[Zone, tuple[int, int]] = {}
    for node, is_ready in nodes:
        if NOT_COUNTED_LABEL not in node.labels:
            ready, lost = counts.get(zone_of(node), (0, 0))
            counts[zone_of(node)] = (ready + is_ready, lost + (not is_ready))
    is_dark = not any(ready for ready, _ in counts.values())
    return Outlook(is_dark, {zone: _rate(ready, lost, timing) for zone, (ready, lost) in counts.items()})


def _rate(ready: int, lost: int, timing: Timing) -> float:
    is_partly_lost = ready > 0 and lost > FEW and lost / (ready + lost) >= UNHEALTHY_SHARE
    if not is_partly_lost:
        return timing.nodes_per_s  # also in a zone that is wholly lost while others live: its Pods have somewhere to go
    return timing.slow_nodes_per_s if ready + lost > LARGE_ZONE else 0.0


class Turns:
    """Lets one Node at a time go, at the rate of its zone."""

    def __init__(self) -> None:
        self._last_s: dict[Zone, float] = {}

    def take(self, zone: Zone, nodes_per_s: float, now_s: float) -> bool:
        last_s = self._last_s.get(zone)
        if nodes_per_s <= 0 or (last_s is not None and now_s - last_s < 1 / nodes_per_s):
            return False
        self._last_s[zone] = now_s
        return True


class Monitor:
    def __init__(self, manager: Manager, heartbeats: Heartbeats, recorder: Recorder, timing: Timing) -> None:
        self._client = manager.client
        self._nodes = manager.informer(Node)
        self._leases = manager.informer(Lease, NODE_LEASES)
        self._heartbeats = heartbeats
        self._recorder = recorder
        self._clock = manager.clock
        self._timing = timing
        self._turns = Turns()
        self._outlook: Outlook | None = None
        self._is_told_dark = False
        self._given_up: set[str] = set()  # names of Nodes whose turn has come
        self._nodes.on_change(self._node_changed)

    async def run(self, after_gap: Callable[[], None], looked: Callable[[], None]) -> None:
        """Look until cancelled. `after_gap` is called before anybody can act on what a gap hid."""
        while True:
            await self._nodes.following()
            await self._leases.following()
            if not await self._can_read():
                continue
            if self._look(self._clock.monotonic()):
                after_gap()
            looked()
            await asyncio.sleep(self._timing.look_every_s)

    async def _can_read(self) -> bool:
        began_s = self._clock.monotonic()
        try:
            async with (
                asyncio.timeout(self._timing.look_every_s),
                aclosing(self._client.pages(Lease, NODE_LEASES, page_size=1)) as pages,
            ):
                await anext(pages)
        except (ApplecartError, TimeoutError):
            # One that is refused at once must not be asked without a pause.
            await asyncio.sleep(max(0.0, began_s + self._timing.look_every_s - self._clock.monotonic()))
            return False
        return True

    def may_execute(self, node: Node) -> bool:
        """Whether a lost Node may have the taint that makes Pods leave; until the fleet was looked at, what stands stays."""
        if self._outlook is None:
            return is_told_to_leave(node)
        return not self._outlook.is_dark and (node.name in self._given_up or is_told_to_leave(node))

    def _look(self, now_s: float) -> bool:
        known = list(self._nodes)
        is_gap = self._heartbeats.look(now_s, [seen(node, self._leases.get(Key(NODE_LEASES, node.name))) for node in known])
        if is_gap and self._outlook is not None:
            log.warning("the API could not be read for a while; every Node gets a fresh grace period")
        was_dark = self._outlook is not None and self._outlook.is_dark
        now = outlook([(node, was_ready(node) and not self._heartbeats.is_silent(node.name)) for node in known], self._timing)
        self._outlook = now
        if now.is_dark and not was_dark and known:
            log.error("no Node is ready; nobody is evicted until one is", nodes=len(known))
            self._is_told_dark = True
        elif was_dark and not now.is_dark:
            if self._is_told_dark:  # not when the first Node of a new fleet appears
                log.warning("a Node is ready again; every Node gets a fresh grace period")
            self._is_told_dark = False
            self._heartbeats.forgive(now_s)
        self._give_up_in_turn(known, now, now_s)
        return is_gap

    def _give_up_in_turn(self, known: list[Node], now: Outlook, now_s: float) -> None:
        waiting = {node.name for node in known if lost_key(node) or self._heartbeats.is_silent(node.name)}
        self._given_up &= waiting
        if now.is_dark:
            self._given_up.clear()
            return
        for node in known:
            if node.name in waiting and node.name not in self._given_up:
                rate = now.nodes_per_s.get(zone_of(node), self._timing.nodes_per_s)
                if is_told_to_leave(node) or self._turns.take(zone_of(node), rate, now_s):
                    self._given_up.add(node.name)

    def _node_changed(self, change: Change[Node]) -> None:
        name = change.key.name
        if change.old is None and change.new is not None:
            text = f"Node {name} event: Registered Node {name} in Controller"
            self._recorder.event(change.new, NORMAL, "RegisteredNode", text)
        elif change.new is None and change.old is not None:
            text = f"Node {name} event: Removing Node {name} from Controller"
            self._recorder.event(change.old, NORMAL, "RemovingNode", text)


def add_node_lifecycle(manager: Manager, timing: Timing = Timing()) -> None:  # noqa: B008 (frozen)
    """The monitor, the keeper of Nodes and the evictions, on one view of who was heard of."""
    heartbeats, recorder = Heartbeats(timing), manager.recorder(NODE_COMPONENT)
    monitor = Monitor(manager, heartbeats, recorder, timing)
    keeper = NodeKeeper(manager, heartbeats, monitor.may_execute, recorder, timing)
    evictions = Evictions(manager, heartbeats, timing)
    manager.background("node monitor", lambda: monitor.run(evictions.restart, keeper.look))
