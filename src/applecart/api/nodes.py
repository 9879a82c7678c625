"""Node, and the RuntimeClass whose overhead a Pod on it costs.

The kubelet owns its Node's status; the provider and the node lifecycle controller read it. A `Ready` that nobody renews is
judged by the Node's Lease, not by the heartbeat times in here.
"""

from datetime import datetime

from msgspec import field

from applecart.api.meta import Object, Part, Resource
from applecart.api.scheduling import Toleration


class Taint(Part):
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None


class NodeSpec(Part):
    provider_id: str = field(default="", name="providerID")
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    pod_cidr: str = field(default="", name="podCIDR")
    pod_cidrs: tuple[str, ...] = field(default=(), name="podCIDRs")


class NodeCondition(Part):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class NodeAddress(Part):
    type: str
    address: str


class NodeSystemInfo(Part):
    machine_id: str = field(default="", name="machineID")
    system_uuid: str = field(default="", name="systemUUID")
    boot_id: str = field(default="", name="bootID")
    kernel_version: str = ""
    os_image: str = ""
    container_runtime_version: str = ""
    kubelet_version: str = ""
    kube_proxy_version: str = ""
    operating_system: str = ""
    architecture: str = ""


class ContainerImage(Part):
    names: tuple[str, ...] = ()
    size_bytes: int = 0


class DaemonEndpoint(Part):
    port: int = field(name="Port")  # a capital in the API, by an old mistake


class NodeDaemonEndpoints(Part):
    kubelet_endpoint: DaemonEndpoint | None = None


class NodeStatus(Part):
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()
    node_info: NodeSystemInfo | None = None
    images: tuple[ContainerImage, ...] = ()
    daemon_endpoints: NodeDaemonEndpoints | None = None
    phase: str = ""


class Node(Object):
    resource = Resource("", "v1", "Node", "nodes", namespaced=False)

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def condition(self, type_: str) -> NodeCondition | None:
        return next((condition for condition in self.status.conditions if condition.type == type_), None)


class Overhead(Part):
    pod_fixed: dict[str, str] = {}


class RuntimeClassScheduling(Part):
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Object):
    resource = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)

    handler: str = ""
    overhead: Overhead | None = None
    scheduling: RuntimeClassScheduling | None = None
