"""What a node may write."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.node_restriction import AUDIENCE_VERB, forbidden_labels, refuse
from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import Attributes, User
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, node_user, plain, pod, user
from tests.embedded.auth.test_roles import JSON

NODE = {**plain("Node", "", "mac-1"), "metadata": {"name": "mac-1", "uid": "node-uid"}}
OWN = {**pod("ns", "own", "mac-1"), "metadata": {"name": "own", "namespace": "ns", "uid": "own-uid", "labels": {"a": "1"}}}
FOREIGN = pod("ns", "foreign", "mac-2")
OBJECTS = ObjectsInMemory(NODE, OWN, FOREIGN)
OWNER = {"apiVersion": "v1", "kind": "Node", "name": "mac-1", "uid": "node-uid", "controller": True}


def judge(
    verb: str,
    label: str,
    obj: Document | None = None,
    old: Document | None = None,
    *,
    namespace: str = "ns",
    name: str = "",
    someone: User | None = None,
    allows: bool = False,
) -> str | None:
    resource, _, subresource = label.partition("/")

    def is_allowed(asking: User, asked: Attributes) -> bool:
        return allows and asked.verb == AUDIENCE_VERB

    who = someone or node_user("mac-1")
    return refuse(who, verb, resource, subresource, obj, old, OBJECTS, namespace=namespace, name=name, is_allowed=is_allowed)


def mirror(owners: list[Document] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    node = spec.pop("node", "mac-1")
    document = pod("ns", "m", node, **spec)
    annotations = {MIRROR_ANNOTATION: "x"} if annotations is None else annotations
    document["metadata"] |= {"annotations": annotations, "ownerReferences": [OWNER] if owners is None else owners}
    return document


def node(labels: dict[str, str] | None = None, **spec: Any) -> Document:
    return {"kind": "Node", "metadata": {"name": "mac-1", "labels": labels or {}}, "spec": spec}


def test_others_than_nodes_are_not_judged() -> None:
    assert judge("update", "nodes", node(), node(), name="mac-2", someone=user("admin")) is None


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (mirror(), None),
        (mirror(volumes=[{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "emptyDir": {}}]), None),
        (
            mirror(annotations={}),
            f'pod does not have "{MIRROR_ANNOTATION}" annotation, node "mac-1" can only create mirror pods',
        ),
        (mirror(node="mac-2"), 'node "mac-1" can only create pods with spec.nodeName set to itself'),
        (mirror([]), 'node "mac-1" can only create pods with an owner reference set to itself'),
        (mirror([OWNER, OWNER]), 'node "mac-1" can only create pods with a single owner reference set to itself'),
        (mirror([{**OWNER, "name": "mac-2"}]), 'node "mac-1" can only create pods with an owner reference set to itself'),
        (mirror([{**OWNER, "kind": "Pod"}]), 'node "mac-1" can only create pods with an owner reference set to itself'),
        (
            mirror([{**OWNER, "controller": False}]),
            'node "mac-1" can only create pods with a controller owner reference set to itself',
        ),
        (mirror([{**OWNER, "blockOwnerDeletion": True}]), 'node "mac-1" must not set blockOwnerDeletion on an owner reference'),
        (mirror([{**OWNER, "uid": "x"}]), "node mac-1 UID mismatch: expected x got node-uid"),
        (mirror(serviceAccountName="s"), 'node "mac-1" can not create pods that reference serviceaccounts'),
        (mirror(imagePullSecrets=[{"name": "s"}]), 'node "mac-1" can not create pods that reference secrets'),
        (
            mirror(containers=[{"envFrom": [{"configMapRef": {"name": "c"}}]}]),
            'node "mac-1" can not create pods that reference configmaps',
        ),
        (mirror(resourceClaims=[{"name": "c"}]), 'node "mac-1" can not create pods that reference resourceclaims'),
        (
            mirror(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
            'node "mac-1" can not create pods that reference persistentvolumeclaims',
        ),
        (
            mirror(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]),
            'node "mac-1" can not create pods that reference serviceaccounts (via projected volumes)',
        ),
        (
            mirror(volumes=[{"name": "v", "odd": {}}]),
            'error checking mirror pod for API references: unknown volume type for volume  "v"',
        ),
        (
            mirror(volumes=[{"name": "v", "projected": {"sources": [{}]}}]),
            'error checking mirror pod for API references: unknown source for projected volume "v"',
        ),
    ],
)
def test_a_node_creates_only_mirror_pods_of_its_own_that_refer_to_nothing(document: Document, reason: str | None) -> None:
    assert judge("create", "pods", document) == reason


def test_a_node_deletes_and_evicts_only_pods_bound_to_it() -> None:
    assert judge("delete", "pods", old=OWN, name="own") is None
    assert judge("delete", "pods", name="absent") is None
    assert judge("delete", "pods", old=FOREIGN, name="foreign") == (
        'node "mac-1" can only delete pods with spec.nodeName set to itself'
    )
    eviction = {"kind": "Eviction", "metadata": {"name": "own"}}
    assert judge("create", "pods/eviction", eviction, name="own") is None
    assert judge("create", "pods/eviction", eviction, name="foreign") == (
        "node mac-1 can only evict pods with spec.nodeName set to itself"
    )


@pytest.mark.parametrize("verb", ["update", "patch"])
def test_a_node_never_changes_a_pod_itself(verb: str) -> None:
    assert judge(verb, "pods", OWN, OWN, name="own") == (
        'unexpected operation "UPDATE", node "mac-1" can only create and delete mirror pods'
    )
    assert judge(verb, "pods/ephemeralcontainers", OWN, OWN, name="own") == (
        "unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' are allowed"
    )


def test_a_node_writes_the_status_of_its_own_pods_and_not_their_labels() -> None:
    running = {**OWN, "status": {"phase": "Running"}}
    assert judge("patch", "pods/status", running, OWN, name="own") is None
    assert judge("patch", "pods/status", FOREIGN, FOREIGN, name="foreign") == (
        'node "mac-1" can only update pod status for pods with spec.nodeName set to itself'
    )
    relabelled = {**OWN, "metadata": {**OWN["metadata"], "labels": {"a": "2"}}}
    assert judge("patch", "pods/status", relabelled, OWN, name="own") == (
        'node "mac-1" cannot update labels through pod status'
    )
    claims = {**OWN, "status": {"resourceClaimStatuses": [{"name": "c"}]}}
    assert judge("patch", "pods/status", claims, OWN, name="own") == 'node "mac-1" cannot update resource claim statues'


@pytest.mark.parametrize(
    ("new", "old", "reason"),
    [
        (node({"kubernetes.io/hostname": "x", "team": "y"}, taints=[{"key": "k"}]), None, None),
        (node({"node.kubernetes.io/anything": "x", "a.kubelet.kubernetes.io/b": "y"}), None, None),
        (
            node({"node-restriction.kubernetes.io/team": "x", "evil.k8s.io/x": "y", "fine": "z"}),
            None,
            'node "mac-1" is not allowed to set the following labels: evil.k8s.io/x, node-restriction.kubernetes.io/team',
        ),
        (node(configSource={"a": 1}), None, 'node "mac-1" is not allowed to create pods with a non-nil configSource'),
        (node({"team": "x"}), node({"team": "y"}), None),
        (node(taints=[]), node(), None),
        (node(taints=[{"key": "k"}]), node(), 'node "mac-1" is not allowed to modify taints'),
        (node(), node(taints=[{"key": "k"}]), 'node "mac-1" is not allowed to modify taints'),
        (
            node({"node-role.kubernetes.io/x": ""}),
            node(),
            "is not allowed to modify labels: node-role.kubernetes.io/x",
        ),
        (
            node(),
            node({"node-restriction.kubernetes.io/x": ""}),
            "is not allowed to modify labels: node-restriction.kubernetes.io/x",
        ),
        (node({"kubernetes.io/os": "x"}), node({"kubernetes.io/os": "y"}), None),
        (
            node(configSource={"a": 1}),
            node(),
            'node "mac-1" is not allowed to update configSource to a new non-nil configSource',
        ),
        (node(), node(configSource={"a": 1}), None),
        (
            {**node(), "metadata": {"name": "mac-1", "ownerReferences": [OWNER]}},
            node(),
            'node "mac-1" is not allowed to modify ownerReferences',
        ),
    ],
)
def test_a_node_may_not_steer_work_to_itself(new: Document, old: Document | None, reason: str | None) -> None:
    verb = "create" if old is None else "patch"
    assert judge(verb, "nodes", new, old, namespace="", name="" if old is None else "mac-1") == reason
    if old is not None:
        assert judge(verb, "nodes/status", new, old, namespace="", name="mac-1") == reason


def test_a_node_writes_no_other_node() -> None:
    reason = 'node "mac-1" is not allowed to modify node "mac-2"'
    other = {"metadata": {"name": "mac-2"}}
    assert judge("create", "nodes", other, namespace="") == reason
    assert judge("update", "nodes", other, other, namespace="", name="mac-2") == reason
    assert judge("patch", "nodes/status", other, other, namespace="", name="mac-2") == reason


def test_an_apply_that_creates_is_judged_as_a_creation() -> None:
    labels = {"node-restriction.kubernetes.io/team": "x"}
    assert "is not allowed to set" in str(judge("patch", "nodes", node(labels), None, namespace="", name="mac-1"))


def test_a_node_has_one_lease() -> None:
    lease = {"metadata": {"name": "mac-1"}}
    leases = "leases.coordination.k8s.io"
    assert judge("create", leases, lease, namespace="kube-node-lease") is None
    assert judge("update", leases, lease, lease, namespace="kube-node-lease", name="mac-1") is None
    other = {"metadata": {"name": "mac-2"}}
    reason = "can only access node lease with the same name as the requesting node"
    assert judge("create", leases, other, namespace="kube-node-lease") == reason
    assert judge("delete", leases, None, other, namespace="kube-node-lease", name="mac-2") == reason
    assert judge("create", leases, lease, namespace="x") == 'can only access leases in the "kube-node-lease" system namespace'


def token(audiences: list[str] | None = None, **reference: str) -> Document:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "own", "uid": "own-uid", **reference}
    return {"spec": {"boundObjectRef": bound, "audiences": audiences or []}}


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"spec": {}}, "node requested token not bound to a pod"),
        (token(kind="Secret"), "node requested token not bound to a pod"),
        (token(uid=""), "node requested token with a pod binding without a uid"),
        (token(name="absent"), None),
        (token(name="foreign", uid=""), "node requested token with a pod binding without a uid"),
        (
            token(uid="old"),
            "the UID in the bound object reference (old) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        ),
        (token(["a", "b"]), "node may only request 0 or 1 audiences"),
        (
            token(["vault"]),
            'audience "vault" not found in pod spec volume, '
            "system:node:mac-1 is not authorized to request tokens for this audience",
        ),
    ],
)
def test_a_node_gets_tokens_only_for_its_own_pods(request_: Document, reason: str | None) -> None:
    assert judge("create", "serviceaccounts/token", request_, name="robot") == reason


def test_a_token_of_another_nodes_pod_is_refused() -> None:
    foreign = OBJECTS.get("pods", "ns", "foreign")
    assert foreign is not None
    request = token(name="foreign", uid=foreign["metadata"]["uid"])
    assert judge("create", "serviceaccounts/token", request, name="robot") == (
        "node requested token bound to a pod scheduled on a different node"
    )


def test_an_audience_needs_a_volume_that_wants_it_or_a_right_to_it() -> None:
    assert judge("create", "serviceaccounts/token", token(["vault"]), name="robot", allows=True) is None
    volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}}
    OBJECTS.put(pod("ns", "wants", "mac-1", volumes=[volume]))
    wants = OBJECTS.get("pods", "ns", "wants")
    assert wants is not None
    request = token(["vault"], name="wants", uid=wants["metadata"]["uid"])
    assert judge("create", "serviceaccounts/token", request, name="robot") is None


@given(
    st.sets(
        st.sampled_from(["a", "x.io/a", "kubernetes.io/a", "kubernetes.io/os", "b.k8s.io/c", "k8s.iox/a", "xkubernetes.io/b"])
    )
)
def test_only_labels_under_reserved_domains_are_forbidden(names: set[str]) -> None:
    assert set(forbidden_labels(names)) == names & {"kubernetes.io/a", "b.k8s.io/c"}


@given(
    st.sampled_from(["create", "update", "patch", "delete"]),
    st.sampled_from(
        [
            "pods",
            "pods/status",
            "pods/eviction",
            "nodes",
            "nodes/status",
            "serviceaccounts/token",
            "leases.coordination.k8s.io",
        ]
    ),
    JSON,
    JSON,
)
def test_documents_of_any_shape_are_judged(verb: str, label: str, one: Any, other: Any) -> None:
    new, old = {"metadata": one, "spec": other}, {"metadata": other, "spec": one}
    judge(verb, label, new, old, name="own")
    judge(verb, label, one if isinstance(one, dict) else None, None, name="own")
