"""cluster.x-k8s.io/v1beta2: references by group and kind, first readiness in `status.initialization`, metav1 conditions.

Only what we read. The properties give the answers of `shared.AnyCluster` and `shared.AnyMachine`; whoever reads the fields
themselves has tied itself to this version.
"""

from datetime import datetime

from msgspec import field

from applecart.api.capi.shared import GROUP, Endpoint, MachineAddress, Reference
from applecart.api.containers import IntOrString
from applecart.api.meta import Condition, LabelSelector, Object, ObjectMeta, Part, Resource


class GroupReference(Part):
    api_group: str
    kind: str
    name: str

    @property
    def target(self) -> Reference:
        return Reference(self.api_group, self.kind, self.name)


class ClusterSpec(Part):
    paused: bool | None = None
    control_plane_endpoint: Endpoint | None = None
    control_plane_ref: GroupReference | None = None
    infrastructure_ref: GroupReference | None = None


class ClusterInitialization(Part):
    infrastructure_provisioned: bool | None = None
    control_plane_initialized: bool | None = None


class ClusterStatus(Part):
    phase: str = ""
    initialization: ClusterInitialization = ClusterInitialization()
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0


class Cluster(Object):
    resource = Resource(GROUP, "v1beta2", "Cluster", "clusters")

    spec: ClusterSpec = ClusterSpec()
    status: ClusterStatus = ClusterStatus()

    @property
    def is_paused(self) -> bool:
        return bool(self.spec.paused)

    @property
    def is_infrastructure_ready(self) -> bool:
        return bool(self.status.initialization.infrastructure_provisioned)

    @property
    def is_control_plane_initialized(self) -> bool:
        return bool(self.status.initialization.control_plane_initialized)

    @property
    def infrastructure(self) -> Reference | None:
        return self.spec.infrastructure_ref.target if self.spec.infrastructure_ref else None


class Bootstrap(Part):
    config_ref: GroupReference | None = None
    data_secret_name: str | None = None


class MachineDeletion(Part):
    node_drain_timeout_seconds: int | None = None
    node_deletion_timeout_seconds: int | None = None
    node_volume_detach_timeout_seconds: int | None = None


class MachineSpec(Part):
    cluster_name: str = ""
    bootstrap: Bootstrap = Bootstrap()
    infrastructure_ref: GroupReference | None = None
    provider_id: str = field(default="", name="providerID")
    failure_domain: str = ""
    version: str = ""
    min_ready_seconds: int | None = None
    deletion: MachineDeletion | None = None


class NodeReference(Part):
    name: str = ""


class MachineInitialization(Part):
    infrastructure_provisioned: bool | None = None
    bootstrap_data_secret_created: bool | None = None


class MachineStatus(Part):
    phase: str = ""
    node_ref: NodeReference | None = None
    initialization: MachineInitialization = MachineInitialization()
    addresses: tuple[MachineAddress, ...] = ()
    conditions: tuple[Condition, ...] = ()
    last_updated: datetime | None = None
    observed_generation: int = 0


class Machine(Object):
    resource = Resource(GROUP, "v1beta2", "Machine", "machines")

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


class SetDeletion(Part):
    order: str | None = None


class MachineSetSpec(Part):
    cluster_name: str = ""
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: MachineTemplate = MachineTemplate()
    deletion: SetDeletion | None = None


class MachineSetStatus(Part):
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    up_to_date_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0


class MachineSet(Object):
    resource = Resource(GROUP, "v1beta2", "MachineSet", "machinesets")

    spec: MachineSetSpec = MachineSetSpec()
    status: MachineSetStatus = MachineSetStatus()


class RollingUpdate(Part):
    max_surge: IntOrString | None = None
    max_unavailable: IntOrString | None = None


class Strategy(Part):
    type: str
    rolling_update: RollingUpdate | None = None


class Rollout(Part):
    after: datetime | None = None
    strategy: Strategy | None = None


class MachineDeploymentSpec(Part):
    cluster_name: str = ""
    replicas: int | None = None
    selector: LabelSelector = LabelSelector()
    template: MachineTemplate = MachineTemplate()
    rollout: Rollout | None = None
    deletion: SetDeletion | None = None
    paused: bool | None = None


class MachineDeploymentStatus(Part):
    phase: str = ""
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    up_to_date_replicas: int | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0


class MachineDeployment(Object):
    resource = Resource(GROUP, "v1beta2", "MachineDeployment", "machinedeployments")

    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()
