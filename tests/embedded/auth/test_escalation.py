"""Nobody grants more than they hold."""

from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.escalation import AGGREGATION_TEXT, refuse
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.budget import budget
from tests.embedded.auth.objects_in_memory import GROUP, LABELS, ObjectsInMemory, binding, role, rule, user
from tests.embedded.auth.test_roles import JSON

ALICE = user("alice", "devs")
PODS = rule("get list", "core", "pods")
SECRETS = rule("get", "core", "secrets")
LACKS = 'user "alice" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'


def judge(
    obj: Document, *held: Document, old: Document | None = None, someone: User = ALICE, more: tuple[Document, ...] = ()
) -> Refusal | None:
    authorizer = Authorizer(ObjectsInMemory(role("held", *held), binding("held", "held", "user:alice"), *more))
    return refuse(
        someone,
        LABELS[obj["kind"]],
        obj,
        old,
        authorizer.rbac,
        namespace=obj["metadata"].get("namespace", ""),
        name="" if old is None else obj["metadata"]["name"],
        is_allowed=authorizer.is_allowed,
    )


def text(refused: Refusal | None) -> str:
    assert refused is not None
    assert refused.code == 403
    return refused.message


@pytest.mark.parametrize("namespace", ["", "ns"])
def test_a_role_of_held_rights_may_be_written(namespace: str) -> None:
    assert judge(role("r", PODS, namespace=namespace), PODS) is None
    assert judge(role("r", rule("get", "core", "pods", names="one"), namespace=namespace), PODS) is None


def test_a_role_beyond_ones_rights_is_refused_and_names_what_is_missing() -> None:
    assert text(judge(role("r", PODS, SECRETS, rule("get", paths="/x")), PODS)) == (
        f'clusterroles.{GROUP} "r" is forbidden: {LACKS}'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}\n{NonResourceURLs:["/x"], Verbs:["get"]}'
    )
    assert text(judge(role("r", SECRETS, namespace="ns"), PODS)).startswith(f'roles.{GROUP} "r" is forbidden: user "alice"')


def test_a_binding_needs_all_rights_of_its_role() -> None:
    more = (role("wide", PODS, SECRETS), role("narrow", PODS), role("local", SECRETS, namespace="ns"))
    assert judge(binding("b", "narrow", "user:bob"), PODS, more=more) is None
    assert text(judge(binding("b", "wide", "user:bob"), PODS, more=more)) == (
        f'clusterrolebindings.{GROUP} "b" is forbidden: {LACKS}{{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}}'
    )
    local = binding("b", "local", "user:bob", namespace="ns", to_cluster_role=False)
    assert "not currently held" in text(judge(local, PODS, more=more))


def test_rights_held_in_a_namespace_can_be_granted_there_only() -> None:
    more = (role("wide", SECRETS), binding("local", "wide", "user:alice", namespace="ns"))
    assert judge(binding("b", "wide", "user:bob", namespace="ns"), more=more) is None
    assert judge(binding("b", "wide", "user:bob", namespace="other"), more=more) is not None
    assert judge(binding("b", "wide", "user:bob"), more=more) is not None


def test_a_role_is_held_against_roles_and_not_against_all_their_rules() -> None:
    """Whoever had some tens of roles of 1,000 rules kept the one worker for 8 s with each further one."""
    held = [rule("get", "core", "pods", names=f"n{number}") for number in range(200)]
    with budget(1000):
        assert judge(role("r", *held), *held) is None


def test_bind_and_escalate_are_rights_of_their_own() -> None:
    more = (role("wide", SECRETS),)
    may_bind = rule("bind", GROUP, "clusterroles", names="wide")
    assert judge(binding("b", "wide", "user:bob"), may_bind, more=more) is None
    assert judge(binding("b", "held", "user:bob"), rule("bind", GROUP, "roles"), more=more) is None
    other = (*more, role("other", SECRETS))
    assert judge(binding("b", "other", "user:bob"), may_bind, more=other) is not None
    assert judge(role("r", SECRETS), rule("escalate", GROUP, "clusterroles")) is None
    assert judge(role("r", SECRETS), rule("escalate", GROUP, "roles")) is not None
    named = rule("escalate", GROUP, "clusterroles", names="r")
    assert judge(role("r", SECRETS), named) is not None  # a create has no name to compare
    assert judge(role("r", SECRETS), named, old=role("r")) is None


def test_a_binding_to_a_role_that_is_not_there_is_not_found() -> None:
    refused = judge(binding("b", "nowhere", "user:bob"), PODS)
    assert refused is not None
    assert (refused.code, refused.message) == (404, f'clusterrolebindings.{GROUP} "nowhere" not found')


def test_masters_hold_everything() -> None:
    assert judge(role("r", rule("*", "*", "*")), someone=user("root", MASTERS)) is None
    assert judge(binding("b", "nowhere", "user:bob"), someone=user("root", MASTERS)) is None


def test_gathering_roles_need_everything() -> None:
    gathering = role("r", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    assert text(judge(gathering, PODS)).endswith(AGGREGATION_TEXT)
    assert text(judge(role("r", PODS), PODS, old=gathering)).endswith(AGGREGATION_TEXT)
    assert judge(gathering, rule("*", "*", "*"), rule("*", paths="*")) is None


def test_an_update_that_only_touches_owners_and_finalizers_is_no_grant() -> None:
    old = role("r", SECRETS)
    new = role("r", SECRETS, metadata={"finalizers": ["x"], "ownerReferences": [{"uid": "u"}], "resourceVersion": "9"})
    assert judge(new, PODS, old=old) is None
    relabelled = role("r", SECRETS, metadata={"labels": {"aggregate": "me"}})
    assert judge(relabelled, PODS, old=old) is not None


def test_a_role_too_large_to_compare_is_refused() -> None:
    many = " ".join(str(number) for number in range(100))
    assert "smaller roles" in text(judge(role("r", rule(many, many, many)), PODS))


def test_other_kinds_are_not_judged() -> None:
    authorizer = Authorizer(ObjectsInMemory())
    pod = {"kind": "Pod", "metadata": {"name": "p"}}
    assert refuse(ALICE, "pods", pod, None, authorizer.rbac, namespace="", name="", is_allowed=authorizer.is_allowed) is None


def test_rights_that_cannot_be_resolved_are_named() -> None:
    dangling = binding("dangling", "gone", "user:alice")
    assert text(judge(role("r", SECRETS), PODS, more=(dangling,))).endswith(
        f'; resolution errors: [clusterrole.{GROUP} "gone" not found]'
    )


@given(JSON, JSON)
def test_roles_and_bindings_of_any_shape_are_judged(content: Any, reference: Any) -> None:
    for kind in ("ClusterRole", "Role", "RoleBinding", "ClusterRoleBinding"):
        odd = {"kind": kind, "metadata": {"name": "r"}, "rules": content, "roleRef": reference, "aggregationRule": content}
        judge(odd, PODS)
        judge(odd, PODS, old={**odd, "rules": reference})
