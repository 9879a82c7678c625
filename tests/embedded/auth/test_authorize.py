"""The chain of authorizers, and the texts of its denials."""

import pytest

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.bootstrap_policy import wanted
from applecart.embedded.auth.user import ANONYMOUS, MASTERS, Attributes, User
from applecart.embedded.refusals import Refusal
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, asks, asks_path, binding, node_user, pod, role, rule, user

ALICE = user("alice")


def message(someone: User, question: Attributes, *objects: dict[str, object]) -> str:
    with pytest.raises(Refusal) as caught:
        Authorizer(ObjectsInMemory(*objects)).check(someone, question)
    assert caught.value.code == 403
    return caught.value.message


def test_masters_may_do_everything_without_any_role() -> None:
    authorizer = Authorizer(ObjectsInMemory())
    for question in (asks("delete", "anything.any.group"), asks_path("post", "/x")):
        assert authorizer.decide(user("a", MASTERS), question).allowed


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            asks("list", "pods", "ns"),
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "ns"',
        ),
        (
            asks("list", "pods"),
            'pods is forbidden: User "alice" cannot list resource "pods" in API group "" at the cluster scope',
        ),
        (
            asks("get", "pods/log", "ns", "x"),
            'pods "x" is forbidden: User "alice" cannot get resource "pods/log" in API group "" in the namespace "ns"',
        ),
        (
            asks("get", "deployments.apps", "ns", "x"),
            'deployments.apps "x" is forbidden: User "alice" cannot get resource "deployments" in API group "apps" '
            'in the namespace "ns"',
        ),
        (asks_path("get", "/metrics"), 'forbidden: User "alice" cannot get path "/metrics"'),
        (asks_path("get", "/<b>"), 'forbidden: User "alice" cannot get path "/&lt;b&gt;"'),
    ],
)
def test_a_denial_says_who_cannot_do_what_where(question: Attributes, expected: str) -> None:
    assert message(ALICE, question) == expected


def test_a_denial_tells_what_is_broken() -> None:
    assert message(ALICE, asks("list", "pods"), binding("b", "none", "user:alice")).endswith(
        'at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io "none" not found'
    )


def test_a_node_hears_both_reasons() -> None:
    text = message(node_user("mac-1"), asks("get", "secrets", "ns", "s"), binding("b", "none", "group:system:nodes"))
    assert text.endswith(
        "no relationship found between node 'mac-1' and this object\n"
        'RBAC: clusterrole.rbac.authorization.k8s.io "none" not found'
    )


def test_roles_give_a_node_what_the_node_authorizer_does_not() -> None:
    objects = ObjectsInMemory(role("r", rule("list", "core", "nodes")), binding("b", "r", "group:system:nodes"))
    assert Authorizer(objects).decide(node_user("mac-1"), asks("list", "nodes")).allowed


def test_a_node_reads_what_its_pods_refer_to() -> None:
    objects = ObjectsInMemory(pod("ns", "p", "mac-1", imagePullSecrets=[{"name": "s"}]))
    authorizer = Authorizer(objects)
    objects.listeners.append(authorizer.graph.on_change)
    assert authorizer.is_allowed(node_user("mac-1"), asks("get", "secrets", "ns", "s"))
    objects.remove("Pod", "ns", "p")
    assert not authorizer.is_allowed(node_user("mac-1"), asks("get", "secrets", "ns", "s"))


@pytest.mark.parametrize(
    ("question", "is_allowed"),
    [
        (asks_path("get", "/healthz"), True),
        (asks_path("get", "/livez"), True),
        (asks_path("get", "/readyz"), True),
        (asks_path("get", "/version"), True),
        (asks_path("get", "/version/"), True),
        (asks_path("post", "/healthz"), False),
        (asks_path("get", "/livez/ping"), False),
        (asks_path("get", "/healthz/../api"), False),
        (asks_path("get", "/api"), False),
        (asks_path("get", "/openapi/v3"), False),
        (asks_path("get", "/metrics"), False),
        (asks("list", "pods"), False),
        (Attributes(verb="get", path="/healthz", is_resource=True), False),
    ],
)
def test_without_identity_only_health_and_version_are_open(question: Attributes, is_allowed: bool) -> None:
    assert Authorizer(ObjectsInMemory(*wanted())).decide(ANONYMOUS, question).allowed is is_allowed


def test_no_binding_opens_the_door_to_nobody_in_particular() -> None:
    objects = ObjectsInMemory(
        role("all", rule("*", "*", "*"), rule("*", paths="*")),
        binding("b", "all", "group:system:unauthenticated", "user:system:anonymous"),
    )
    authorizer = Authorizer(objects)
    for someone in (ANONYMOUS, User("system:anonymous"), User("x", ("system:unauthenticated",))):
        assert not authorizer.decide(someone, asks("list", "secrets")).allowed
        assert not authorizer.decide(someone, asks_path("get", "/metrics")).allowed
    assert not authorizer.decide(User("system:anonymous"), asks_path("get", "/healthz")).allowed
