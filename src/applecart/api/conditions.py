"""Every condition type we write, and those of others that decide something for us.

The string under a constant says on which kind it stands, who writes it and what `True` promises. The reasons a condition may
give are in `reasons/`. How a condition is merged into a status belongs to `applecart.kube`.
"""

from typing import Final

PROVISIONED: Final = "Provisioned"
"""ScalewayAppleSiliconMachine, by provider: a host is claimed and its credentials are stored."""

BOOTSTRAPPED: Final = "Bootstrapped"
"""ScalewayAppleSiliconMachine, by provider: the host was converged from first step to last."""

READY: Final = "Ready"
"""Node, Pod and Cluster API objects, by kubelet, provider or Cluster API: the object can do its work now."""

PAUSED: Final = "Paused"
"""ScalewayAppleSiliconMachine and TuistCluster, by provider: reconciliation is held back on request (contract v1beta2)."""

CONTROL_PLANE_INITIALIZED: Final = "ControlPlaneInitialized"
"""Cluster, by provider: the control plane is run by others and is there; without it Cluster API lets no Machine proceed."""

INFRASTRUCTURE_READY: Final = "InfrastructureReady"
"""Cluster and Machine, by Cluster API: the infrastructure object reported itself provisioned."""

OWNER_REMEDIATED: Final = "OwnerRemediated"
"""Machine, by Cluster API: `False` asks the owning set to replace the Machine."""

DISK_PRESSURE: Final = "DiskPressure"
"""Node, by kubelet: the host's disk, or that of a guest, is nearly full."""

MEMORY_PRESSURE: Final = "MemoryPressure"
"""Node, by its kubelet: memory is short; such a node takes no new runner."""

PID_PRESSURE: Final = "PIDPressure"
"""Node, by its kubelet: process ids are short; such a node takes no new runner."""

NETWORK_UNAVAILABLE: Final = "NetworkUnavailable"
"""Node, by its kubelet: the network of the node is not set up."""

HOST_BUSY: Final = "TartKubeletHostBusy"
"""Node, by kubelet: a VM or a build runs on the host; absent or stale means unknown, and unknown is not idle (I7)."""

POD_SCHEDULED: Final = "PodScheduled"
"""Pod, by the scheduler: the Pod has a node; the clock of a start deadline begins here."""

POD_INITIALIZED: Final = "Initialized"
"""Pod, by kubelet: nothing has to run before the containers."""

CONTAINERS_READY: Final = "ContainersReady"
"""Pod, by kubelet: the guest runs and has an address."""
