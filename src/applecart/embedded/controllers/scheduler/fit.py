"""Whether a Pod may run on a node, with the reason a person reads, and how well it would be there.

One predicate per concern. The order and the words are the real scheduler's: the first concern that fails speaks, and only room
lists all that is short. Facts (labels, taints) are judged once per shape and node, room (resources, ports, slots) at every
decision. A requirement that makes no sense (an operator nobody knows, a number that is none) matches no node, as in
Kubernetes: such a Pod waits, it does not land anywhere.

Of the nodes that fit, liking comes first: fewest soft taints, then most weight of preferred affinity (a runner prefers hosts
that hold its golden). Among equally liked nodes the emptiest wins. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from applecart.api.nodes import Taint
from applecart.api.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration
from applecart.embedded.controllers.scheduler.fleet import UNSCHEDULABLE_TAINT, NodeFacts, NodeRoom, Ports
from applecart.embedded.controllers.scheduler.pod_shape import ANY_ADDRESS, CPU, MEMORY, HostPort, PodShape

NAME_FIELD = "metadata.name"  # the only field of a node that a term may name
LONGEST_NUMBER_CHARS = 19  # of a signed 64-bit number; a longer one is no number to Kubernetes either

WERE_UNSCHEDULABLE = "node(s) were unschedulable"
UNTOLERATED_TAINT = "node(s) had untolerated taint(s)"
AFFINITY_MISMATCH = "node(s) didn't match Pod's node affinity/selector"
NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
PORTS_TAKEN = "node(s) didn't have free ports for the requested pod ports"
TOO_MANY_PODS = "Too many pods"
AFFINITY_CONFLICT = "pod affinity terms conflict"

SHARE_UNITS = 1_000_000  # shares are whole numbers, so no rounding of floats decides between two nodes
SHARED = (CPU, MEMORY)


def has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


def matches_any(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    return any(matches_term(term, name, labels) for term in selector.node_selector_terms)


def matches_term(term: NodeSelectorTerm, name: str, labels: Mapping[str, str]) -> bool:
    """All requirements hold; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {NAME_FIELD: name}
    return all(_holds(requirement, labels) for requirement in term.match_expressions) and all(
        _field_holds(requirement, fields) for requirement in term.match_fields
    )


def named_nodes(selector: NodeSelector) -> frozenset[str] | None:
    """The only nodes that the terms can mean by name; None when some term names none."""
    names: set[str] = set()
    for term in selector.node_selector_terms:
        of_term: set[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == NAME_FIELD and requirement.operator == "In":
                values = set(requirement.values)
                of_term = values if of_term is None else of_term & values
        if of_term is None:
            return None
        names |= of_term
    return frozenset(names) if selector.node_selector_terms else None


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in (None, "", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement.key), requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return bool(values) and (value is None or value not in values)
        case "Exists":
            return value is not None and not values
        case "DoesNotExist":
            return value is None and not values
        case "Gt" | "Lt":
            mine, limit = _number(value), _number(values[0] if len(values) == 1 else None)
            if mine is None or limit is None:
                return False
            return mine > limit if requirement.operator == "Gt" else mine < limit
    return False


def _field_holds(requirement: NodeSelectorRequirement, fields: Mapping[str, str]) -> bool:
    if len(requirement.values) != 1:
        return False
    is_equal = fields.get(requirement.key, "") == requirement.values[0]
    return requirement.operator == ("In" if is_equal else "NotIn")


def _number(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-").removeprefix("+")
    if text is None or not digits.isascii() or not digits.isdigit() or len(digits) > LONGEST_NUMBER_CHARS:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class Shortage(NamedTuple):
    """What a node lacks now, and whether other Pods have it."""

    reasons: tuple[str, ...]
    is_held_by_pods: bool


def refuses_all(shape: PodShape) -> str:
    """What keeps the Pod from every node whatever it looks like; empty when nothing does."""
    if shape.unserved:
        return f"{shape.unserved} is not served by this scheduler"
    if shape.required is not None and named_nodes(shape.required) == frozenset():
        return AFFINITY_CONFLICT
    return ""


def is_cordoned(shape: PodShape, facts: NodeFacts) -> str:
    if facts.is_unschedulable and not is_tolerated(UNSCHEDULABLE_TAINT, shape.tolerations):
        return WERE_UNSCHEDULABLE
    return ""


def has_untolerated_taint(shape: PodShape, facts: NodeFacts) -> str:
    return "" if all(is_tolerated(taint, shape.tolerations) for taint in facts.hard_taints) else UNTOLERATED_TAINT


def is_not_selected(shape: PodShape, facts: NodeFacts) -> str:
    if not has_labels(facts.labels, dict(shape.selector)):
        return AFFINITY_MISMATCH
    if shape.required is not None and not matches_any(shape.required, facts.name, facts.labels):
        return AFFINITY_MISMATCH
    return ""


def is_not_named(shape: PodShape, facts: NodeFacts) -> str:
    """First of all, and with words of its own: who names nodes never looks at the others."""
    names = named_nodes(shape.required) if shape.required is not None else None
    return "" if names is None or facts.name in names else NOT_NAMED


FACTS_PREDICATES: tuple[Callable[[PodShape, NodeFacts], str], ...] = (
    is_not_named,
    is_cordoned,
    has_untolerated_taint,
    is_not_selected,
)


def refused_by_facts(shape: PodShape, facts: NodeFacts) -> str:
    """The first reason that holds whatever else runs on the node; empty when there is none."""
    for predicate in FACTS_PREDICATES:
        if reason := predicate(shape, facts):
            return reason
    return ""


def has_room(shape: PodShape, room: NodeRoom) -> bool:
    if room.pod_count >= room.facts.allowed_pods:
        return False
    free = room.free
    for resource, amount in shape.amounts:
        if amount > free.get(resource, 0):
            return False
    return not shape.ports or not ports_meet(shape.ports, room.ports)


def fits(shape: PodShape, room: NodeRoom | None) -> bool:
    """Whether the node would take such a Pod now."""
    return room is not None and has_room(shape, room) and not refuses_all(shape) and not refused_by_facts(shape, room.facts)


def shortage(shape: PodShape, room: NodeRoom) -> Shortage | None:
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


def ports_meet(wanted: Iterable[HostPort], taken: Ports) -> bool:
    """Whether one of these can be had no more: somebody holds it on that address, or one of the two is meant for all."""
    return any(
        port.address == ANY_ADDRESS or port.address in holders or ANY_ADDRESS in holders
        for port in wanted
        if (holders := taken.get((port.port, port.protocol)))
    )


class Liking(NamedTuple):
    """What the Pod's own words say about a node; depends on nothing that runs there."""

    soft_taints: int
    less_weight: int  # the preferred weight, negated


def liking(shape: PodShape, facts: NodeFacts) -> Liking:
    soft = sum(not is_tolerated(taint, shape.tolerations) for taint in facts.soft_taints)
    weight = sum(
        preferred.weight for preferred in shape.preferred if matches_term(preferred.preference, facts.name, facts.labels)
    )
    return Liking(soft, -weight)


def emptiness(facts: NodeFacts, free: Mapping[str, int], pod_count: int) -> int:
    """How much of cpu, memory and Pod slots is left: the sum of three shares."""
    allowed = facts.allowed_pods
    left = (allowed - pod_count) * SHARE_UNITS // allowed if allowed > 0 else 0
    for resource in SHARED:
        offered = facts.allocatable.get(resource, 0)
        if offered > 0:
            left += free.get(resource, 0) * SHARE_UNITS // offered
    return left
