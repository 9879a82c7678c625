"""cluster.x-k8s.io/v1beta1: references with an API version, readiness as booleans, conditions with a severity.

Only what we read. The properties give the answers of `shared.AnyCluster` and `shared.AnyMachine`; whoever reads the fields
themselves has tied itself to this version.
"""

from datetime import datetime

from msgspec import field

from applecart.api import conditions as types
from applecart.api.capi.shared import GROUP, CapiCondition, Endpoint, MachineAddress, Reference, group_of
from applecart.api.containers import IntOrString
from applecart.api.meta import Condition, LabelSelector, Object, ObjectMeta, Part, Resource


class VersionedReference(Part):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""

    @property
    def target(self) -> Reference:
        return Reference(group_of(self.api_version), self.kind, self.name)


class NewerStatus(Part):
    """The part of a status that already speaks v1beta2."""

    conditions: tuple[Condition, ...] = ()


class ClusterSpec(Part):
    paused: bool = False
    control_plane_endpoint: Endpoint | None = None
    control_plane_ref: VersionedReference | None = None
    infrastructure_ref: VersionedReference | None = None


class ClusterStatus(Part):
    phase: str = ""
    infrastructure_ready: bool = False
    control_plane_ready: bool = False
    conditions: tuple[CapiCondition, ...] = ()
    observed_generation: int = 0
    v1beta2: NewerStatus | None = None


class Cluster(Object):
    resource = Resource(GROUP, "v1beta1", "Cluster", "clusters")

    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    @property
    def is_paused(self) -> bool:
        return self.spec.paused

    @property
    def is_infrastructure_ready(self) -> bool:
        return self.status.infrastructure_ready

    @property
    def is_control_plane_initialized(self) -> bool:
        return any(c.type == types.CONTROL_PLANE_INITIALIZED and c.status == "True" for c in self.status.conditions)

    @property
    def infrastructure(self) -> Reference | None:
        return self.spec.infrastructure_ref.target if self.spec.infrastructure_ref else None


class Bootstrap(Part):
    config_ref: VersionedReference | None = None
    data_secret_name: str | None = None


class MachineSpec(Part):
    cluster_name: str = ""
    bootstrap: Bootstrap = Bootstrap()
    infrastructure_ref: VersionedReference | None = None
    provider_id: str = field(default="", name="providerID")
    failure_domain: str = ""
    version: str = ""
    node_drain_timeout: str | None = None
    node_deletion_timeout: str | None = None
    node_volume_detach_timeout: str | None = None


class MachineStatus(Part):
    phase: str = ""
    node_ref: VersionedReference | None = None
    infrastructure_ready: bool = False
    bootstrap_ready: bool = False
    addresses: tuple[MachineAddress, ...] = ()
    conditions: tuple[CapiCondition, ...] = ()
    failure_reason: str = ""
    failure_message: str = ""
    last_updated: datetime | None = None
    observed_generation: int = 0
    v1beta2: NewerStatus | None = None


class Machine(Object):
    resource = Resource(GROUP, "v1beta1", "Machine", "machines")

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def cluster_name(self) -> str:
        return self.spec.cluster_name

    @property
    def infrastructure(self) -> Reference | None:
        return self.spec.infrastructure_ref.target if self.spec.infrastructure_ref else None

    @property
    def provider_id(self) -> str:
        return self.spec.provider_id

    @property
    def node_name(self) -> str:
        return self.status.node_ref.name if self.status.node_ref else ""

    @property
    def bootstrap_secret(self) -> str:
        return self.spec.bootstrap.data_secret_name or ""


class MachineTemplate(Part):
    metadata: ObjectMeta = ObjectMeta()
    spec: MachineSpec = MachineSpec()


class MachineSetSpec(Part):
    cluster_name: str = ""
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: MachineTemplate = MachineTemplate()
    delete_policy: str | None = None
    min_ready_seconds: int | None = None


class MachineSetStatus(Part):
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    fully_labeled_replicas: int = 0
    conditions: tuple[CapiCondition, ...] = ()
    observed_generation: int = 0
    v1beta2: NewerStatus | None = None


class MachineSet(Object):
    resource = Resource(GROUP, "v1beta1", "MachineSet", "machinesets")

    spec: MachineSetSpec = MachineSetSpec()
    status: MachineSetStatus = MachineSetStatus()


class RollingUpdate(Part):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    delete_policy: str | None = None


class Strategy(Part):
    type: str = ""
    rolling_update: RollingUpdate | None = None


class MachineDeploymentSpec(Part):
    cluster_name: str = ""
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: MachineTemplate = MachineTemplate()
    strategy: Strategy | None = None
    paused: bool = False


class MachineDeploymentStatus(Part):
    phase: str = ""
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    conditions: tuple[CapiCondition, ...] = ()
    observed_generation: int = 0
    v1beta2: NewerStatus | None = None


class MachineDeployment(Object):
    resource = Resource(GROUP, "v1beta1", "MachineDeployment", "machinedeployments")

    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()
