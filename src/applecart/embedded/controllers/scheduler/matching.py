"""Whether a node's labels, name and taints are what a Pod names: selectors, affinity terms, tolerations.

Pure and without an opinion about what follows from it. A requirement that makes no sense (an operator nobody knows, a number
that is none) matches no node, as in Kubernetes: such a Pod waits, it does not land anywhere.
"""

from collections.abc import Iterable, Mapping

from applecart.api.nodes import Taint
from applecart.api.scheduling import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Toleration

NAME_FIELD = "metadata.name"  # the only field of a node that a term may name
LONGEST_NUMBER_CHARS = 19  # of a signed 64-bit number; a longer one is no number to Kubernetes either


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
    match requirement.operator:
        case "In":
            return is_equal
        case "NotIn":
            return not is_equal
    return False


def _number(text: str | None) -> int | None:
    digits = (text or "").removeprefix("-").removeprefix("+")
    if text is None or not digits.isascii() or not digits.isdigit() or len(digits) > LONGEST_NUMBER_CHARS:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
