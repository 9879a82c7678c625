"""Pod, and the two bodies that are posted to it: Binding and Eviction.

A cache holds ten thousand of these, so optional parts are None until they are set and lists are tuples. Managed fields and
volumes of foreign kinds are not decoded; writes are patches, so they survive.
"""

from datetime import datetime

from msgspec import field

from applecart.api.containers import Container, ContainerStatus, Resources
from applecart.api.meta import Object, ObjectMeta, Part, Resource
from applecart.api.scheduling import Affinity, SchedulingGate, Toleration, TopologySpread
from applecart.api.volumes import Volume

PENDING = "Pending"
RUNNING = "Running"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
UNKNOWN = "Unknown"


class LocalReference(Part):
    """A name in the same namespace."""

    name: str = ""


class Sysctl(Part):
    name: str
    value: str


class PodSecurityContext(Part):
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    fs_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    sysctls: tuple[Sysctl, ...] = ()


class HostAlias(Part):
    ip: str
    hostnames: tuple[str, ...] = ()


class PodDnsOption(Part):
    name: str = ""
    value: str | None = None


class PodDnsConfig(Part):
    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[PodDnsOption, ...] = ()


class ReadinessGate(Part):
    condition_type: str


class PodOS(Part):
    name: str


class PodSpec(Part):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpread, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    scheduler_name: str | None = None
    restart_policy: str | None = None  # the API's default is Always
    termination_grace_period_seconds: int | None = None  # the API's default is 30
    active_deadline_seconds: int | None = None
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[LocalReference, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    overhead: dict[str, str] = {}
    resources: Resources | None = None
    security_context: PodSecurityContext | None = None
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    host_pid: bool = field(default=False, name="hostPID")
    host_ipc: bool = field(default=False, name="hostIPC")
    host_aliases: tuple[HostAlias, ...] = ()
    dns_policy: str | None = None
    dns_config: PodDnsConfig | None = None
    readiness_gates: tuple[ReadinessGate, ...] = ()
    share_process_namespace: bool | None = None
    enable_service_links: bool | None = None
    os: PodOS | None = None


class PodCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


class PodIP(Part):
    ip: str = ""


class HostIP(Part):
    ip: str = ""


class PodStatus(Part):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    ephemeral_container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = field(default="", name="podIP")
    pod_ips: tuple[PodIP, ...] = field(default=(), name="podIPs")
    host_ip: str = field(default="", name="hostIP")
    host_ips: tuple[HostIP, ...] = field(default=(), name="hostIPs")
    start_time: datetime | None = None
    nominated_node_name: str = ""
    qos_class: str = ""
    observed_generation: int | None = None


class Pod(Object):
    resource = Resource("", "v1", "Pod", "pods")

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_terminal(self) -> bool:
        """It ended and never runs again (I4)."""
        return self.status.phase in (SUCCEEDED, FAILED)

    @property
    def is_alive(self) -> bool:
        """It counts as capacity: neither ended nor being deleted."""
        return not self.is_terminal and not self.is_being_deleted

    def condition(self, type_: str) -> PodCondition | None:
        return next((condition for condition in self.status.conditions if condition.type == type_), None)


class PodTemplate(Part):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ObjectReference(Part):
    """A full reference: what a Binding targets, what an Event is about."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class Binding(Object, kw_only=True):
    """Posted to a Pod's `binding` to place it on a Node."""

    resource = Resource("", "v1", "Binding", "bindings")

    target: ObjectReference


class Preconditions(Part):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(Part):
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    propagation_policy: str | None = None
    dry_run: tuple[str, ...] = ()


class Eviction(Object):
    """Posted to a Pod's `eviction`: a delete that a disruption budget may refuse."""

    resource = Resource("policy", "v1", "Eviction", "evictions")

    delete_options: DeleteOptions | None = None
