"""What a node's agent may ask for."""

import pytest

from applecart.embedded.auth.node_authorizer import NodeAuthorizer
from applecart.embedded.auth.node_graph import NodeGraph
from applecart.embedded.auth.user import NODES, User
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, asks, asks_path, node_user, pod, user

OWN = pod("ns", "own", "mac-1", serviceAccountName="robot", volumes=[{"name": "v", "secret": {"secretName": "s"}}])
FOREIGN = pod("ns", "foreign", "mac-2", serviceAccountName="other", volumes=[{"name": "v", "secret": {"secretName": "t"}}])
AUTHORIZER = NodeAuthorizer(NodeGraph(ObjectsInMemory(OWN, FOREIGN)))
UNRELATED = "no relationship found between node 'mac-1' and this object"
LEASES = "leases.coordination.k8s.io"

ALLOWED = [
    asks("get", "nodes", name="mac-1"),
    asks("watch", "nodes", name="mac-1"),
    asks("create", "nodes"),
    asks("patch", "nodes/status", name="mac-1"),
    asks("get", LEASES, "kube-node-lease", "mac-1"),
    asks("create", LEASES, "kube-node-lease"),
    asks("update", LEASES, "kube-node-lease", "mac-1"),
    asks("get", "pods", "ns", "own"),
    asks("list", "pods", fields="spec.nodeName=mac-1"),
    asks("watch", "pods", fields="status.phase!=Failed,spec.nodeName=mac-1"),
    asks("watch", "pods", "ns", "own"),
    asks("create", "pods", "ns"),
    asks("delete", "pods", "ns", "own"),
    asks("patch", "pods/status", "ns", "own"),
    asks("create", "pods/eviction", "ns", "own"),
    asks("get", "secrets", "ns", "s"),
    asks("list", "secrets", "ns", "s"),
    asks("watch", "secrets", "ns", "s"),
    asks("get", "serviceaccounts", "ns", "robot"),
    asks("create", "serviceaccounts/token", "ns", "robot"),
    asks("create", "events", "ns"),
    asks("patch", "events.events.k8s.io", "ns", "e"),
    asks("list", "services"),
    asks("watch", "runtimeclasses.node.k8s.io"),
    asks("create", "certificatesigningrequests.certificates.k8s.io"),
    asks("create", "tokenreviews.authentication.k8s.io"),
    asks("create", "subjectaccessreviews.authorization.k8s.io"),
]

DENIED = [
    (asks("list", "nodes"), "node 'mac-1' cannot read all nodes, only its own Node object"),
    (asks("get", "nodes", name="mac-2"), "node 'mac-1' cannot read 'mac-2', only its own Node object"),
    (asks("delete", "nodes", name="mac-1"), ""),
    (asks("get", "nodes/status", name="mac-1"), ""),
    (asks("get", LEASES, "kube-node-lease", "mac-2"), "can only access node lease with the same name as the requesting node"),
    (asks("get", LEASES, "default", "mac-1"), 'can only access leases in the "kube-node-lease" system namespace'),
    (asks("list", LEASES, "kube-node-lease"), "can only get, create, update, patch, or delete a node lease"),
    (asks("get", "pods", "ns", "foreign"), UNRELATED),
    (asks("list", "pods"), "can only list/watch pods with spec.nodeName field selector"),
    (asks("list", "pods", fields="spec.nodeName=mac-2"), "can only list/watch pods with spec.nodeName field selector"),
    (asks("list", "pods", fields="spec.nodeName!=mac-1"), "can only list/watch pods with spec.nodeName field selector"),
    (asks("list", "pods", fields="spec.nodeName=mac-1,odd"), "can only list/watch pods with spec.nodeName field selector"),
    (asks("update", "pods", "ns", "own"), ""),
    (asks("patch", "pods", "ns", "own"), ""),
    (asks("deletecollection", "pods", "ns"), ""),
    (asks("get", "pods/log", "ns", "own"), ""),
    (asks("create", "pods/exec", "ns", "own"), ""),
    (asks("create", "pods/binding", "ns", "own"), ""),
    (asks("get", "secrets", "ns", "t"), UNRELATED),
    (asks("get", "secrets", "other", "s"), UNRELATED),
    (asks("list", "secrets", "ns"), "No Object name found"),
    (asks("list", "secrets"), "can only read namespaced object of this type"),
    (asks("update", "secrets", "ns", "s"), "can only read resources of this type"),
    (asks("get", "configmaps", "ns", "s"), UNRELATED),
    (asks("create", "serviceaccounts/token", "ns", "other"), UNRELATED),
    (asks("create", "serviceaccounts", "ns"), "can only create tokens for individual service accounts"),
    (asks("create", "serviceaccounts", "ns", "robot"), "can only create token subresource of serviceaccount"),
    (asks("list", "serviceaccounts", "ns"), "can only create tokens for individual service accounts"),
    (asks("list", "persistentvolumeclaims", "ns"), "can only get individual resources of this type"),
    (asks("get", "persistentvolumes", name="pv"), UNRELATED),
    (asks("create", "clusterroles.rbac.authorization.k8s.io"), ""),
    (asks("get", "csinodes.storage.k8s.io", name="mac-1"), UNRELATED),
    (asks("list", "namespaces"), ""),
]


@pytest.mark.parametrize("question", ALLOWED, ids=str)
def test_a_node_reaches_its_own(question: object) -> None:
    assert AUTHORIZER.decide(node_user("mac-1"), question).allowed  # type: ignore[arg-type]


@pytest.mark.parametrize(("question", "reason"), DENIED, ids=str)
def test_a_node_reaches_nothing_else_and_hears_why(question: object, reason: str) -> None:
    decision = AUTHORIZER.decide(node_user("mac-1"), question)  # type: ignore[arg-type]
    assert (decision.allowed, decision.reason) == (False, reason)


@pytest.mark.parametrize(
    "someone", [user("system:node:mac-1"), user("mac-1", NODES), User("system:node:", (NODES,)), user("x")]
)
def test_a_user_without_the_name_or_the_group_of_a_node_is_none(someone: User) -> None:
    for question in ALLOWED:
        assert not AUTHORIZER.decide(someone, question).allowed


def test_paths_are_not_the_node_authorizers_business() -> None:
    assert not AUTHORIZER.decide(node_user("mac-1"), asks_path("get", "/metrics")).allowed
