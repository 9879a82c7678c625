"""What a node may write, on a real server with a node's certificate and by our rules."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.node_restriction import refuse
from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.auth.untyped import Document
from applecart.embedded.binaries.cluster import RealCluster
from tests.embedded.auth.objects_in_memory import asks, node_user, plain, pod
from tests.embedded.auth.real_server import Caller, is_allowed, needs_newest, seen_objects, until

pytestmark = pytest.mark.kubernetes

LEASES = "/apis/coordination.k8s.io/v1/namespaces"


class Stage(NamedTuple):
    admin: Caller
    node: Caller
    n: str  # the namespace, and the prefix of cluster-wide names

    @property
    def name(self) -> str:
        return f"{self.n}-1"

    def read(self, path: str) -> Document:
        code, answer = self.admin("GET", path)
        assert code == 200, answer
        found: Document = answer
        return found


@pytest.fixture
def stage(real_cluster: RealCluster, namespace: str) -> Iterator[Stage]:
    n = namespace
    admin = Caller(real_cluster, "kubernetes-admin", "system:masters")
    node = Caller(real_cluster, f"system:node:{n}-1", "system:nodes")
    admin.create(plain("ServiceAccount", n, "robot"))
    admin.create({**plain("Node", "", f"{n}-1"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
    admin.create(plain("Node", "", f"{n}-2"))
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}}
    admin.create(pod(n, "own", f"{n}-1", serviceAccountName="robot", volumes=[token]))
    admin.create(pod(n, "foreign", f"{n}-2", serviceAccountName="robot"))
    who = node_user(f"{n}-1")
    until(lambda: is_allowed(admin, who.name, who.groups, asks("create", "serviceaccounts/token", n, "robot")), "the Pods")
    yield Stage(admin, node, n)
    for name in (f"{n}-1", f"{n}-2"):
        admin("DELETE", f"/api/v1/nodes/{name}")
    admin.close()
    node.close()


class Write(NamedTuple):
    """One request of the node."""

    verb: str
    label: str
    path: str
    body: Document | None = None
    old: Document | None = None
    namespace: str = ""
    name: str = ""


def changed(document: Document, change: Callable[[Document], object]) -> Document:
    new = copy.deepcopy(document)
    change(new)
    return new


def node_write(stage: Stage, change: Callable[[Document], object], subresource: str = "") -> Write:
    path = f"/api/v1/nodes/{stage.name}"
    old = stage.read(path)
    label = f"nodes/{subresource}" if subresource else "nodes"
    return Write("update", label, path + (f"/{subresource}" if subresource else ""), changed(old, change), old, name=stage.name)


def mirror(stage: Stage, change: Callable[[Document], object] = lambda new: None) -> Write:
    node = stage.read(f"/api/v1/nodes/{stage.name}")
    owner = {"apiVersion": "v1", "kind": "Node", "name": stage.name, "uid": node["metadata"]["uid"], "controller": True}
    document = pod(stage.n, "mirror", stage.name)
    document["metadata"] |= {"annotations": {MIRROR_ANNOTATION: "x"}, "ownerReferences": [owner]}
    return Write("create", "pods", f"/api/v1/namespaces/{stage.n}/pods", changed(document, change), namespace=stage.n)


def pod_status(stage: Stage, name: str, change: Callable[[Document], object]) -> Write:
    path = f"/api/v1/namespaces/{stage.n}/pods/{name}"
    old = stage.read(path)
    return Write("update", "pods/status", f"{path}/status", changed(old, change), old, stage.n, name)


def deletion(stage: Stage, name: str) -> Write:
    path = f"/api/v1/namespaces/{stage.n}/pods/{name}"
    return Write("delete", "pods", path, None, stage.read(path), stage.n, name)


def eviction(stage: Stage, name: str) -> Write:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": stage.n}}
    return Write("create", "pods/eviction", f"/api/v1/namespaces/{stage.n}/pods/{name}/eviction", body, None, stage.n, name)


def lease(stage: Stage, name: str) -> Write:
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}
    path = f"{LEASES}/kube-node-lease/leases"
    return Write("create", "leases.coordination.k8s.io", path, body, None, "kube-node-lease")


def token(stage: Stage, pod_name: str = "own", audiences: tuple[str, ...] = ("vault",), **reference: Any) -> Write:
    uid = stage.read(f"/api/v1/namespaces/{stage.n}/pods/{pod_name}")["metadata"]["uid"]
    bound = {"kind": "Pod", "apiVersion": "v1", "name": pod_name, "uid": uid, **reference}
    spec = {"audiences": list(audiences), "boundObjectRef": bound}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{stage.n}/serviceaccounts/robot/token"
    return Write("create", "serviceaccounts/token", path, body, None, stage.n, "robot")


def labels(**values: str) -> Callable[[Document], object]:
    return lambda new: new["metadata"]["labels"].update(values)


def spec(**values: Any) -> Callable[[Document], object]:
    return lambda new: new["spec"].update(values)


def metadata(**values: Any) -> Callable[[Document], object]:
    return lambda new: new["metadata"].update(values)


def create_node(name: str, **node_labels: str) -> Callable[[Stage], Write]:
    def write(stage: Stage) -> Write:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name or stage.name, "labels": node_labels}}
        return Write("create", "nodes", "/api/v1/nodes", body)

    return write


def owners(**change: Any) -> Callable[[Document], object]:
    return lambda new: new["metadata"]["ownerReferences"][0].update(change)


WRITES: dict[str, Callable[[Stage], Write]] = {
    "own taints": lambda stage: node_write(stage, spec(taints=[])),
    "own taints through the status": lambda stage: node_write(stage, spec(taints=[]), "status"),
    "own free label": lambda stage: node_write(stage, metadata(labels={"team": "x"})),
    "own zone": lambda stage: node_write(stage, metadata(labels={"topology.kubernetes.io/zone": "x"})),
    "own role label": lambda stage: node_write(stage, metadata(labels={"node-role.kubernetes.io/x": "", "a.k8s.io/b": ""})),
    "own restricted label": lambda stage: node_write(stage, metadata(labels={"node-restriction.kubernetes.io/x": ""})),
    "own restricted label through the status": lambda stage: node_write(
        stage, metadata(labels={"a.node-restriction.kubernetes.io/x": ""}), "status"
    ),
    "own owners": lambda stage: node_write(
        stage, metadata(ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}])
    ),
    "own unschedulable": lambda stage: node_write(stage, spec(unschedulable=True)),
    "own status": lambda stage: node_write(stage, lambda new: new["status"].update(phase="Running"), "status"),
    "another node": lambda stage: Write(
        "update",
        "nodes",
        f"/api/v1/nodes/{stage.n}-2",
        stage.read(f"/api/v1/nodes/{stage.n}-2"),
        stage.read(f"/api/v1/nodes/{stage.n}-2"),
        name=f"{stage.n}-2",
    ),
    "a new node of another name": create_node("another-mac"),
    "a mirror pod": mirror,
    "a plain pod": lambda stage: mirror(stage, metadata(annotations={})),
    "a mirror pod elsewhere": lambda stage: mirror(stage, spec(nodeName=f"{stage.n}-2")),
    "a mirror pod without owner": lambda stage: mirror(stage, metadata(ownerReferences=[])),
    "a mirror pod of another owner": lambda stage: mirror(stage, owners(name="x")),
    "a mirror pod that is not controlled": lambda stage: mirror(stage, owners(controller=False)),
    "a mirror pod that blocks": lambda stage: mirror(stage, owners(blockOwnerDeletion=True)),
    "a mirror pod of an old node": lambda stage: mirror(stage, owners(uid="old")),
    "a mirror pod with an account": lambda stage: mirror(stage, spec(serviceAccountName="robot")),
    "a mirror pod with a secret": lambda stage: mirror(stage, spec(volumes=[{"name": "v", "secret": {"secretName": "s"}}])),
    "a mirror pod with a claim": lambda stage: mirror(
        stage, spec(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "s"}}])
    ),
    "a mirror pod with a token": lambda stage: mirror(
        stage, spec(volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}])
    ),
    "status of an own pod": lambda stage: pod_status(stage, "own", lambda new: new["status"].update(phase="Running")),
    "annotations through the status": lambda stage: pod_status(stage, "own", metadata(annotations={"a": "b"})),
    "labels through the status": lambda stage: pod_status(stage, "own", metadata(labels={"a": "b"})),
    "status of a foreign pod": lambda stage: pod_status(stage, "foreign", lambda new: new["status"].update(phase="Running")),
    "deletion of a foreign pod": lambda stage: deletion(stage, "foreign"),
    "deletion of an own pod": lambda stage: deletion(stage, "own"),
    "eviction of a foreign pod": lambda stage: eviction(stage, "foreign"),
    "eviction of an own pod": lambda stage: eviction(stage, "own"),
    "own lease": lambda stage: lease(stage, stage.name),
    "a foreign lease": lambda stage: lease(stage, f"{stage.n}-2"),
    "a token of an own pod": token,
    "a token of a foreign pod": lambda stage: token(stage, "foreign"),
    "a token of nothing": lambda stage: token(stage, kind="Secret"),
    "a token without uid": lambda stage: token(stage, uid=""),
    "a token of an old pod": lambda stage: token(stage, uid="old"),
    "a token for another audience": lambda stage: token(stage, audiences=("elsewhere",)),
    "a token for two audiences": lambda stage: token(stage, audiences=("vault", "elsewhere")),
}


NEWEST_WORDS = ("a mirror pod with an account", "a mirror pod with a token")


@pytest.mark.parametrize("case", WRITES)
def test_our_rules_and_the_real_server_agree(stage: Stage, case: str, kube: str) -> None:
    if case in NEWEST_WORDS:
        needs_newest(kube)
    write = WRITES[case](stage)
    objects = seen_objects(stage.admin)
    authorizer = Authorizer(objects)
    resource, _, subresource = write.label.partition("/")
    ours = refuse(
        node_user(stage.name),
        write.verb,
        resource,
        subresource,
        write.body,
        write.old,
        objects,
        namespace=write.namespace,
        name=write.name,
        is_allowed=authorizer.is_allowed,
    )
    method = {"create": "POST", "update": "PUT", "delete": "DELETE"}[write.verb]
    code, answer = stage.node(method, write.path, write.body)
    if ours is None:
        assert code in (200, 201), answer
    else:
        assert code == 403, answer
        assert answer["message"].partition(" is forbidden: ")[2] == ours
