"""Every finalizer we set, and those of others that we must understand.

A finalizer is written before the thing it guards exists and leaves only when that thing is gone (I2). Each has exactly one
owner: no other component may remove it, except the documented sweep for Pods whose Node no longer exists.
"""

from typing import Final

MACHINE: Final = "scalewayapplesilicon.cluster.x-k8s.io/finalizer"
"""ScalewayAppleSiliconMachine, by provider: the host is not yet back in its pool, or its credentials still exist."""

RUNNER_POOL_DRAIN: Final = "tuist.dev/runner-pool-drain"
"""RunnerPool, by runners: the pool still has Pods with running jobs."""

VM_CLEANUP: Final = "tart-kubelet.tuist.dev/vm-cleanup"
"""Pod, by kubelet: the Pod's VM may still be on the host; it goes with the VM, whatever the Pod's phase (I5)."""

CAPI_CLUSTER: Final = "cluster.cluster.x-k8s.io"
"""Cluster, by Cluster API: Machines of the cluster remain."""

CAPI_MACHINE: Final = "machine.cluster.x-k8s.io"
"""Machine, by Cluster API: the infrastructure object or the Node remains."""

FOREGROUND_DELETION: Final = "foregroundDeletion"
"""Any object, by the API server: its dependents must go first."""

ORPHAN_DEPENDENTS: Final = "orphan"
"""Any object, by the API server: its dependents must first be set free."""

CUSTOM_RESOURCE_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""CustomResourceDefinition, by the API server: objects of the kind remain."""
