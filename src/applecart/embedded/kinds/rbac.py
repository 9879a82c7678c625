"""ServiceAccounts, Roles and their bindings: what a rule must say, and that a binding never changes its role.

Whether the writer may give away what a role allows is authorization's question (`auth`), not asked here.
"""

from collections.abc import Sequence
from typing import Any

from applecart.embedded.field_errors import FieldError, invalid, not_supported, required
from applecart.embedded.kinds.names import (
    SUBDOMAIN_MAX_BYTES,
    at_most,
    path_segment_problems,
    size_bytes,
    subdomain_problems,
    validate_choice,
    validate_label_selector,
    validate_name,
)
from applecart.embedded.kinds.strategy import Document, Strategy

GROUP = "rbac.authorization.k8s.io"
_SUBJECT_KINDS = ("ServiceAccount", "User", "Group")
MOST_RULES = 1000  # of a role; the largest that people write have some hundred
MOST_WORDS = 10_000  # in all lists of its rules
MOST_SUBJECTS = 5000  # of a binding; of more people there is a group
_WORDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def _name_problems(name: str, *, is_prefix: bool) -> list[str]:
    """A beginning is judged like a name. The length is our limit: every decision says the names of what allowed it."""
    problems = [at_most(SUBDOMAIN_MAX_BYTES)] if size_bytes(name) > SUBDOMAIN_MAX_BYTES else []
    return problems + path_segment_problems(name)


class _NamedFreely(Strategy):
    creates_on_update = True
    name_problems = staticmethod(_name_problems)
    granting: str  # the list that grants

    def __init__(self, *, namespaced: bool) -> None:
        self.namespaced = namespaced

    def validate_with(self, found: list[FieldError], obj: Document, old: Document | None) -> list[FieldError]:
        """What was stored without a limit may stay, so that it can be labelled and deleted."""
        found = super().validate_with(found, obj, old)
        if old is None or obj.get(self.granting) != old.get(self.granting):
            found += self.size_errors(obj, obj.get(self.granting) or ())
        return found

    def size_errors(self, obj: Document, granting: Sequence[dict[str, Any]]) -> list[FieldError]:
        """No limits of Kubernetes: ours, because each change is read on the event loop before the next request is decided."""
        raise NotImplementedError


class RoleStrategy(_NamedFreely):
    granting = "rules"

    def default(self, obj: Document) -> None:
        obj.setdefault("rules", None)

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            _validate_rule(rule, self.namespaced, f"rules[{index}]", errors)
        aggregation = obj.get("aggregationRule")
        if aggregation is not None and not self.namespaced:
            at = "aggregationRule.clusterRoleSelectors"
            selectors = aggregation.get("clusterRoleSelectors") or ()
            if not selectors:
                errors.append(required(at, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
            for index, selector in enumerate(selectors):
                validate_label_selector(selector, f"{at}[{index}]", errors)
        return errors

    def size_errors(self, obj: Document, granting: Sequence[dict[str, Any]]) -> list[FieldError]:
        if obj.get("aggregationRule") is not None and not self.namespaced:
            return []  # its rules are gathered by the server, and who writes one may do everything anyway
        words = sum(len(rule.get(member) or ()) for rule in granting for member in _WORDS)
        return [*_too_many(len(granting), MOST_RULES, "rules", "rules"), *_too_many(words, MOST_WORDS, "words", "rules")]


def _validate_rule(rule: dict[str, Any], namespaced: bool, at: str, errors: list[FieldError]) -> None:
    if not rule.get("verbs"):
        errors.append(required(f"{at}.verbs", "verbs must contain at least one value"))
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            text = "namespaced rules cannot apply to non-resource URLs"
            errors.append(invalid(f"{at}.nonResourceURLs", urls, text))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            text = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(f"{at}.nonResourceURLs", urls, text))
        return
    if not rule.get("apiGroups"):
        errors.append(required(f"{at}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(required(f"{at}.resources", "resource rules must supply at least one resource"))


class BindingStrategy(_NamedFreely):
    """RoleBinding and ClusterRoleBinding."""

    granting = "subjects"

    def default(self, obj: Document) -> None:
        ref = obj.setdefault("roleRef", {})
        if not ref.get("apiGroup"):
            ref["apiGroup"] = GROUP
        for name in ("kind", "name"):
            ref.setdefault(name, "")
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Document) -> list[FieldError]:
        errors: list[FieldError] = []
        ref = obj["roleRef"]
        kinds = ("Role", "ClusterRole") if self.namespaced else ("ClusterRole",)
        validate_choice(ref["apiGroup"], "roleRef.apiGroup", (GROUP,), errors)
        validate_choice(ref["kind"], "roleRef.kind", kinds, errors)
        validate_name(ref["name"], "roleRef.name", path_segment_problems, errors)
        for index, subject in enumerate(obj.get("subjects") or ()):
            _validate_subject(subject, self.namespaced, f"subjects[{index}]", errors)
        return errors

    def size_errors(self, obj: Document, granting: Sequence[dict[str, Any]]) -> list[FieldError]:
        return _too_many(len(granting), MOST_SUBJECTS, "subjects", "subjects")

    def validate_update(self, obj: Document, old: Document) -> list[FieldError]:
        if obj["roleRef"] == old.get("roleRef"):
            return []
        ref = obj["roleRef"]
        shown = {"APIGroup": ref["apiGroup"], "Kind": ref["kind"], "Name": ref["name"]}  # as the real server's struct has them
        return [invalid("roleRef", shown, "cannot change roleRef")]


def _too_many(size: int, most: int, what: str, path: str) -> list[FieldError]:
    return [FieldError("TooMany", path, f"must have at most {most} {what} in all", size)] if size > most else []


def _validate_subject(subject: dict[str, Any], namespaced: bool, at: str, errors: list[FieldError]) -> None:
    kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
    if not name:
        errors.append(required(f"{at}.name"))
    if kind == "ServiceAccount":
        if name:
            errors += [invalid(f"{at}.name", name, problem) for problem in subdomain_problems(name)]
        validate_choice(group, f"{at}.apiGroup", ("",), errors)
        if not namespaced and not subject.get("namespace"):
            errors.append(required(f"{at}.namespace"))
    elif kind in ("User", "Group"):
        validate_choice(group, f"{at}.apiGroup", (GROUP,), errors)
    else:
        errors.append(not_supported(f"{at}.kind", kind, _SUBJECT_KINDS))


class ServiceAccountStrategy(Strategy):
    def prepare_create(self, obj: Document) -> None:
        if obj.get("secrets"):
            obj["secrets"] = [{"name": one["name"]} if one.get("name") else {} for one in obj["secrets"]]

    def prepare_update(self, obj: Document, old: Document) -> None:
        self.prepare_create(obj)
