"""What a node may write: the answers of a real server to a node's certificate, and ours."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION
from applecart.embedded.auth.untyped import Document
from tests.embedded.auth.objects_in_memory import asks, binding, node_user, plain, pod, role, rule, user
from tests.embedded.auth.real_server import RBAC, Asks, Caller, OurServer, is_allowed, needs_newest, until
from tests.kubernetes.cluster import FullCluster

pytestmark = pytest.mark.kubernetes

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = "application/merge-patch+json"
LABELLED: Document = {"metadata": {"labels": {"a": "b"}}}
FAILED: Document = {"status": {"phase": "Failed"}}


class Stage(NamedTuple):
    admin: Asks
    node: Asks
    n: str  # the namespace, and the prefix of cluster-wide names

    @property
    def name(self) -> str:
        return f"{self.n}-1"

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.n}/pods"

    def read(self, path: str) -> Document:
        code, answer = self.admin("GET", path)
        assert code == 200, answer
        found: Document = answer
        return found

    def prepare(self) -> None:
        n, admin = self.n, self.admin
        admin.create(plain("ServiceAccount", n, "robot"))
        admin.create({**plain("Node", "", f"{n}-1"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        admin.create(plain("Node", "", f"{n}-2"))
        token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault", "path": "t"}}]}}
        admin.create(pod(n, "own", f"{n}-1", serviceAccountName="robot", volumes=[token]))
        admin.create(pod(n, "foreign", f"{n}-2", serviceAccountName="robot"))
        admin.create(pod(n, "unbound", serviceAccountName="robot"))
        # A careless role lets the node do everything with these: what is left is what admission keeps from it.
        careless = "pods pods/binding pods/status pods/eviction nodes nodes/status bindings"
        admin.create(role(f"{n}-all", rule("*", "core", careless), rule("*", "coordination.k8s.io", "leases")))
        admin.create(binding(f"{n}-all", f"{n}-all", f"user:system:node:{n}-1"))


@pytest.fixture
def real(real_cluster: FullCluster, namespace: str) -> Iterator[Stage]:
    n = namespace
    who = node_user(f"{n}-1")
    stage = Stage(Caller(real_cluster, "kubernetes-admin", "system:masters"), Caller(real_cluster, who.name, *who.groups), n)
    stage.prepare()
    admin = stage.admin
    until(lambda: is_allowed(admin, who.name, who.groups, asks("create", "serviceaccounts/token", n, "robot")), "the Pods")
    until(lambda: is_allowed(admin, who.name, who.groups, asks("create", "bindings", n)), "the role")
    yield stage
    for path in (
        f"/api/v1/nodes/{n}-1",
        f"/api/v1/nodes/{n}-2",
        f"{RBAC}/clusterrolebindings/{n}-all",
        f"{RBAC}/clusterroles/{n}-all",
    ):
        admin("DELETE", path)
    admin.close()
    stage.node.close()


@pytest.fixture
def ours(namespace_name: str, real: Stage) -> Iterator[Stage]:
    server = OurServer()
    stage = Stage(server.as_user(user("admin", "system:masters")), server.as_user(node_user(f"{real.n}-1")), real.n)
    stage.admin.create(plain("Namespace", "", real.n))
    stage.prepare()
    yield stage
    server.close()


class Write(NamedTuple):
    """One request of the node."""

    method: str
    path: str
    body: Any = None
    media: str = "application/json"


def changed(document: Document, change: Callable[[Document], object]) -> Document:
    new = copy.deepcopy(document)
    change(new)
    return new


def node_write(stage: Stage, change: Callable[[Document], object], subresource: str = "") -> Write:
    path = f"/api/v1/nodes/{stage.name}"
    return Write("PUT", path + (f"/{subresource}" if subresource else ""), changed(stage.read(path), change))


def mirror(stage: Stage, change: Callable[[Document], object] = lambda new: None) -> Write:
    node = stage.read(f"/api/v1/nodes/{stage.name}")
    owner = {"apiVersion": "v1", "kind": "Node", "name": stage.name, "uid": node["metadata"]["uid"], "controller": True}
    document = pod(stage.n, "mirror", stage.name)
    document["metadata"] |= {"annotations": {MIRROR_ANNOTATION: "x"}, "ownerReferences": [owner]}
    return Write("POST", stage.pods, changed(document, change))


def pod_status(stage: Stage, name: str, change: Callable[[Document], object]) -> Write:
    path = f"{stage.pods}/{name}"
    return Write("PUT", f"{path}/status", changed(stage.read(path), change))


def eviction(stage: Stage, name: str, said: str = "", *, dry_run: bool = False) -> Write:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": said or name, "namespace": stage.n}}
    return Write("POST", f"{stage.pods}/{name}/eviction{'?dryRun=All' if dry_run else ''}", body)


def bound(stage: Stage, path: str) -> Write:
    target = {"apiVersion": "v1", "kind": "Node", "name": stage.name}
    return Write("POST", path, {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "unbound"}, "target": target})


def lease(stage: Stage, name: str, namespace: str = "kube-node-lease") -> Document:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": {}}


def applied(path: str, **document: Any) -> Write:
    return Write("PATCH", f"{path}?fieldManager=test&force=true", document, "application/apply-patch+yaml")


def token(stage: Stage, pod_name: str = "own", audiences: tuple[str, ...] = ("vault",), **reference: Any) -> Write:
    uid = stage.read(f"{stage.pods}/{pod_name}")["metadata"]["uid"]
    to = {"kind": "Pod", "apiVersion": "v1", "name": pod_name, "uid": uid, **reference}
    spec = {"audiences": list(audiences), "boundObjectRef": to}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return Write("POST", f"/api/v1/namespaces/{stage.n}/serviceaccounts/robot/token", body)


def labels(**values: str) -> Callable[[Document], object]:
    return lambda new: new["metadata"]["labels"].update(values)


def spec(**values: Any) -> Callable[[Document], object]:
    return lambda new: new["spec"].update(values)


def metadata(**values: Any) -> Callable[[Document], object]:
    return lambda new: new["metadata"].update(values)


def create_node(name: str, **node_labels: str) -> Callable[[Stage], Write]:
    def write(stage: Stage) -> Write:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name or stage.name, "labels": node_labels}}
        return Write("POST", "/api/v1/nodes", body)

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
    "another node": lambda stage: Write("PUT", f"/api/v1/nodes/{stage.n}-2", stage.read(f"/api/v1/nodes/{stage.n}-2")),
    "another node by patch": lambda stage: Write("PATCH", f"/api/v1/nodes/{stage.n}-2", LABELLED, MERGE),
    "another node by apply": lambda stage: applied(f"/api/v1/nodes/{stage.n}-2", apiVersion="v1", kind="Node", **LABELLED),
    "deletion of another node": lambda stage: Write("DELETE", f"/api/v1/nodes/{stage.n}-2"),
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
    "status of a foreign pod by patch": lambda stage: Write("PATCH", f"{stage.pods}/foreign/status", FAILED, MERGE),
    "status of a foreign pod by apply": lambda stage: applied(
        f"{stage.pods}/foreign/status", apiVersion="v1", kind="Pod", **FAILED
    ),
    "a foreign pod by patch": lambda stage: Write("PATCH", f"{stage.pods}/foreign", LABELLED, MERGE),
    "a foreign pod by apply": lambda stage: applied(f"{stage.pods}/foreign", apiVersion="v1", kind="Pod", **LABELLED),
    "a new pod by apply": lambda stage: applied(f"{stage.pods}/new", **pod(stage.n, "new", stage.name)),
    "deletion of a foreign pod": lambda stage: Write("DELETE", f"{stage.pods}/foreign"),
    "deletion of an own pod": lambda stage: Write("DELETE", f"{stage.pods}/own"),
    "eviction of a foreign pod": lambda stage: eviction(stage, "foreign"),
    "eviction of a foreign pod, dry": lambda stage: eviction(stage, "foreign", dry_run=True),
    "eviction of a foreign pod under an own name": lambda stage: eviction(stage, "foreign", "own"),
    "eviction of an own pod under a foreign name": lambda stage: eviction(stage, "own", "foreign"),
    "eviction of an own pod": lambda stage: eviction(stage, "own"),
    "a binding": lambda stage: bound(stage, f"{stage.pods}/unbound/binding"),
    "own lease": lambda stage: Write("POST", LEASES, lease(stage, stage.name)),
    "own lease by put": lambda stage: Write("PUT", f"{LEASES}/{stage.name}", lease(stage, stage.name)),
    "own lease by apply": lambda stage: applied(f"{LEASES}/{stage.name}", **lease(stage, stage.name)),
    "a foreign lease": lambda stage: Write("POST", LEASES, lease(stage, f"{stage.n}-2")),
    "a foreign lease by put": lambda stage: Write("PUT", f"{LEASES}/{stage.n}-2", lease(stage, f"{stage.n}-2")),
    "a foreign lease by apply": lambda stage: applied(f"{LEASES}/{stage.n}-2", **lease(stage, f"{stage.n}-2")),
    "a lease elsewhere by put": lambda stage: Write(
        "PUT", f"{LEASES.replace('kube-node-lease', stage.n)}/{stage.name}", lease(stage, stage.name, stage.n)
    ),
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
def test_both_servers_answer_a_node_alike(real: Stage, ours: Stage, case: str, kube: str) -> None:
    """Our side was a pure function once, and what was served around it was wider: evictions, bindings, leases by PUT."""
    if case in NEWEST_WORDS:
        needs_newest(kube)
    expected, got = (answered(stage, WRITES[case](stage)) for stage in (real, ours))
    assert got == expected


def answered(stage: Stage, write: Write) -> tuple[int, str, str]:
    """What both servers must agree on, and whether the others' Pods are as they were."""
    before = stage.read(f"{stage.pods}/foreign")["metadata"]["resourceVersion"]
    code, answer = stage.node(write.method, write.path, write.body, media=write.media)
    if code == 403:
        assert stage.read(f"{stage.pods}/foreign")["metadata"]["resourceVersion"] == before
    if code < 300:
        return code, answer["kind"], ""
    return code, answer["reason"], re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "a uid", answer["message"])


def test_a_node_binds_pods_by_the_older_path_on_a_real_server_only(real: Stage, ours: Stage) -> None:
    """Its admission knows `pods/binding` and overlooks `bindings`; ours judges the effect."""
    codes = [answered(stage, bound(stage, f"/api/v1/namespaces/{stage.n}/bindings"))[0] for stage in (real, ours)]
    assert codes == [201, 403]
