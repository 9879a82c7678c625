"""ClusterRoles that gather the rules of others by label.

The stored `rules` of such a role are the union of what its selectors choose, so everybody who reads the role sees what it
grants. Roles gather from roles that gather themselves (`view` into `edit` into `admin`), hence the fixed point. Pure; whoever
writes a ClusterRole writes the plan as well.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from applecart.embedded.auth.documents import Document, items, mapping, mappings, metadata, name_of, text, texts, texts_by_name
from applecart.embedded.auth.rules import read_rule

MOST_ROUNDS = 16  # a chain of labels is three long; roles that gather from each other in a circle must end


def is_aggregated(role: Document) -> bool:
    return bool(_selectors(role))


def aggregated_rules(role: Document, roles: Iterable[Document]) -> list[Document]:
    """What the role's rules must be, given all ClusterRoles."""
    by_name = sorted(roles, key=name_of)
    chosen = [
        other
        for selector in _selectors(role)
        for other in by_name
        if name_of(other) != name_of(role) and selects(selector, texts_by_name(metadata(other).get("labels")))
    ]
    rules: dict[Any, Document] = {}
    for other in chosen:
        for rule in mappings(other.get("rules")):
            rules.setdefault(read_rule(rule), rule)
    return list(rules.values())


def plan_aggregation(roles: Sequence[Document]) -> dict[str, list[Document]]:
    """The rules of every aggregated ClusterRole whose stored ones are not what they must be, by name."""
    gathering = {name_of(role) for role in roles if is_aggregated(role)}
    current = {name_of(role): role for role in roles}
    for _ in range(MOST_ROUNDS):
        is_settled = True
        for name in sorted(gathering):
            rules = aggregated_rules(current[name], current.values())
            if rules != items(current[name].get("rules")):
                current[name] = {**current[name], "rules": rules}
                is_settled = False
        if is_settled:
            break
    stored = {name_of(role): role for role in roles}
    return {name: items(current[name].get("rules")) for name in sorted(gathering) if current[name] is not stored[name]}


def selects(selector: Document, labels: dict[str, str]) -> bool:
    """Whether a label selector chooses an object; a selector that is empty chooses all, one that is wrong none."""
    wanted = mapping(selector.get("matchLabels"))
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    return all(_meets(one, labels) for one in mappings(selector.get("matchExpressions")))


def _selectors(role: Document) -> list[Document]:
    return mappings(mapping(role.get("aggregationRule")).get("clusterRoleSelectors"))


def _meets(expression: Document, labels: dict[str, str]) -> bool:
    name, values = text(expression.get("key")), texts(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return labels.get(name) in values
        case "NotIn":
            return labels.get(name) not in values
        case "Exists":
            return name in labels
        case "DoesNotExist":
            return name not in labels
    return False
