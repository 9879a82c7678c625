"""Nodes and Namespaces: what the main endpoint, `/status` and `/finalize` each may change."""

from typing import Any

from applecart.embedded.kinds.namespace import NamespaceStrategy
from applecart.embedded.kinds.node import NodeStrategy
from tests.embedded.kinds.documents import core, created, decoded, updated

NODES, NAMESPACES = NodeStrategy(), NamespaceStrategy()


def node(**members: Any) -> dict[str, Any]:
    return core("Node", "mac-1", **members)


def test_a_new_node_takes_no_pods_until_it_was_seen_ready() -> None:
    taints = created(node(spec={"taints": [{"key": "a", "effect": "NoExecute"}]}), "")["spec"]["taints"]
    assert taints[-1] == {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert len(taints) == 2


def test_a_node_registers_with_its_status() -> None:
    status = created(node(status={"capacity": {"cpu": "8"}}), "")["status"]
    assert status["allocatable"] == status["capacity"] == {"cpu": "8"}


def test_the_capacity_and_what_is_allocatable_are_two_values() -> None:
    status = decoded(node(status={"capacity": {"cpu": "8"}}))["status"]
    assert status["allocatable"] is not status["capacity"]


def test_a_nodes_status_carries_labels_and_leaves_the_spec() -> None:
    old = created(node(), "")
    report = node(meta={"labels": {"a": "b"}}, spec={"unschedulable": True}, status={"capacity": {"cpu": "2"}})
    new = updated(report, old, "status")
    assert new["metadata"]["labels"] == {"a": "b"}
    assert new["spec"] == old["spec"]
    assert new["status"]["capacity"] == {"cpu": "2"}


def test_the_main_endpoint_leaves_a_nodes_status() -> None:
    old = created(node(status={"capacity": {"cpu": "8"}}), "")
    new = updated(node(spec={"unschedulable": True}), old)
    assert new["status"] == old["status"]
    assert NODES.fields(new) == {"spec.unschedulable": "true"}
    assert NODES.fields({}) == {"spec.unschedulable": "false"}


def test_a_namespace_carries_its_name_and_its_finalizer() -> None:
    obj = created(core("Namespace", "ci", spec={"finalizers": ["a.io/b"]}), "")
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "ci"}
    assert obj["spec"]["finalizers"] == ["a.io/b", "kubernetes"]
    assert obj["status"] == {"phase": "Active"}


def test_a_generated_name_reaches_the_label_too() -> None:
    obj = decoded({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "ci-"}})
    obj["metadata"]["name"] = "ci-x"
    NAMESPACES.prepare_create(obj)
    assert obj["metadata"]["labels"] == {"kubernetes.io/metadata.name": "ci-x"}


def test_only_finalize_changes_a_namespaces_finalizers() -> None:
    old = created(core("Namespace", "ci"), "")
    emptied = core("Namespace", "ci", spec={"finalizers": []}, status={"phase": "Terminating"})
    assert updated(emptied, old)["spec"]["finalizers"] == ["kubernetes"]
    finalized = decoded(emptied)
    NAMESPACES.prepare_finalize(finalized, old)
    assert not finalized["spec"].get("finalizers")
    assert finalized["status"] == {"phase": "Active"}
    assert NAMESPACES.validate_finalize(finalized, old) == []


def test_finalize_judges_each_finalizer() -> None:
    obj = core("Namespace", "ci", spec={"finalizers": ["kubernetes", "nope"]})
    (error,) = NAMESPACES.validate_finalize(obj, obj)
    assert error.field == "spec.finalizers[1]"


def test_the_phase_of_a_namespace_follows_its_deletion() -> None:
    active, ending = ({"metadata": {}, "status": {"phase": phase}} for phase in ("Active", "Terminating"))
    assert NAMESPACES.validate_status(active, active) == []
    (error,) = NAMESPACES.validate_status(ending, active)
    assert error.detail == "may only be 'Active' if `deletionTimestamp` is empty"
    ending["metadata"] = active["metadata"] = {"deletionTimestamp": "2026-01-02T03:04:05Z"}
    assert NAMESPACES.validate_status(ending, active) == []
    assert NAMESPACES.fields(active) == {"status.phase": "Active"}
    (error,) = NAMESPACES.validate_status(active, active)
    assert error.detail == "may only be 'Terminating' if `deletionTimestamp` is not empty"
