"""What roles say: what a rule allows, whether rules cover others, and ClusterRoles that gather the rules of others by label.

A rule is about resources or about paths. Everything in it is an exact word, except `*` for everything, `*/scale` for a
subresource of everything, and a path that ends in `*`. A rule with names says nothing about requests without a name. The stored
`rules` of a gathering role are the union of what its selectors choose, so everybody who reads the role sees what it grants.
Pure: knows no bindings and no users.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from applecart.api.meta import LabelSelector
from applecart.embedded.auth.untyped import (
    Document,
    go_list,
    items,
    mapping,
    mappings,
    metadata,
    name_of,
    texts,
    texts_by_name,
)
from applecart.embedded.schema.budget import spend

if TYPE_CHECKING:
    from applecart.embedded.auth.rule_index import RuleIndex

ALL = "*"
MEMBERS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")  # of a rule as a document has them
MOST_SINGLE_RULES = 100_000  # of one comparison; the largest role of a cluster has some hundred, and lists multiply


class TooManyRules(Exception):
    """A role whose lists multiply to more than anybody can compare."""


class Rule(msgspec.Struct, frozen=True):
    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def is_about(self, verb: str, group: str, resource: str, subresource: str) -> bool:
        """Whether it allows the verb on the resource, for objects of `names` when there are any."""
        if not (ALL in self.verbs or verb in self.verbs) or not (ALL in self.groups or group in self.groups):
            return False
        if ALL in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        return (ALL in self.verbs or verb in self.verbs) and any(_path_covers(one, path) for one in self.paths)

    def document(self) -> Document:
        members = zip(MEMBERS, msgspec.structs.astuple(self), strict=True)
        return {name: list(value) for name, value in sorted(members) if value}

    def __str__(self) -> str:
        members = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "NonResourceURLs": self.paths,
            "ResourceNames": self.names,
            "Verbs": self.verbs,
        }
        return "{" + ", ".join(f"{name}:{go_list(value)}" for name, value in members.items() if value) + "}"


def read_rule(document: object) -> Rule:
    rule = mapping(document)
    return Rule(*(texts(rule.get(member)) for member in MEMBERS))


def rules_of(role: Document) -> tuple[Rule, ...]:
    """The rules of a Role or ClusterRole."""
    return tuple(read_rule(one) for one in mappings(role.get("rules")))


def missing(held: Sequence["RuleIndex"], wanted: Iterable[Rule]) -> list[Rule]:
    """Which parts of the wanted rules are not covered, one verb, resource and name each.

    Raises TooManyRules instead of comparing for minutes.
    """
    lacking = []
    for count, single in enumerate(_single_rules(wanted)):
        if count >= MOST_SINGLE_RULES:
            raise TooManyRules
        spend(1 + len(held))  # a role of 300 bytes multiplies to as many
        if not any(one.covers(single) for one in held):
            lacking.append(single)
    return lacking


def compacted(singles: Iterable[Rule]) -> list[Rule]:
    """Single rules about the same thing as one rule with all their verbs; those about paths stay apart."""
    verbs: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    kept = []
    for rule in singles:
        if rule.paths:
            kept.append(rule)
        else:
            verbs.setdefault((rule.groups, rule.resources, rule.names), []).extend(rule.verbs)
    return kept + [Rule(tuple(every), *about) for about, every in verbs.items()]


def _single_rules(rules: Iterable[Rule]) -> Iterator[Rule]:
    for rule in rules:
        for group in rule.groups:
            for resource in rule.resources:
                for verb in rule.verbs:
                    for name in rule.names or ("",):
                        yield Rule((verb,), (group,), (resource,), (name,) if rule.names else ())
        for path in rule.paths:
            for verb in rule.verbs:
                yield Rule((verb,), paths=(path,))


def _path_covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith(ALL) and path.startswith(pattern.rstrip(ALL)))


MOST_ROUNDS = 16  # a chain of labels is three long; roles that gather from each other in a circle must end


def is_aggregated(role: Document) -> bool:
    return bool(_selectors(role))


def plan_aggregation(roles: Sequence[Document]) -> dict[str, list[Document]]:
    """The rules of every aggregated ClusterRole whose stored ones are not what they must be, by name."""
    by_name = {name_of(role): role for role in sorted(roles, key=name_of)}
    labels = {name: texts_by_name(metadata(role).get("labels")) for name, role in by_name.items()}
    stored = {name: items(role.get("rules")) for name, role in by_name.items()}
    current = dict(stored)
    sources = {
        name: [
            other for selector in _selectors(role) for other in by_name if other != name and selects(selector, labels[other])
        ]
        for name, role in by_name.items()
        if is_aggregated(role)
    }
    for _ in range(MOST_ROUNDS):
        is_settled = True
        for name, others in sources.items():
            rules: dict[Rule, Document] = {}
            for other in others:
                for rule in mappings(current[other]):
                    rules.setdefault(read_rule(rule), rule)
            if (gathered := list(rules.values())) != current[name]:
                current[name] = gathered
                is_settled = False
        if is_settled:
            break
    return {name: current[name] for name in sources if current[name] is not stored[name]}


def selects(selector: Document, labels: dict[str, str]) -> bool:
    """Whether a label selector chooses an object; a selector that is empty chooses all, one that is wrong none."""
    try:
        return msgspec.convert(selector, LabelSelector).selects(labels)
    except msgspec.ValidationError:
        return False


def _selectors(role: Document) -> list[Document]:
    return mappings(mapping(role.get("aggregationRule")).get("clusterRoleSelectors"))
