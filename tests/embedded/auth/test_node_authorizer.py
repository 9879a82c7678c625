"""What a node may do, and what the Pods on it make readable."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.auth.node_authorizer import NodeAuthorizer, NodeGraph
from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION, references
from applecart.embedded.auth.untyped import Document
from applecart.embedded.auth.user import NODES, User
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, asks, asks_path, node_user, pod, user
from tests.embedded.auth.test_roles import JSON

FULL = pod(
    "ns",
    "p",
    "mac-1",
    serviceAccountName="robot",
    imagePullSecrets=[{"name": "pull"}],
    initContainers=[{"name": "i", "envFrom": [{"secretRef": {"name": "from-secret"}}, {"configMapRef": {"name": "from-map"}}]}],
    ephemeralContainers=[{"name": "e", "env": [{"name": "X", "valueFrom": {"secretKeyRef": {"name": "debug-key"}}}]}],
    containers=[
        {
            "name": "c",
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "map-key", "key": "k"}}},
            ],
        }
    ],
    volumes=[
        {"name": "1", "secret": {"secretName": "mounted"}},
        {"name": "2", "configMap": {"name": "mounted-map"}},
        {"name": "3", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part-map"}}]}},
        {"name": "4", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "5", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "6", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi-secret"}}},
    ],
)
EXPECTED = {
    "pods": {"p"},
    "serviceaccounts": {"robot"},
    "secrets": {"pull", "from-secret", "debug-key", "key", "mounted", "part", "csi-secret"},
    "configmaps": {"from-map", "map-key", "mounted-map", "part-map"},
    "persistentvolumeclaims": {"disk", "p-5"},
}


def test_everything_a_pod_mounts_or_reads_is_a_reference_and_nothing_else() -> None:
    assert references(FULL) == {("pods", "ns", "p")} | {
        (label, "ns", name) for label, names in EXPECTED.items() for name in names
    }


def test_a_mirror_pod_opens_nothing_but_itself() -> None:
    mirror = {**FULL, "metadata": {**FULL["metadata"], "annotations": {MIRROR_ANNOTATION: "x"}}}
    assert references(mirror) == {("pods", "ns", "p")}


def test_the_node_of_a_pod_reads_what_it_refers_to_and_other_nodes_do_not() -> None:
    graph = NodeGraph(ObjectsInMemory(FULL, pod("ns", "q", "mac-2")))
    assert graph.reads("mac-1", "secrets", "ns", "key")
    assert not graph.reads("mac-2", "secrets", "ns", "key")
    assert not graph.reads("mac-3", "secrets", "ns", "key")
    assert not graph.reads("mac-1", "secrets", "other", "key")
    assert not graph.reads("mac-1", "configmaps", "ns", "key")


def test_access_ends_with_the_last_pod_that_refers_to_the_object() -> None:
    objects = ObjectsInMemory()
    graph = NodeGraph(objects)
    objects.listeners.append(graph.on_change)
    volume = [{"name": "v", "secret": {"secretName": "s"}}]
    assert not graph.reads("mac-1", "secrets", "ns", "s")
    objects.put(pod("ns", "a", "mac-1", volumes=volume))
    objects.put(pod("ns", "b", "mac-1", volumes=volume))
    objects.remove("Pod", "ns", "a")
    assert graph.reads("mac-1", "secrets", "ns", "s")
    objects.remove("Pod", "ns", "b")
    assert not graph.reads("mac-1", "secrets", "ns", "s")


class Name(str):
    """Counts how often names are looked up or kept."""

    hashed = 0

    def __hash__(self) -> int:
        Name.hashed += 1
        return str.__hash__(self)


def test_a_pod_that_comes_or_goes_costs_one_look_at_each_of_its_references() -> None:
    """A Pod of 12,000 references took more than 50 ms of the loop, most of them to count those of its node."""
    graph = NodeGraph(ObjectsInMemory())
    assert not graph.reads("mac-1", "secrets", "ns", "s")
    big = pod("ns", "a", "mac-1", volumes=[{"name": "v", "secret": {"secretName": Name(n)}} for n in range(100)])
    Name.hashed = 0
    graph.on_change("pods", None, big)
    graph.on_change("pods", big, None)
    assert Name.hashed <= 100


def test_binding_a_pod_opens_its_references_to_the_node() -> None:
    objects = ObjectsInMemory(pod("ns", "a", volumes=[{"name": "v", "secret": {"secretName": "s"}}]))
    graph = NodeGraph(objects)
    objects.listeners.append(graph.on_change)
    assert not graph.reads("mac-1", "secrets", "ns", "s")
    objects.put(pod("ns", "a", "mac-1", volumes=[{"name": "v", "secret": {"secretName": "s"}}]))
    assert graph.reads("mac-1", "secrets", "ns", "s")


def test_changes_that_are_announced_cost_no_look_at_all_pods() -> None:
    """Thousands of status writes per second must not make each question read every Pod."""
    objects = ObjectsInMemory(*(pod("ns", f"p{number}", "mac-1") for number in range(50)))
    graph = NodeGraph(objects)
    objects.listeners.append(graph.on_change)
    assert graph.reads("mac-1", "pods", "ns", "p7")
    read = objects.full_reads
    for number in range(50):
        objects.put({**pod("ns", f"p{number}", "mac-1"), "status": {"phase": "Running"}})
        assert graph.reads("mac-1", "pods", "ns", "p7")
    assert objects.full_reads == read


def test_changes_that_nobody_announced_are_noticed() -> None:
    objects = ObjectsInMemory(pod("ns", "a", "mac-1"))
    graph = NodeGraph(objects)
    assert graph.reads("mac-1", "pods", "ns", "a")
    objects.remove("Pod", "ns", "a")
    objects.put(pod("ns", "b", "mac-1"))
    assert not graph.reads("mac-1", "pods", "ns", "a")
    assert graph.reads("mac-1", "pods", "ns", "b")


NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.tuples(NAMES, st.sampled_from(["", "mac-1", "mac-2"]), st.sampled_from(["s", "t"]), st.booleans())


@given(st.lists(WRITES, max_size=25))
def test_a_followed_graph_equals_one_that_reads_everything(writes: list[tuple[str, str, str, bool]]) -> None:
    objects = ObjectsInMemory()
    followed = NodeGraph(objects)
    followed.reads("mac-1", "pods", "ns", "a")
    objects.listeners.append(followed.on_change)
    for name, node, secret, is_removal in writes:
        if is_removal and objects.get("pods", "ns", name):
            objects.remove("Pod", "ns", name)
        elif not is_removal:
            objects.put(pod("ns", name, node, volumes=[{"name": "v", "secret": {"secretName": secret}}]))
    fresh = NodeGraph(objects)
    questions = [("pods", name) for name in "abc"] + [("secrets", name) for name in "st"]
    for node in ("mac-1", "mac-2"):
        for label, name in questions:
            assert followed.reads(node, label, "ns", name) == fresh.reads(node, label, "ns", name)


@given(JSON, JSON)
def test_a_pod_of_any_shape_has_references(spec: object, volumes: object) -> None:
    odd: Document = {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}
    assert ("pods", "ns", "p") in references(odd)
    references({**odd, "spec": {"volumes": [volumes, {"secret": volumes, "projected": volumes}], "containers": volumes}})


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
