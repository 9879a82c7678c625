"""Both served versions of Cluster API answer the same questions."""

from typing import Any

import msgspec
import pytest

from applecart.api import capi
from applecart.api.capi import shared, v1beta1, v1beta2
from applecart.api.capi.shared import AnyCluster, AnyMachine, Reference
from applecart.api.infrastructure import ScalewayAppleSiliconMachine
from applecart.api.meta import ObjectMeta, OwnerReference

SAMM = "ScalewayAppleSiliconMachine"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
OLD_REFERENCE = {"apiVersion": f"{INFRASTRUCTURE}/v1alpha1", "kind": SAMM, "namespace": "fleet", "name": "mac-1"}
NEW_REFERENCE = {"apiGroup": INFRASTRUCTURE, "kind": SAMM, "name": "mac-1"}
SINCE = "2026-01-01T00:00:00Z"

MACHINES: list[tuple[type[Any], dict[str, Any]]] = [
    (
        v1beta1.Machine,
        {
            "spec": {
                "clusterName": "fleet-capi",
                "bootstrap": {"dataSecretName": "noop"},
                "infrastructureRef": OLD_REFERENCE,
                "providerID": "scw-applesilicon://fr-par-1/u",
                "nodeDrainTimeout": "10m",
            },
            "status": {
                "phase": "Running",
                "nodeRef": {"apiVersion": "v1", "kind": "Node", "name": "mac-1", "uid": "u"},
                "infrastructureReady": True,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": SINCE}],
            },
        },
    ),
    (
        v1beta2.Machine,
        {
            "spec": {
                "clusterName": "fleet-capi",
                "bootstrap": {"dataSecretName": "noop"},
                "infrastructureRef": NEW_REFERENCE,
                "providerID": "scw-applesilicon://fr-par-1/u",
                "deletion": {"nodeDrainTimeoutSeconds": 600},
            },
            "status": {
                "phase": "Running",
                "nodeRef": {"name": "mac-1"},
                "initialization": {"infrastructureProvisioned": True},
                "conditions": [
                    {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": SINCE}
                ],
            },
        },
    ),
]

CLUSTERS: list[tuple[type[Any], dict[str, Any]]] = [
    (
        v1beta1.Cluster,
        {
            "spec": {"paused": True, "infrastructureRef": OLD_REFERENCE},
            "status": {
                "infrastructureReady": True,
                "conditions": [{"type": "ControlPlaneInitialized", "status": "True", "lastTransitionTime": SINCE}],
            },
        },
    ),
    (
        v1beta2.Cluster,
        {
            "spec": {"paused": True, "infrastructureRef": NEW_REFERENCE},
            "status": {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}},
        },
    ),
]


@pytest.mark.parametrize(("kind", "document"), MACHINES)
def test_a_machine_of_either_version_gives_the_same_answers(kind: type[Any], document: dict[str, Any]) -> None:
    machine: AnyMachine = msgspec.convert(document, kind)
    assert machine.cluster_name == "fleet-capi"
    assert machine.infrastructure == Reference(INFRASTRUCTURE, SAMM, "mac-1")
    assert machine.provider_id == "scw-applesilicon://fr-par-1/u"
    assert machine.node_name == "mac-1"
    assert machine.bootstrap_secret == "noop"


@pytest.mark.parametrize("kind", [v1beta1.Machine, v1beta2.Machine])
def test_a_machine_that_was_just_created_has_no_answers_yet(kind: type[Any]) -> None:
    machine: AnyMachine = kind()
    assert machine.infrastructure is None
    assert (machine.cluster_name, machine.node_name, machine.provider_id, machine.bootstrap_secret) == ("", "", "", "")


@pytest.mark.parametrize(("kind", "document"), CLUSTERS)
def test_a_cluster_of_either_version_gives_the_same_answers(kind: type[Any], document: dict[str, Any]) -> None:
    cluster: AnyCluster = msgspec.convert(document, kind)
    assert cluster.is_paused
    assert cluster.is_infrastructure_ready
    assert cluster.is_control_plane_initialized
    assert cluster.infrastructure == Reference(INFRASTRUCTURE, SAMM, "mac-1")


@pytest.mark.parametrize("kind", [v1beta1.Cluster, v1beta2.Cluster])
def test_a_cluster_that_was_just_created_is_neither_ready_nor_paused(kind: type[Any]) -> None:
    cluster: AnyCluster = kind()
    answers = cluster.is_paused, cluster.is_infrastructure_ready, cluster.is_control_plane_initialized
    assert answers == (False, False, False)
    assert cluster.infrastructure is None


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_control_plane_that_is_not_known_to_be_there_is_not_there(status: str) -> None:
    condition = shared.CapiCondition(type="ControlPlaneInitialized", status=status)
    assert not v1beta1.Cluster(status=v1beta1.ClusterStatus(conditions=(condition,))).is_control_plane_initialized


def test_each_version_is_served_where_its_name_says() -> None:
    assert list(capi.KINDS) == ["v1beta2", "v1beta1"]
    for version, kinds in capi.KINDS.items():
        assert {kind.resource.api_version for kind in kinds} == {f"cluster.x-k8s.io/{version}"}
        assert [kind.__name__ for kind in kinds] == ["Cluster", "Machine", "MachineSet", "MachineDeployment"]


def owner(api_version: str, kind: str, name: str) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid="u")


def machine_with(*owners: OwnerReference, **metadata: Any) -> ScalewayAppleSiliconMachine:
    return ScalewayAppleSiliconMachine(metadata=ObjectMeta(owner_references=owners, **metadata))


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_the_owner_machine_is_found_whatever_version_wrote_the_reference(version: str) -> None:
    obj = machine_with(owner(f"cluster.x-k8s.io/{version}", "Machine", "m-1"))
    assert shared.owner_machine(obj) == "m-1"
    assert shared.owner_cluster(obj) is None


def test_an_object_that_only_its_machine_set_owns_has_no_machine_yet() -> None:
    """Cluster API creates the infrastructure object first; adopting then skipped every gate of the Cluster."""
    assert shared.owner_machine(machine_with(owner("cluster.x-k8s.io/v1beta1", "MachineSet", "ms"))) is None


def test_a_machine_of_another_group_is_not_the_owner() -> None:
    assert shared.owner_machine(machine_with(owner("other.example/v1", "Machine", "m"))) is None
    assert shared.owner_machine(machine_with(owner("v1", "Machine", "m"))) is None


def test_the_cluster_is_known_by_label() -> None:
    assert shared.cluster_name(machine_with(labels={"cluster.x-k8s.io/cluster-name": "c"})) == "c"
    assert shared.cluster_name(machine_with()) == ""


PAUSED_CLUSTER = v1beta2.Cluster(spec=v1beta2.ClusterSpec(paused=True))


@pytest.mark.parametrize("value", ["", "true", "false"])
def test_the_pause_annotation_counts_with_any_value(value: str) -> None:
    assert shared.is_paused(machine_with(annotations={"cluster.x-k8s.io/paused": value}), None)


def test_a_paused_cluster_pauses_its_machines() -> None:
    assert shared.is_paused(machine_with(), PAUSED_CLUSTER)
    assert not shared.is_paused(machine_with(), v1beta1.Cluster())
    assert not shared.is_paused(machine_with(), None)


@pytest.mark.parametrize("kinds", capi.KINDS.values(), ids=capi.KINDS.keys())
def test_counts_and_selectors_of_sets_and_deployments_are_read(kinds: capi.Kinds) -> None:
    document = {
        "spec": {
            "clusterName": "c",
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"clusterName": "c"}},
        },
        "status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "observedGeneration": 4},
    }
    for kind in (kinds.machine_set, kinds.machine_deployment):
        obj = msgspec.convert(document, kind)
        assert (obj.spec.replicas, obj.spec.selector.match_labels) == (0, {"a": "b"})
        assert obj.spec.template.metadata.labels == {"a": "b"}
        assert (obj.status.replicas, obj.status.ready_replicas, obj.status.available_replicas) == (3, 2, 1)
