"""Role-based access control over the committed roles and bindings.

What a user may do is derived once per (name, groups) and question, and is good until one of the four kinds changes: every
request passes here, so a known question must cost microseconds. Grants only add up; what no rule allows is denied. Never
looks at the objects a request is about.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from applecart.api.meta import Key, Resource
from applecart.embedded.auth.roles import Rule, rules_of
from applecart.embedded.auth.untyped import Document, go_quoted, mapping, mappings, text
from applecart.embedded.auth.user import SERVICE_ACCOUNT_PREFIX, Attributes, User
from applecart.embedded.refusals import Refusal, details_of
from applecart.embedded.store.store import Reader


class Decision(msgspec.Struct, frozen=True):
    """Whether a request may go on. The reason of a denial is shown to the caller after the sentence of `denial`."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)
NO_OPINION = Decision(False)


def denial(user: User, attributes: Attributes, reason: str) -> Refusal:
    """The 403 of a request that nobody allowed."""
    sentence = _sentence(user, attributes)
    for sign, harmless in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # a browser must not read a name as markup
        sentence = sentence.replace(sign, harmless)
    if reason:
        sentence = f"{sentence}: {reason}"
    if not attributes.is_resource:
        return Refusal(403, "Forbidden", f"forbidden: {sentence}", {})
    resource = Resource(attributes.group, attributes.version, "", attributes.resource)
    about = f"{resource.label} {go_quoted(attributes.name)}" if attributes.name else resource.label
    return Refusal(403, "Forbidden", f"{about} is forbidden: {sentence}", details_of(resource, attributes.name))


def _sentence(user: User, attributes: Attributes) -> str:
    start = f"User {go_quoted(user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        return f"{start} path {go_quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    scope = f"in the namespace {go_quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{start} resource {go_quoted(resource)} in API group {go_quoted(attributes.group)} {scope}"


GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
KINDS = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)

MOST_USERS = 4096  # remembered; a fleet has some hundred, a flood of impersonated names must not fill the memory
MOST_ANSWERS = 2048  # per user; paths and namespaces are the caller's choice
LONGEST_KEPT = 1024  # characters of a question, or of a user with groups; what fleets use is a tenth of it


_Place = tuple[str, str, str]  # a subject's kind and name, and the namespace of what binds it


@dataclass(frozen=True, slots=True)
class _Binding:
    """One subject of a binding."""

    kind: str  # of the binding
    name: str
    namespace: str
    role_kind: str
    role_name: str
    described: tuple[str, str]  # the subject, as a decision names it

    @property
    def source(self) -> str:
        kind, name = self.described
        return f"{self.kind} {go_quoted(self.name)} of {self.role_kind} {go_quoted(self.role_name)} to {kind} {go_quoted(name)}"


@dataclass(slots=True)
class _Grant:
    """A rule and who gave it."""

    reason: str
    rule: Rule


@dataclass(slots=True)
class _Known:
    """What has been derived for one user."""

    grants: dict[str, tuple[list[_Grant], list[str]]] = field(default_factory=dict)
    answers: dict[tuple[str, ...], tuple[list[tuple[tuple[str, ...], Decision]], Decision]] = field(default_factory=dict)


class Rbac:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._revisions: list[int] = []
        self._read_at: dict[str, dict[Key, int]] = {kind: {} for kind in KINDS}
        self._roles: dict[Key, tuple[Rule, ...]] = {}  # those of the cluster have no namespace
        self._bindings: dict[_Place, dict[str, _Binding]] = {}  # likewise, by their names
        self._places: dict[Key, list[_Place]] = {}  # of a binding
        self._known: dict[tuple[str, tuple[str, ...]], _Known] = {}

    def decide(self, user: User, attributes: Attributes) -> Decision:
        changed_at = self._reader.changed_at
        if [changed_at(kind) for kind in KINDS] != self._revisions:
            self._reload()
        known = self._known_of(user)
        question: tuple[str, ...]
        if attributes.is_resource:
            a = attributes
            question = (a.namespace, a.verb, a.group, a.resource, a.subresource)
        else:
            question = (attributes.verb, attributes.path)
        answer = known.answers.get(question)
        if answer is None:
            answer = self._answer(known, user, attributes)
            if _are_short(question):
                if len(known.answers) >= MOST_ANSWERS:
                    known.answers.clear()
                known.answers[question] = answer
        allowances, denied = answer
        for names, decision in allowances:
            if not names or attributes.name in names:
                return decision
        return denied

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that hold for a user in a namespace ("" for cluster-wide ones alone), and what could not be resolved."""
        self._reload()
        known = self._known_of(user)
        grants, problems = self._grants(known, user, namespace)
        return [grant.rule for grant in grants], problems

    def rules_of_reference(self, reference: Document, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in this namespace refers to; None when there is no such role."""
        self._reload()
        return self._resolve(text(reference.get("kind")), text(reference.get("name")), namespace)

    def _known_of(self, user: User) -> _Known:
        key = (user.name, user.groups)
        known = self._known.get(key)
        if known is None:
            known = _Known()
            if _are_short((user.name, *user.groups)):
                if len(self._known) >= MOST_USERS:
                    self._known.clear()
                self._known[key] = known
        return known

    def _answer(
        self, known: _Known, user: User, attributes: Attributes
    ) -> tuple[list[tuple[tuple[str, ...], Decision]], Decision]:
        a = attributes
        grants, problems = self._grants(known, user, a.namespace if a.is_resource else "")
        allowances = []
        for grant in grants:
            rule = grant.rule
            if a.is_resource and rule.is_about(a.verb, a.group, a.resource, a.subresource):
                allowances.append((rule.names, Decision(True, grant.reason)))
            elif not a.is_resource and rule.allows_path(a.verb, a.path):
                allowances.append(((), Decision(True, grant.reason)))
            if allowances and not allowances[-1][0]:
                break  # it allows every name, so later ones are never asked
        return allowances, Decision(False, f"RBAC: {aggregated(problems)}" if problems else "")

    def _grants(self, known: _Known, user: User, namespace: str) -> tuple[list[_Grant], list[str]]:
        found = known.grants.get(namespace)
        if found is None:
            grants: list[_Grant] = []
            problems: list[str] = []
            for binding in self._bindings_of(user, namespace):
                rules = self._resolve(binding.role_kind, binding.role_name, binding.namespace)
                if rules is None:
                    problems.append(_unresolved(binding))
                else:
                    reason = f"RBAC: allowed by {binding.source}"
                    grants.extend(_Grant(reason, rule) for rule in rules)
            found = (grants, problems)
            if _are_short((namespace,)):
                if len(known.grants) >= MOST_ANSWERS:
                    known.grants.clear()
                known.grants[namespace] = found
        return found

    def _bindings_of(self, user: User, namespace: str) -> Iterator[_Binding]:
        subjects = [("User", user.name), *(("Group", group) for group in dict.fromkeys(user.groups))]
        for scope in ("", namespace) if namespace else ("",):
            found: dict[str, _Binding] = {}
            for kind, name in subjects:
                # One that names the user and a group of theirs counts once.
                found = {**self._bindings.get((kind, name, scope), {}), **found}
            yield from (found[name] for name in sorted(found))

    def _resolve(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        if kind == "ClusterRole":
            return self._roles.get(Key("", name))
        return self._roles.get(Key(namespace, name)) if kind == "Role" else None

    def _reload(self) -> None:
        """Read again what changed: one binding may name thousands, and thousands of bindings one."""
        reader = self._reader
        revisions = [reader.changed_at(kind) for kind in KINDS]
        if revisions == self._revisions:
            return
        previous = self._revisions or [-1] * len(KINDS)
        changed = {kind for kind, was, is_ in zip(KINDS, previous, revisions, strict=True) if was != is_}
        for kind in changed:
            before, now = self._read_at[kind], reader.revisions(kind)
            for key in [key for key in before if key not in now] + [key for key in now if now[key] != before.get(key)]:
                if bool(key.namespace) is (kind in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)):
                    continue  # a damaged one, which would hold where it was not meant to
                document = reader.get(kind, *key) or {}
                if kind in (ROLES, CLUSTER_ROLES):
                    self._roles[key] = rules_of(document)
                    if not document:
                        del self._roles[key]
                else:
                    self._bind(key, document)
            self._read_at[kind] = now
        self._known.clear()
        self._revisions = revisions

    def _bind(self, key: Key, document: Document) -> None:
        """Whom a binding binds, instead of whom it bound before."""
        for place in self._places.pop(key, ()):
            del self._bindings[place][key.name]
            if not self._bindings[place]:
                del self._bindings[place]
        kind = "RoleBinding" if key.namespace else "ClusterRoleBinding"
        role = mapping(document.get("roleRef"))
        role_kind, role_name = text(role.get("kind")), text(role.get("name"))
        shown = f"{key.name}/{key.namespace}" if key.namespace else key.name
        bound: dict[_Place, _Binding] = {}
        for subject in mappings(document.get("subjects")):
            who, described = _subject(subject, key.namespace)
            place = (*who, key.namespace)
            if who[0] and place not in bound:
                bound[place] = _Binding(kind, shown, key.namespace, role_kind, role_name, described)
        for place, binding in bound.items():
            self._bindings.setdefault(place, {})[key.name] = binding
        if bound:
            self._places[key] = list(bound)


def _are_short(texts: Iterable[str]) -> bool:
    """Whether what is derived for these words of a caller may be kept."""
    return sum(map(len, texts)) <= LONGEST_KEPT


def aggregated(problems: list[str]) -> str:
    """Several errors as one text."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _subject(subject: Document, namespace: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Whom a subject means, and how a decision names it; a kind of "" means nobody."""
    kind, name = text(subject.get("kind")), text(subject.get("name"))
    if kind in ("User", "Group"):
        return (kind, name), (kind, name)
    account_namespace = text(subject.get("namespace")) or namespace
    if kind != "ServiceAccount" or not account_namespace:
        return ("", ""), ("", "")
    return ("User", f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}"), (kind, f"{name}/{account_namespace}")


def _unresolved(binding: _Binding) -> str:
    if binding.role_kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {go_quoted(binding.role_kind)}"
    return f"{binding.role_kind.lower()}.{GROUP} {go_quoted(binding.role_name)} not found"
