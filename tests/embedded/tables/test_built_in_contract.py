"""The tables of built-in kinds beside those of a real server: the same columns, and the same cells for the same objects."""

import re
from typing import Any

import pytest

from applecart.clock import SystemClock
from applecart.embedded.kinds.kind import Table
from applecart.embedded.tables.built_in import TABLES, table_of
from tests.embedded.tables.pod_states import DELETED, STATES, spec
from tests.embedded.tables.real_api import TABLE, RealApi
from tests.kubernetes.cluster import FullCluster
from tests.kubernetes.recipe import DEFAULT_KUBE

pytestmark = pytest.mark.kubernetes

AGE = re.compile(r"(\d+[smhdy])+( ago)?")
GRACE_S = 600

CLUSTER_WIDE = {
    "clusterrolebindings",
    "clusterroles",
    "customresourcedefinitions",
    "namespaces",
    "nodes",
    "priorityclasses",
    "runtimeclasses",
}
# Tables, and one word of Pods, that the oldest minor we support shows otherwise; ours are those of the newest.
CHANGED_SINCE = {"serviceaccounts", "nodes"}
CHANGED_STATE = "one-failed-one-completed"
# Kinds that have no table of their own.
PLAIN = [
    ("rbac.authorization.k8s.io", "roles"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
]


@pytest.fixture
def real(real_cluster: FullCluster) -> RealApi:
    return RealApi(real_cluster)


@pytest.fixture(autouse=True)
def _newest_only(request: pytest.FixtureRequest, kube: str) -> None:
    plural = request.node.callspec.params.get("plural", "") if hasattr(request.node, "callspec") else ""
    if kube != DEFAULT_KUBE and (plural in CHANGED_SINCE or request.node.name.startswith("test_nodes")):
        pytest.skip(f"the table is that of Kubernetes {DEFAULT_KUBE}")


def path_of(group: str, plural: str, namespace: str) -> str:
    base = f"/apis/{group}/v1" if group else "/api/v1"
    return f"{base}/{plural}" if plural in CLUSTER_WIDE else f"{base}/namespaces/{namespace}/{plural}"


def without_ages(cells: list[Any]) -> list[Any]:
    return [AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in cells]


def compare(real: RealApi, path: str, table: Table, at_least: int = 1) -> None:
    theirs = real.get(path, TABLE)
    objects = {one["metadata"]["name"]: one for one in real.get(path)["items"]}
    shown = [(column.name, column.type, column.format, column.priority) for column in table.columns]
    assert shown == [tuple(one[key] for key in ("name", "type", "format", "priority")) for one in theirs["columnDefinitions"]]
    now = SystemClock().now()
    rows = theirs["rows"] or []
    assert len(rows) >= at_least
    for row in rows:
        name = row["object"]["metadata"]["name"]
        ours = table.cells(objects[name], now)
        assert (name, without_ages(ours)) == (name, without_ages(row["cells"]))
        conditions = getattr(table, "conditions", lambda obj: None)(objects[name])
        assert conditions == row.get("conditions")


@pytest.mark.parametrize(("group", "plural"), [*TABLES, *PLAIN])
def test_the_columns_are_those_of_the_real_server(real: RealApi, namespace: str, group: str, plural: str) -> None:
    compare(real, path_of(group, plural, namespace), table_of(group, plural), at_least=0)


def test_pods_in_every_state_look_as_on_the_real_server(real: RealApi, namespace: str, kube: str) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    deleted = {
        name: (spec(nodeName="mac-1", terminationGracePeriodSeconds=GRACE_S), status) for name, (status, _) in DELETED.items()
    }
    states = {name: state for name, state in STATES.items() if kube == DEFAULT_KUBE or name != CHANGED_STATE}
    for name, (wanted, status, *_) in [*states.items(), *deleted.items()]:
        real.create(pods, {"metadata": {"name": name, "finalizers": ["applecart.dev/test"]}, "spec": wanted})
        real.patch(f"{pods}/{name}/status", {"status": status})
    for name in DELETED:
        code, _, answer = real.call("DELETE", f"{pods}/{name}")
        assert code in (200, 202), answer
    compare(real, pods, table_of("", "pods"), at_least=len(states) + len(DELETED))


NODES: dict[str, dict[str, Any]] = {
    "no-status": {},
    "ready": {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "not-ready": {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
    "lost": {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}, {"type": "DiskPressure", "status": "True"}]}},
    "cordoned": {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
    "whole": {
        "metadata": {
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/builder": "true",
                "kubernetes.io/role": "runner",
            }
        },
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "mac"},
                {"type": "InternalIP", "address": "10.0.0.9"},
                {"type": "InternalIP", "address": "10.0.0.10"},
                {"type": "ExternalIP", "address": "192.0.2.9"},
            ],
            "nodeInfo": {
                "kubeletVersion": "v1.36.3",
                "osImage": "macOS 26",
                "kernelVersion": "25.0.0",
                "architecture": "arm64",
                "containerRuntimeVersion": "tart://2.30.0",
                **dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion", "operatingSystem"), ""),
            },
        },
    },
}


def test_nodes_look_as_on_the_real_server(real: RealApi, namespace_name: str) -> None:
    for name, node in NODES.items():
        metadata = {**node.get("metadata", {}), "name": f"{name}-{namespace_name}"[:60]}
        real.create("/api/v1/nodes", {"metadata": metadata, "spec": node.get("spec", {})})
        real.patch(f"/api/v1/nodes/{metadata['name']}/status", {"status": node.get("status", {})})
    compare(real, "/api/v1/nodes", table_of("", "nodes"), at_least=len(NODES))


ABOUT = {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "NS", "fieldPath": "spec.containers{c0}"}
OLD = "2026-01-01T00:00:00Z"
OLDER = "2025-12-31T00:00:00Z"
OLD_MICRO = "2026-01-01T00:00:00.123456Z"
NEW_EVENT = {
    "reportingController": "applecart.dev/test",
    "reportingInstance": "test-0",
    "action": "Testing",
    "reason": "Tested",
    "type": "Normal",
    "note": "done",
    "eventTime": OLD_MICRO,
}
EVENTS: list[dict[str, Any]] = [
    {"reason": "Plain", "message": " spaced \n", "type": "Normal", "firstTimestamp": OLDER, "lastTimestamp": OLD, "count": 3},
    {"reason": "Once", "message": "m", "type": "Warning", "firstTimestamp": OLD},
    {"message": "sent by a component on a host", "source": {"component": "kubelet", "host": "mac-1"}, "count": 0},
    {
        "message": "sent by a component",
        "source": {"component": "kubelet"},
        "involvedObject": {"kind": "Node", "namespace": "NS"},
    },
    {
        "message": "series",
        "eventTime": OLD_MICRO,
        "reason": "Again",
        "type": "Normal",
        "action": "a",
        "reportingComponent": "applecart.dev/test",
        "reportingInstance": "test-0",
        "series": {"count": 7, "lastObservedTime": OLD_MICRO},
    },
]


@pytest.mark.parametrize("group", ["", "events.k8s.io"])
def test_events_look_as_on_the_real_server(real: RealApi, namespace: str, group: str) -> None:
    core = f"/api/v1/namespaces/{namespace}/events"
    for number, event in enumerate(EVENTS):
        about = {**ABOUT, **event.get("involvedObject", {}), "namespace": namespace}
        about = about if "involvedObject" not in event else {"kind": "Node", "namespace": namespace}
        real.create(core, {**event, "metadata": {"name": f"e{number}"}, "involvedObject": about})
    newer = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    for name, more in (("single", {}), ("repeated", {"series": {"count": 2, "lastObservedTime": OLD_MICRO}})):
        about = {**ABOUT, "namespace": namespace}
        real.create(newer, {**NEW_EVENT, **more, "metadata": {"name": name, "namespace": namespace}, "regarding": about})
    compare(real, path_of(group, "events", namespace), table_of(group, "events"), at_least=len(EVENTS) + 2)


def port(number: int, **more: Any) -> dict[str, Any]:
    return {"name": f"p{number}", "port": number, **more}


SERVICES: dict[str, dict[str, Any]] = {
    "plain": {"ports": [port(80), port(53, protocol="UDP")], "selector": {"b": "2", "a": "1"}},
    "headless": {"clusterIP": "None"},
    "with-external": {"ports": [port(80)], "externalIPs": ["192.0.2.1", "192.0.2.2"]},
    "node-port": {"type": "NodePort", "ports": [port(80, nodePort=31234)]},
    "balanced": {"type": "LoadBalancer", "ports": [port(80)], "allocateLoadBalancerNodePorts": False},
    "balanced-ready": {"type": "LoadBalancer", "ports": [port(80)], "allocateLoadBalancerNodePorts": False},
    "named": {"type": "ExternalName", "externalName": "example.com"},
}


def test_services_look_as_on_the_real_server(real: RealApi, namespace: str) -> None:
    base = f"/api/v1/namespaces/{namespace}"
    for name, wanted in SERVICES.items():
        real.create(f"{base}/services", {"metadata": {"name": name}, "spec": wanted})
    entries = [{"ip": "192.0.2.9"}, {"hostname": "a.example.com"}, {"ip": "192.0.2.8"}]
    real.patch(f"{base}/services/balanced-ready/status", {"status": {"loadBalancer": {"ingress": entries}}})
    compare(real, f"{base}/services", table_of("", "services"), at_least=len(SERVICES))


SUBJECTS = [
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"},
    {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "staff"},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "bob"},
]
ROLE = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
# group, plural -> what objects hold beside their names
PLAIN_KINDS: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("", "secrets"): [{"stringData": {"a": "1", "b": "2"}}, {"type": "example.com/kind"}],
    ("", "configmaps"): [{"data": {"a": "1"}, "binaryData": {"b": "AA=="}}, {}],
    ("", "serviceaccounts"): [{}],
    ("coordination.k8s.io", "leases"): [{"spec": {"holderIdentity": "me"}}, {}],
    ("node.k8s.io", "runtimeclasses"): [{"handler": "tart"}],
    ("scheduling.k8s.io", "priorityclasses"): [{"value": 7}, {"value": -3, "preemptionPolicy": "Never"}, {"value": 0}],
    ("policy", "poddisruptionbudgets"): [
        {"spec": {"minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}},
        {"spec": {"maxUnavailable": 0}},
    ],
    ("rbac.authorization.k8s.io", "roles"): [{"rules": []}],
    ("rbac.authorization.k8s.io", "rolebindings"): [{"roleRef": ROLE, "subjects": SUBJECTS}, {"roleRef": ROLE}],
    ("rbac.authorization.k8s.io", "clusterrolebindings"): [{"roleRef": ROLE, "subjects": SUBJECTS}],
}


@pytest.mark.parametrize(("group", "plural"), PLAIN_KINDS)
def test_plain_kinds_look_as_on_the_real_server(real: RealApi, namespace: str, group: str, plural: str) -> None:
    path = path_of(group, plural, namespace)
    for number, members in enumerate(PLAIN_KINDS[group, plural]):
        real.create(path, {**members, "metadata": {"name": f"{namespace}-{number}"}})
    compare(real, path, table_of(group, plural), at_least=len(PLAIN_KINDS[group, plural]))
