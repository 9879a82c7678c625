"""Cluster API's own core manager takes our kinds for what they are: infrastructure that keeps its contract."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from applecart.api import crd, generate
from applecart.api.capi import shared, v1beta2
from applecart.api.infrastructure import ScalewayAppleSiliconMachine, TuistCluster
from applecart.api.meta import Resource
from applecart.embedded.binaries.cluster import Options
from tests.api.examples import PROVIDER_ID, SERVER_ID, SINCE
from tests.api.raw_api import RawApi, collection
from tests.kubernetes.cluster import FullCluster

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
NAMESPACE = "default"
GROUP = "infrastructure.cluster.x-k8s.io"
READY = {"type": "Ready", "status": "True", "reason": "Converged", "message": "all is well", "lastTransitionTime": SINCE}
CLUSTER = v1beta2.Cluster.resource
DEPLOYMENT = v1beta2.MachineDeployment.resource
MACHINE = v1beta2.Machine.resource
OURS = ScalewayAppleSiliconMachine.resource
SELECTED = {"cluster.x-k8s.io/deployment-name": "minis"}


def reference(kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": GROUP, "kind": kind, "name": name}


def manifest(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "fleet"}}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def machine_deployment() -> dict[str, Any]:
    """Complete, because no webhook runs here that would fill it in."""
    spec = {
        "clusterName": "fleet",
        "replicas": 1,
        "selector": {"matchLabels": SELECTED},
        "rollout": {"strategy": {"type": "OnDelete"}},
        "template": {
            "metadata": {"labels": {**SELECTED, "cluster.x-k8s.io/cluster-name": "fleet"}},
            "spec": {
                "clusterName": "fleet",
                "bootstrap": {"dataSecretName": "noop"},
                "infrastructureRef": reference("ScalewayAppleSiliconMachineTemplate", "minis"),
            },
        },
    }
    return manifest(DEPLOYMENT, "minis", spec)


def wait_for(cluster: FullCluster, resource: Resource, what: str, *names: str) -> None:
    which = names or ("--all",)
    cluster.kubectl("wait", f"--namespace={NAMESPACE}", resource.label, *which, f"--for={what}", "--timeout=25s")


def only(api: RawApi, kind: type[Any]) -> Any:
    _, listed = api.call("GET", collection(kind.resource, NAMESPACE))
    (item,) = listed["items"]
    return msgspec.convert(item, kind)


async def test_a_host_we_report_becomes_a_provisioned_machine(kube_programs: Path, tmp_path: Path) -> None:
    async with FullCluster(kube_programs, tmp_path, Options(durable=False)) as cluster:
        cluster.kubectl("apply", "-f", str(ROOT / generate.CRD_FOLDER))
        cluster.kubectl("wait", "--for=condition=Established", "--filename", str(ROOT / generate.CRD_FOLDER))
        await cluster.start_cluster_api()
        api = RawApi(cluster)
        template = next(d.kind.resource for d in crd.DEFINITIONS if d.short_name == "sammt")
        spec = {"template": {"spec": {"fleetName": "minis", "adoptPoolPrefix": "tuist-pool-"}}}
        of_cluster = {
            "infrastructureRef": reference("TuistCluster", "fleet"),
            "controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443},
        }
        for resource, document in (
            (TuistCluster.resource, manifest(TuistCluster.resource, "fleet", {})),
            (CLUSTER, manifest(CLUSTER, "fleet", of_cluster)),
            (template, manifest(template, "minis", spec)),
            (DEPLOYMENT, machine_deployment()),
        ):
            code, answer = api.create(resource, NAMESPACE, document)
            assert code == 201, answer

        provisioned = {"status": {"ready": True, "initialization": {"provisioned": True}}}
        wait_for(cluster, TuistCluster.resource, "jsonpath={.metadata.ownerReferences[0].kind}=Cluster", "fleet")
        assert shared.owner_cluster(only(api, TuistCluster)) == "fleet"
        assert api.merge(TuistCluster.resource, NAMESPACE, "fleet", provisioned, "status")[0] == 200
        wait_for(cluster, CLUSTER, "jsonpath={.status.initialization.infrastructureProvisioned}=true", "fleet")
        assert only(api, v1beta2.Cluster).is_infrastructure_ready

        wait_for(cluster, OURS, "create")
        wait_for(cluster, OURS, "jsonpath={.metadata.ownerReferences[?(@.kind=='Machine')].kind}=Machine")
        ours = only(api, ScalewayAppleSiliconMachine)
        assert (ours.spec.fleet_name, ours.spec.type) == ("minis", "M2-L")
        assert shared.cluster_name(ours) == "fleet"
        assert shared.owner_machine(ours) == only(api, v1beta2.Machine).name

        status = {
            **provisioned["status"],
            "serverID": SERVER_ID,
            "addresses": [{"type": "ExternalIP", "address": "192.0.2.7"}],
            "v1beta2": {"conditions": [READY]},
        }
        assert api.merge(OURS, NAMESPACE, ours.name, {"spec": {"providerID": PROVIDER_ID}})[0] == 200
        assert api.merge(OURS, NAMESPACE, ours.name, {"status": status}, "status")[0] == 200
        wait_for(cluster, MACHINE, "jsonpath={.status.initialization.infrastructureProvisioned}=true")
        wait_for(cluster, MACHINE, "condition=InfrastructureReady")

        machine = only(api, v1beta2.Machine)
        assert machine.provider_id == PROVIDER_ID
        assert machine.infrastructure == shared.Reference(GROUP, "ScalewayAppleSiliconMachine", ours.name)
        assert [address.address for address in machine.status.addresses] == ["192.0.2.7"]
        (mirrored,) = [c for c in machine.status.conditions if c.type == "InfrastructureReady"]
        assert (mirrored.reason, mirrored.message) == ("Converged", "all is well")
