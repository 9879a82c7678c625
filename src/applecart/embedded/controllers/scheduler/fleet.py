"""What every node still has to give: the Nodes as they say, less what their Pods take.

A Pod counts from when the API shows it on a node until it is seen to be finished or gone; one that is being deleted counts
until it is gone: two VMs per Mac is a hard limit. A binding whose outcome nobody knows holds its room until that is known,
however long. Of a Node only what decides is kept (`NodeFacts`): a heartbeat wakes nobody. Plain memory: no clock, no API.
"""

from collections.abc import Iterator

import msgspec

from applecart.api.conditions import READY
from applecart.api.nodes import Node, Taint
from applecart.embedded.controllers.scheduler.pod_shape import PODS, Amounts, HostPort, PodShape, amounts_of

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
NOT_READY_TAINT = Taint(key="node.kubernetes.io/not-ready", effect=NO_SCHEDULE)
UNREACHABLE_TAINT = Taint(key="node.kubernetes.io/unreachable", effect=NO_SCHEDULE)

Taken = tuple[tuple[str, int], ...]
Ports = dict[tuple[int, str], dict[str, int]]  # by number and protocol: how many hold it on each address


class NodeFacts(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}
    is_unschedulable: bool = False
    hard_taints: tuple[Taint, ...] = ()  # keep a Pod away
    soft_taints: tuple[Taint, ...] = ()  # make another node better
    allocatable: Amounts = {}

    @property
    def allowed_pods(self) -> int:
        return self.allocatable.get(PODS, 0)


def facts_of(node: Node) -> NodeFacts:
    taints = (*node.spec.taints, *_taints_of_readiness(node))
    return NodeFacts(
        name=node.name,
        labels=node.metadata.labels,
        is_unschedulable=node.spec.unschedulable,
        hard_taints=tuple(_undated(taint) for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)),
        soft_taints=tuple(_undated(taint) for taint in taints if taint.effect == PREFER_NO_SCHEDULE),
        allocatable=amounts_of(node.status.allocatable),
    )


def _taints_of_readiness(node: Node) -> tuple[Taint, ...]:
    """The taint that the node lifecycle controller is about to set: a Pod must not slip in before it does."""
    ready = node.condition(READY)
    if ready is None or ready.status == "True":
        return ()
    return (NOT_READY_TAINT if ready.status == "False" else UNREACHABLE_TAINT,)


def _undated(taint: Taint) -> Taint:
    return Taint(key=taint.key, effect=taint.effect, value=taint.value)


class Charge(msgspec.Struct, frozen=True):
    """What one Pod takes of one node."""

    node: str
    amounts: Taken
    ports: tuple[HostPort, ...]


class NodeRoom:
    """One node: its facts (None while only its Pods are known) and what is left of it."""

    __slots__ = ("_used", "facts", "free", "is_known", "pod_count", "ports")

    def __init__(self, name: str) -> None:
        self.facts = NodeFacts(name)
        self.is_known = False
        self.free: dict[str, int] = {}
        self.pod_count = 0
        self.ports: Ports = {}
        self._used: dict[str, int] = {}

    def learn(self, facts: NodeFacts, *, is_known: bool) -> None:
        self.facts, self.is_known = facts, is_known
        self.free = dict(facts.allocatable)
        for resource, amount in self._used.items():
            self.free[resource] = self.free.get(resource, 0) - amount

    def take(self, charge: Charge) -> None:
        self._count(charge, 1)
        for address, protocol, port in charge.ports:
            holders = self.ports.setdefault((port, protocol), {})
            holders[address] = holders.get(address, 0) + 1

    def give_back(self, charge: Charge) -> None:
        self._count(charge, -1)
        for address, protocol, port in charge.ports:
            holders = self.ports[port, protocol]
            holders[address] -= 1
            if not holders[address]:
                del holders[address]
            if not holders:
                del self.ports[port, protocol]

    def _count(self, charge: Charge, sign: int) -> None:
        self.pod_count += sign
        for resource, amount in charge.amounts:
            self._used[resource] = self._used.get(resource, 0) + sign * amount
            self.free[resource] = self.free.get(resource, 0) - sign * amount


class Fleet:
    def __init__(self) -> None:
        self._rooms: dict[str, NodeRoom] = {}
        self._charges: dict[str, Charge] = {}  # by uid
        self._held: set[str] = set()  # uids whose charge the API has not confirmed
        self.facts_version = 0  # moves when any node's facts do
        self.version = 0  # moves when anything does that a decision reads

    def __iter__(self) -> Iterator[NodeRoom]:
        """The nodes that exist."""
        return (room for room in self._rooms.values() if room.is_known)

    def node(self, name: str) -> NodeRoom | None:
        room = self._rooms.get(name)
        return room if room is not None and room.is_known else None

    # Nodes

    def observe_node(self, facts: NodeFacts) -> bool:
        """Whether this says anything new."""
        room = self._room(facts.name)
        if room.is_known and room.facts == facts:
            return False
        room.learn(facts, is_known=True)
        self._facts_changed()
        return True

    def forget_node(self, name: str) -> None:
        """The Node is gone. What its Pods take is remembered: a Node of that name may come back before they are gone."""
        if room := self._rooms.get(name):
            room.learn(NodeFacts(name), is_known=False)
            self._sweep(room)
            self._facts_changed()

    # Pods

    def observe_bound(self, uid: str, node: str, amounts: Taken, ports: tuple[HostPort, ...]) -> str:
        """The API says where the Pod is. The node that has more to give since, if any."""
        self._held.discard(uid)
        return self._charge(uid, Charge(node, amounts, ports))

    def hold(self, uid: str, node: str, shape: PodShape) -> None:
        """A binding to this node was asked for and may have come about."""
        self._charge(uid, Charge(node, shape.amounts, shape.ports))
        self._held.add(uid)

    def held_node(self, uid: str) -> str:
        return self._charges[uid].node if uid in self._held else ""

    def release(self, uid: str) -> str:
        """What was held did not come about. The node that has it back, if any."""
        return self.forget_pod(uid) if uid in self._held else ""

    def forget_pod(self, uid: str) -> str:
        """The Pod is finished or gone. The node that has more to give since, if any."""
        self._held.discard(uid)
        charge = self._charges.pop(uid, None)
        if charge is None:
            return ""
        room = self._rooms[charge.node]
        room.give_back(charge)
        self._sweep(room)
        self.version += 1
        return charge.node

    def _charge(self, uid: str, charge: Charge) -> str:
        if self._charges.get(uid) == charge:
            return ""
        freed = self.forget_pod(uid)
        self._charges[uid] = charge
        self._room(charge.node).take(charge)
        self.version += 1
        return freed

    def _room(self, name: str) -> NodeRoom:
        room = self._rooms.get(name)
        if room is None:
            room = self._rooms[name] = NodeRoom(name)
        return room

    def _sweep(self, room: NodeRoom) -> None:
        if not room.is_known and room.pod_count == 0:
            self._rooms.pop(room.facts.name, None)

    def _facts_changed(self) -> None:
        self.facts_version += 1
        self.version += 1
