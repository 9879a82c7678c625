"""Role-based access control over the committed roles and bindings.

What a user may do is derived once per (name, groups) and question, and is good until one of the four kinds changes: every
request passes here, so a known question must cost microseconds. Grants only add up; what no rule allows is denied. Never
looks at the objects a request is about.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import getsizeof

import msgspec

from applecart.api.meta import Key, Resource
from applecart.embedded.auth.roles import Rule, rules_of
from applecart.embedded.auth.rule_index import RuleIndex
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

MOST_KEPT = 16_384  # answers and users in all, each about 1 kB at most; a fleet asks some thousand things again and again
MOST_OF_A_USER = 2048  # of those; paths, verbs and resources are the caller's choice
LONGEST_KEPT = 1024  # bytes in memory of a question; each of its five words takes some 50 beside its letters
LONGEST_USER = 4096  # likewise, of a name and groups: some fifty of an organization
MOST_PROBLEMS = 100  # named in one denial


_UserKey = tuple[str, tuple[str, ...]]
_Place = tuple[str, str]  # a subject's kind and name


@dataclass(frozen=True, slots=True)
class _Binding:
    kind: str
    name: str  # and its namespace, as a decision names it
    namespace: str
    role: tuple[str, str]  # kind and name
    subjects: dict[_Place, str]  # as what kind each was named


@dataclass(slots=True)
class _Grant:
    """A role and what bound it."""

    role: RuleIndex
    binding: _Binding
    place: _Place
    allowed: Decision | None = None

    def decision(self) -> Decision:
        if self.allowed is None:
            (role_kind, role_name), binding = self.binding.role, self.binding
            kind, name = binding.subjects[self.place], self.place[1]
            if kind == "ServiceAccount":
                namespace, _, account = name.removeprefix(SERVICE_ACCOUNT_PREFIX).rpartition(":")
                name = f"{account}/{namespace}"
            role, subject = f"{role_kind} {go_quoted(role_name)}", f"{kind} {go_quoted(name)}"
            source = f"{binding.kind} {go_quoted(binding.name)} of {role} to {subject}"
            self.allowed = Decision(True, f"RBAC: allowed by {source}")
        return self.allowed


_Grants = tuple[list[_Grant], list[str]]  # and what could not be resolved
_NO_GRANTS: _Grants = ([], [])
# Which names of objects are allowed, by whom; and the decision about every other name.
_Answer = tuple[list[tuple[dict[str, int], int, Decision]], Decision]


@dataclass(slots=True)
class _Known:
    """What has been derived for one user."""

    is_kept: bool
    size: int = 1
    grants: dict[str, _Grants] = field(default_factory=dict)  # of the bindings of one namespace, or of the cluster's
    answers: dict[tuple[str, ...], _Answer] = field(default_factory=dict)


class Rbac:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._revisions: list[int] = []
        self._read_at: dict[str, dict[Key, int]] = {kind: {} for kind in KINDS}
        self._roles: dict[Key, RuleIndex] = {}  # those of the cluster have no namespace
        self._bindings: dict[str, dict[str, _Binding]] = {}  # by namespace, likewise, and name
        # Two generations: whoever was not seen during one is forgotten with it, and asking counts nothing.
        self._known: dict[_UserKey, _Known] = {}
        self._known_before: dict[_UserKey, _Known] = {}
        self._kept = 0  # of this generation

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
            if _bytes_of(question) <= LONGEST_KEPT:
                self._count(known, len(answer[0]))
                known.answers[question] = answer
        of_names, otherwise = answer
        for names, rules, decision in of_names:
            if names.get(attributes.name, 0) & rules:
                return decision
        return otherwise

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that hold for a user in a namespace ("" for cluster-wide ones alone), and what could not be resolved."""
        roles, problems = self.roles_for(user, namespace)
        return [rule for role in roles for rule in role.rules], problems

    def roles_for(self, user: User, namespace: str) -> tuple[list[RuleIndex], list[str]]:
        """The roles of those rules."""
        self._reload()
        grants, problems = self._grants(self._known_of(user), user, namespace)
        return list({id(grant.role): grant.role for grant in grants}.values()), problems

    def rules_of_reference(self, reference: Document, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in this namespace refers to; None when there is no such role."""
        self._reload()
        role = self._resolve((text(reference.get("kind")), text(reference.get("name"))), namespace)
        return role.rules if role else None

    def _known_of(self, user: User) -> _Known:
        key = (user.name, user.groups)
        known = self._known.get(key)
        if known is None:
            size_bytes = _bytes_of((user.name, *user.groups))
            known = self._known_before.pop(key, None) or _Known(size_bytes <= LONGEST_USER, 1 + size_bytes // LONGEST_KEPT)
            if known.is_kept:
                self._known[key] = known
                self._keep(known.size)
        return known

    def _count(self, known: _Known, parts: int) -> None:
        """Make room for something of a user."""
        if not known.is_kept:
            return
        if known.size >= MOST_OF_A_USER:
            known.grants.clear()
            known.answers.clear()
            known.size = 1
        size = 1 + parts // 8  # a part is a row of a list, an eighth of what an answer takes
        known.size += size
        self._keep(size)

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept >= MOST_KEPT // 2:
            self._known_before, self._known, self._kept = self._known, {}, 0

    def _answer(self, known: _Known, user: User, attributes: Attributes) -> _Answer:
        a = attributes
        grants, problems = self._grants(known, user, a.namespace if a.is_resource else "")
        of_names: list[tuple[dict[str, int], int, Decision]] = []
        for grant in grants:
            role = grant.role
            if not a.is_resource:
                if role.allows_path(a.verb, a.path):
                    return [], grant.decision()
            elif rules := role.about(a.verb, a.group, a.resource, a.subresource):
                if rules & role.unnamed:
                    return of_names, grant.decision()  # it allows every name, so later ones are never asked
                of_names.append((role.names, rules, grant.decision()))
        return of_names, Decision(False, f"RBAC: {aggregated(problems)}") if problems else NO_OPINION

    def _grants(self, known: _Known, user: User, namespace: str) -> _Grants:
        """What bindings of the cluster and of the namespace give."""
        everywhere = self._grants_in(known, user, "")
        here = self._grants_in(known, user, namespace) if namespace else _NO_GRANTS
        return everywhere if here is _NO_GRANTS else ([*everywhere[0], *here[0]], [*everywhere[1], *here[1]])

    def _grants_in(self, known: _Known, user: User, scope: str) -> _Grants:
        if scope not in self._bindings:
            return _NO_GRANTS  # a caller can invent any number of namespaces: nothing is kept of them
        found = known.grants.get(scope)
        if found is None:
            found = self._look_up(user, scope)
            self._count(known, len(found[0]) + len(found[1]))
            known.grants[scope] = found
        return found

    def _look_up(self, user: User, scope: str) -> _Grants:
        """Each role once, from the first binding by name: a hundred others of the same role add nothing."""
        places = dict.fromkeys([("User", user.name), *(("Group", group) for group in user.groups)])
        bindings = self._bindings[scope]
        # Disjoint views are found by a walk of the shorter one, so a binding of thousands costs no more than one of few.
        bound = sorted(name for name, one in bindings.items() if not one.subjects.keys().isdisjoint(places.keys()))
        first: dict[tuple[str, str], _Binding] = {}
        for name in bound:
            first.setdefault(bindings[name].role, bindings[name])
        grants: list[_Grant] = []
        problems: list[str] = []
        for binding in first.values():
            if (role := self._resolve(binding.role, scope)) is not None:
                grants.append(_Grant(role, binding, next(place for place in places if place in binding.subjects)))
            elif len(problems) < MOST_PROBLEMS:
                problems.append(_unresolved(*binding.role))
        return grants, problems

    def _resolve(self, role: tuple[str, str], namespace: str) -> RuleIndex | None:
        kind, name = role
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
                    self._roles[key] = RuleIndex(rules_of(document))
                    if not document:
                        del self._roles[key]
                else:
                    self._bind(key, document)
            self._read_at[kind] = now
        self._known, self._known_before, self._kept = {}, {}, 0
        self._revisions = revisions

    def _bind(self, key: Key, document: Document) -> None:
        """Whom a binding binds, instead of whom it bound before."""
        bindings = self._bindings.setdefault(key.namespace, {})
        bindings.pop(key.name, None)
        subjects: dict[_Place, str] = {}
        for subject in mappings(document.get("subjects")):
            if place := _place(subject, key.namespace):
                subjects.setdefault(place, subject["kind"])
        if subjects:
            kind = "RoleBinding" if key.namespace else "ClusterRoleBinding"
            shown = f"{key.name}/{key.namespace}" if key.namespace else key.name
            role = mapping(document.get("roleRef"))
            reference = (text(role.get("kind")), text(role.get("name")))
            bindings[key.name] = _Binding(kind, shown, key.namespace, reference, subjects)
        if not bindings:
            del self._bindings[key.namespace]


def _bytes_of(texts: Iterable[str]) -> int:
    """What these words of a caller take in memory: letters may be wide, and whatever is derived for them is kept with them."""
    return sum(map(getsizeof, texts))


def aggregated(problems: list[str]) -> str:
    """Several errors as one text."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _place(subject: Document, namespace: str) -> _Place | None:
    """Whom a subject means; None when nobody."""
    kind, name = text(subject.get("kind")), text(subject.get("name"))
    if kind in ("User", "Group"):
        return kind, name
    account_namespace = text(subject.get("namespace")) or namespace
    if kind != "ServiceAccount" or not account_namespace:
        return None
    return "User", f"{SERVICE_ACCOUNT_PREFIX}{account_namespace}:{name}"


def _unresolved(kind: str, name: str) -> str:
    if kind not in ("Role", "ClusterRole"):
        return f"unsupported role reference kind: {go_quoted(kind)}"
    return f"{kind.lower()}.{GROUP} {go_quoted(name)} not found"
