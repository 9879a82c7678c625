"""Why a Pod may not run on a node: one predicate per concern, each with the reason a person reads.

The order and the words are the real scheduler's: the first concern that fails speaks, and only room lists all that is short.
Facts (labels, taints) are judged once per shape and node, room (resources, ports, slots) at every decision; both are pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from applecart.embedded.controllers.scheduler.matching import has_labels, is_tolerated, matches_any, named_nodes
from applecart.embedded.controllers.scheduler.node_facts import UNSCHEDULABLE_TAINT, NodeFacts
from applecart.embedded.controllers.scheduler.requests import HostPort
from applecart.embedded.controllers.scheduler.wants import Shape

WERE_UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED_TAINT = "node(s) had untolerated taint(s)"
AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS = "Too many pods"
AFFINITY_CONFLICT = "pod affinity terms conflict"


class Shortage(NamedTuple):
    """What a node lacks now, and whether other Pods have it."""

    reasons: tuple[str, ...]
    is_held_by_pods: bool


class Room(Protocol):
    """What is left of a node."""

    @property
    def facts(self) -> NodeFacts: ...
    @property
    def free(self) -> Mapping[str, int]: ...
    @property
    def pod_count(self) -> int: ...
    @property
    def ports(self) -> Iterable[HostPort]: ...


def refuses_all(shape: Shape) -> str:
    """What keeps the Pod from every node whatever it looks like; empty when nothing does."""
    if shape.unserved:
        return f"{shape.unserved} is not served by this scheduler"
    if shape.required is not None and named_nodes(shape.required) == frozenset():
        return AFFINITY_CONFLICT
    return ""


def is_cordoned(shape: Shape, facts: NodeFacts) -> str:
    if facts.is_unschedulable and not is_tolerated(UNSCHEDULABLE_TAINT, shape.tolerations):
        return WERE_UNSCHEDULABLE
    return ""


def has_untolerated_taint(shape: Shape, facts: NodeFacts) -> str:
    return "" if all(is_tolerated(taint, shape.tolerations) for taint in facts.hard_taints) else UNTOLERATED_TAINT


def is_not_selected(shape: Shape, facts: NodeFacts) -> str:
    if not has_labels(facts.labels, dict(shape.selector)):
        return AFFINITY_MISMATCH
    if shape.required is not None and not matches_any(shape.required, facts.name, facts.labels):
        return AFFINITY_MISMATCH
    return ""


def is_not_named(shape: Shape, facts: NodeFacts) -> str:
    """First of all, and with words of its own: who names nodes never looks at the others."""
    names = named_nodes(shape.required) if shape.required is not None else None
    return "" if names is None or facts.name in names else NOT_NAMED


FACTS_PREDICATES: tuple[Callable[[Shape, NodeFacts], str], ...] = (
    is_not_named,
    is_cordoned,
    has_untolerated_taint,
    is_not_selected,
)


def refused_by_facts(shape: Shape, facts: NodeFacts) -> str:
    """The first reason that holds whatever else runs on the node; empty when there is none."""
    for predicate in FACTS_PREDICATES:
        if reason := predicate(shape, facts):
            return reason
    return ""


def has_room(shape: Shape, room: Room) -> bool:
    if room.pod_count >= room.facts.allowed_pods:
        return False
    free = room.free
    for resource, amount in shape.amounts:
        if amount > free.get(resource, 0):
            return False
    return not shape.ports or not ports_meet(shape.ports, room.ports)


def shortage(shape: Shape, room: Room) -> Shortage | None:
    """Why there is no room; None when there is."""
    if ports_meet(shape.ports, room.ports):
        return Shortage((PORTS_TAKEN,), is_held_by_pods=True)
    reasons = []
    is_held_by_pods = True
    if room.pod_count >= room.facts.allowed_pods:
        reasons.append(TOO_MANY_PODS)
    for resource, amount in shape.amounts:
        if amount > room.free.get(resource, 0):
            reasons.append(f"Insufficient {resource}")
            is_held_by_pods = is_held_by_pods and amount <= room.facts.allocatable.get(resource, 0)
    return Shortage(tuple(reasons), is_held_by_pods) if reasons else None


def ports_meet(wanted: Iterable[HostPort], taken: Iterable[HostPort]) -> bool:
    return any(port.meets(other) for port in wanted for other in taken)
