"""Nobody grants more than they hold.

Writing a role needs all of its rules, or the verb `escalate` on it; writing a binding needs all rules of the role it refers to,
or the verb `bind` on that role. Otherwise the right to write roles would be the right to everything. A role that gathers others
by label can come to hold anything, so it needs everything. system:masters hold everything already.
"""

from collections.abc import Callable, Sequence

from applecart.api.meta import Resource
from applecart.embedded.auth.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, GROUP, ROLE_BINDINGS, ROLES, Rbac
from applecart.embedded.auth.roles import Rule, TooManyRules, compacted, is_aggregated, missing, rules_of
from applecart.embedded.auth.untyped import Document, go_list, go_quoted, mapping, metadata, name_of, text
from applecart.embedded.auth.user import MASTERS, Attributes, User
from applecart.embedded.refusals import Refusal, forbidden, not_found

EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), paths=("*",)))
AGGREGATION_TEXT = "must have cluster-admin privileges to use the aggregationRule"
# What the garbage collector changes on its way to a removal, and what every write changes.
_WITHOUT_EFFECT = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"})


def refuse(
    user: User,
    resource_label: str,
    obj: Document,
    old: Document | None,
    rbac: Rbac,
    *,
    namespace: str,
    name: str,
    is_allowed: Callable[[User, Attributes], bool],
) -> Refusal | None:
    """Why this user may not write this role or binding; None for every other kind.

    `namespace` and `name` are the request's own (a create has no name); `is_allowed` asks the authorizers.
    """
    if MASTERS in user.groups or (old is not None and _effective(obj) == _effective(old)):
        return None
    if resource_label in (ROLES, CLUSTER_ROLES):
        if is_allowed(user, _about("escalate", resource_label.partition(".")[0], namespace, name)):
            return None
        why = _lacks(user, rbac, namespace, rules_of(obj))
        gathers = is_aggregated(obj) or (old is not None and is_aggregated(old))
        if why is None and resource_label == CLUSTER_ROLES and gathers and _lacks(user, rbac, namespace, EVERYTHING):
            why = AGGREGATION_TEXT
        return forbidden(_resource(resource_label), name_of(obj), why) if why else None
    if resource_label in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
        return _refuse_binding(user, resource_label, obj, rbac, namespace, is_allowed)
    return None


def _refuse_binding(
    user: User, label: str, obj: Document, rbac: Rbac, namespace: str, is_allowed: Callable[[User, Attributes], bool]
) -> Refusal | None:
    reference = mapping(obj.get("roleRef"))
    kind, role = text(reference.get("kind")), text(reference.get("name"))
    plural = {"ClusterRole": "clusterroles", "Role": "roles"}.get(kind)
    if plural is None:
        return None  # validation refuses it, with the field
    if is_allowed(user, _about("bind", plural, namespace, role)):
        return None
    rules = rbac.rules_of_reference(reference, namespace)
    if rules is None:
        return not_found(_resource(label), role)  # under the binding's resource, as the real server answers it
    why = _lacks(user, rbac, namespace, rules)
    return forbidden(_resource(label), name_of(obj), why) if why else None


def _lacks(user: User, rbac: Rbac, namespace: str, wanted: Sequence[Rule]) -> str | None:
    """Which of the wanted rights the user does not hold, as a sentence."""
    held, problems = rbac.roles_for(user, namespace)
    try:
        lacking = missing(held, wanted)
    except TooManyRules:
        return "the lists of its rules multiply to more rights than can be compared; write several smaller roles"
    if not lacking:
        return None
    shown = "\n".join(sorted({str(rule) for rule in compacted(lacking)}))
    who = f"user {go_quoted(user.name)} (groups={go_list(user.groups)})"
    unresolved = f"; resolution errors: [{' '.join(problems)}]" if problems else ""
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{shown}{unresolved}"


def _about(verb: str, plural: str, namespace: str, name: str) -> Attributes:
    return Attributes(verb, is_resource=True, group=GROUP, version="*", resource=plural, namespace=namespace, name=name)


def _resource(label: str) -> Resource:
    return Resource(GROUP, "v1", "", label.partition(".")[0])


def _effective(obj: Document) -> Document:
    return {**obj, "metadata": {member: value for member, value in metadata(obj).items() if member not in _WITHOUT_EFFECT}}
