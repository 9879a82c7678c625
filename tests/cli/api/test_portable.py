"""Which objects move to another cluster, and in which form."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Resource
from applecart.cli.api.portable import (
    ENDED,
    OF_THE_CLUSTER,
    OWNERS,
    Left,
    is_built_in,
    is_left_kind,
    owners_first,
    portable,
    rank,
)

PODS = Resource("", "v1", "Pod", "pods")
JOBS = Resource("batch", "v1", "Job", "jobs")
SECRETS = Resource("", "v1", "Secret", "secrets")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
SERVICES = Resource("", "v1", "Service", "services")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
POOLS = Resource("tuist.dev", "v1alpha1", "RunnerPool", "runnerpools")
MACHINES = Resource("cluster.x-k8s.io", "v1beta1", "Machine", "machines")
RESOURCES = (PODS, JOBS, SECRETS, ACCOUNTS, NAMESPACES, CONFIG_MAPS, SERVICES, CLUSTER_ROLES, POOLS, MACHINES)
OWNER = {"apiVersion": "tuist.dev/v1alpha1", "kind": "RunnerPool", "name": "pool", "uid": "u-1", "controller": True}


def of(name: str = "one", namespace: str = "ci", **metadata: Any) -> dict[str, Any]:
    """An object's metadata as a server returns it."""
    stored = {
        "uid": "u-2",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-11-16T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    return {"metadata": {"name": name, "namespace": namespace, **stored, **metadata}}


def moved(resource: Resource, document: dict[str, Any]) -> dict[str, Any]:
    result = portable(resource, document)
    assert isinstance(result, dict)
    return result


def test_what_belongs_to_the_cluster_goes_and_the_rest_stays() -> None:
    labels = {"app": "x"}
    finalizers = ["applecart.dev/host"]
    document = {**of(labels=labels, finalizers=finalizers), "data": {"a": "1"}}
    assert moved(CONFIG_MAPS, document) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "ci", "labels": labels, "finalizers": finalizers},
        "data": {"a": "1"},
    }


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_had_ended_stays_or_it_would_run_again(phase: str) -> None:
    """It came back Pending, and its job ran a second time."""
    assert portable(PODS, {**of(), "spec": {}, "status": {"phase": phase}}) == Left(ENDED)


@pytest.mark.parametrize("condition", ["Complete", "Failed"])
def test_a_job_that_had_ended_stays_or_it_would_run_again(condition: str) -> None:
    conditions = [{"type": "Suspended", "status": "False"}, {"type": condition, "status": "True"}]
    assert portable(JOBS, {**of(), "spec": {}, "status": {"conditions": conditions}}) == Left(ENDED)
    conditions[1]["status"] = "False"
    assert "status" not in moved(JOBS, {**of(), "spec": {}, "status": {"conditions": conditions}})


def test_the_status_of_a_built_in_kind_goes_and_that_of_a_custom_kind_stays() -> None:
    status = {"phase": "Running"}
    assert "status" not in moved(PODS, {**of(), "spec": {}, "status": status})
    assert moved(MACHINES, {**of(), "spec": {}, "status": status})["status"] == status


def test_owners_are_noted_by_name_because_an_old_uid_would_have_the_object_collected() -> None:
    document = moved(POOLS, {**of(ownerReferences=[OWNER], annotations={"a": "b"}), "spec": {}})
    assert "ownerReferences" not in document["metadata"]
    assert document["metadata"]["annotations"]["a"] == "b"
    noted = json.loads(document["metadata"]["annotations"][OWNERS])
    assert noted == [{name: value for name, value in OWNER.items() if name != "uid"}]


@pytest.mark.parametrize(
    ("resource", "document"),
    [
        (PODS, {**of(ownerReferences=[OWNER]), "spec": {}}),
        (POOLS, {**of(deletionTimestamp="2026-11-16T12:00:00Z"), "spec": {}}),
        (NAMESPACES, of("kube-system", "")),
        (CONFIG_MAPS, {**of("kube-root-ca.crt"), "data": {"ca.crt": "x"}}),
        (CLUSTER_ROLES, of("admin", "", labels={"kubernetes.io/bootstrapping": "rbac-defaults"})),
        (ACCOUNTS, {**of("default"), "secrets": [{"name": "default-token"}]}),
        (SERVICES, of("kubernetes", "default")),
    ],
)
def test_what_a_cluster_makes_by_itself_stays(resource: Resource, document: dict[str, Any]) -> None:
    assert isinstance(portable(resource, document), Left)


@pytest.mark.parametrize(
    ("resource", "document"),
    [
        (PODS, {**of(), "spec": {}}),
        (SECRETS, of(ownerReferences=[OWNER])),
        (NAMESPACES, of("ci", "")),
        (ACCOUNTS, {**of("default"), "imagePullSecrets": [{"name": "registry"}]}),
        (ACCOUNTS, of("default", annotations={"role": "x"})),
        (ACCOUNTS, of("builder")),
        (CLUSTER_ROLES, of("mine", "")),
        (SERVICES, of("kubernetes", "ci")),
    ],
)
def test_what_somebody_made_moves(resource: Resource, document: dict[str, Any]) -> None:
    assert isinstance(portable(resource, document), dict)


def test_a_pod_moves_without_its_node_and_a_namespace_without_its_finalizer() -> None:
    assert moved(PODS, {**of(), "spec": {"nodeName": "mac-1", "hostname": "h"}})["spec"] == {"hostname": "h"}
    assert "spec" not in moved(NAMESPACES, {**of("ci", ""), "spec": {"finalizers": ["kubernetes"]}})


def test_a_token_secret_moves_empty_so_that_the_other_cluster_fills_it() -> None:
    annotations = {"kubernetes.io/service-account.name": "builder", "kubernetes.io/service-account.uid": "u-9"}
    secret = {**of(annotations=annotations), "type": "kubernetes.io/service-account-token", "data": {"token": "eA=="}}
    found = moved(SECRETS, secret)
    assert "data" not in found
    assert found["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "builder"}
    assert secret["data"] == {"token": "eA=="}, "what was read is not changed"


def test_another_secret_moves_with_its_data() -> None:
    assert moved(SECRETS, {**of(), "type": "Opaque", "data": {"key": "eA=="}})["data"] == {"key": "eA=="}


def test_an_address_of_a_service_stays_behind_but_that_it_has_none_moves() -> None:
    assert "clusterIP" not in moved(SERVICES, {**of(), "spec": {"clusterIP": "10.0.0.1", "ports": []}})["spec"]
    assert moved(SERVICES, {**of(), "spec": {"clusterIP": "None"}})["spec"] == {"clusterIP": "None"}


@pytest.mark.parametrize(
    ("group", "built_in"),
    [
        ("", True),
        ("apps", True),
        ("rbac.authorization.k8s.io", True),
        ("cluster.x-k8s.io", False),
        ("infrastructure.cluster.x-k8s.io", False),
        ("tuist.dev", False),
    ],
)
def test_a_group_tells_whose_kind_it_is(group: str, built_in: bool) -> None:
    assert is_built_in(Resource(group, "v1", "K", "ks")) is built_in


def test_kinds_that_keep_themselves_up_are_left() -> None:
    assert is_left_kind(Resource("", "v1", "Event", "events"))
    assert is_left_kind(Resource("coordination.k8s.io", "v1", "Lease", "leases"))
    assert not is_left_kind(POOLS)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(["metadata", "spec", "status", "data", "type", "secrets"])
names = st.sampled_from([*OF_THE_CLUSTER, "name", "namespace", "labels", "annotations", "deletionTimestamp"])


@given(
    st.sampled_from(RESOURCES),
    st.dictionaries(fields, anything | st.dictionaries(names, anything)),
)
def test_whatever_an_object_holds_it_moves_without_the_clusters_own_or_stays(resource: Resource, document: Any) -> None:
    result = portable(resource, document)
    if isinstance(result, dict):
        assert not set(result["metadata"]) & set(OF_THE_CLUSTER)
        assert result["kind"] == resource.kind


def test_definitions_and_namespaces_come_first_and_pods_after_custom_objects() -> None:
    crd = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
    namespace = Resource("", "v1", "Namespace", "namespaces", False)
    account = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    secret = Resource("", "v1", "Secret", "secrets")
    budget = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    pool = Resource("tuist.dev", "v1alpha1", "RunnerPool", "runnerpools")
    pod = Resource("", "v1", "Pod", "pods")
    hook = Resource("admissionregistration.k8s.io", "v1", "V", "validatingwebhookconfigurations", False)
    ordered = [crd, namespace, account, secret, budget, pool, pod, hook]
    shuffled = [pod, hook, pool, secret, crd, budget, account, namespace]
    assert sorted(shuffled, key=rank) == ordered


def test_an_owner_comes_before_what_it_owns_and_nothing_else_moves() -> None:
    assert owners_first("abcd", {0: [3], 3: [2]}) == ["c", "d", "a", "b"]


def test_a_circle_of_owners_is_cut_and_not_walked_for_ever() -> None:
    assert sorted(owners_first("abc", {0: [1], 1: [2], 2: [0]})) == ["a", "b", "c"]
    assert owners_first("a", {0: [0]}) == ["a"]


@given(st.integers(1, 30), st.data())
def test_everything_is_placed_once_and_after_its_owners(count: int, data: st.DataObject) -> None:
    """Owners of lower positions only would be trivial, so a shuffle gives each a place in a hidden order without circles."""
    hidden = data.draw(st.permutations(range(count)))
    owners = {
        one: [owner for owner in data.draw(st.lists(st.integers(0, count - 1), max_size=3)) if hidden[owner] < hidden[one]]
        for one in range(count)
    }
    placed = owners_first(range(count), owners)
    assert sorted(placed) == list(range(count))
    assert all(placed.index(owner) < placed.index(one) for one, above in owners.items() for owner in above)


def test_a_long_chain_of_owners_needs_no_deep_stack() -> None:
    count = 5000
    assert owners_first(range(count), {one: [one + 1] for one in range(count - 1)}) == list(reversed(range(count)))
