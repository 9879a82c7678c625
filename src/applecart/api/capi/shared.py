"""What does not depend on the version of Cluster API: references, old-style conditions, ownership and pausing.

Pure questions about objects somebody else fetched. A pause never holds a deletion back; that is for the caller to keep.
"""

from datetime import datetime
from typing import NamedTuple, Protocol

from applecart.api import annotations, labels
from applecart.api.meta import Object, ObjectMeta, Part

GROUP = "cluster.x-k8s.io"


class Reference(NamedTuple):
    """What an object points to, without the API version: versions change, the object stays. Same namespace."""

    group: str
    kind: str
    name: str


class CapiCondition(Part):
    """Whether something is true of the object, why, and how bad it is when it is not (v1beta1 contract)."""

    type: str
    status: str
    severity: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class MachineAddress(Part):
    type: str  # Hostname, ExternalIP, InternalIP, ExternalDNS, InternalDNS
    address: str


class Endpoint(Part):
    host: str = ""
    port: int = 0


class AnyCluster(Protocol):
    """A Cluster of either version."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def is_paused(self) -> bool: ...
    @property
    def is_infrastructure_ready(self) -> bool: ...
    @property
    def is_control_plane_initialized(self) -> bool: ...
    @property
    def infrastructure(self) -> Reference | None: ...


class AnyMachine(Protocol):
    """A Machine of either version."""

    @property
    def metadata(self) -> ObjectMeta: ...
    @property
    def cluster_name(self) -> str: ...
    @property
    def infrastructure(self) -> Reference | None: ...
    @property
    def provider_id(self) -> str: ...
    @property
    def node_name(self) -> str: ...
    @property
    def bootstrap_secret(self) -> str: ...


def owner_machine(obj: Object) -> str | None:
    """The Machine that owns an infrastructure object; None while Cluster API has not said so yet.

    Cluster API creates the object owned by its MachineSet and adds the Machine later, so None is a state, not an error.
    """
    return _owner(obj, "Machine")


def owner_cluster(obj: Object) -> str | None:
    """The Cluster that owns an infrastructure cluster; None while Cluster API has not said so yet."""
    return _owner(obj, "Cluster")


def cluster_name(obj: Object) -> str:
    """The Cluster an object belongs to, by label; empty when it says none."""
    return obj.labels.get(labels.CLUSTER_NAME, "")


def is_paused(obj: Object, cluster: AnyCluster | None) -> bool:
    """Somebody asked us to leave this object alone: on it (any value counts, even `false`), or on its whole Cluster."""
    return annotations.PAUSED in obj.annotations or (cluster is not None and cluster.is_paused)


def _owner(obj: Object, kind: str) -> str | None:
    for owner in obj.metadata.owner_references:
        if owner.kind == kind and group_of(owner.api_version) == GROUP:
            return owner.name
    return None


def group_of(api_version: str) -> str:
    """The group of `group/version`; the core group has no name."""
    return api_version.rpartition("/")[0]
