"""Why a Node, a Pod or a guest's container is as the kubelet says, and what the kubelet records as Events.

A container that ended with `TartRunExited` or `TartRunFailed` did not report how its job went: a reader must take that as
unknown, never as success.
"""

from typing import Final

from applecart.api.conditions import DISK_PRESSURE, READY
from applecart.api.reasons import ConditionReason, Severity, StatusReason, normal, warning

NODE_READY: Final = ConditionReason("TartKubeletReady", READY, Severity.NONE, "the host can start a VM")
SUFFICIENT_DISK: Final = ConditionReason(
    "TartKubeletHasSufficientDisk", DISK_PRESSURE, Severity.NONE, "host and guests have room left"
)
DISK_NEARLY_FULL: Final = ConditionReason(
    "TartKubeletHasDiskPressure", DISK_PRESSURE, Severity.NONE, "host or guest is nearly full; the message says which"
)

CREATE_FAILED: Final = StatusReason(
    "TartCreateFailed", "`status.reason` of a Pending Pod", "the VM could not be made; the message says at which step"
)
RUN_EXITED: Final = StatusReason(
    "TartRunExited",
    "`status.reason` of a Pod and `terminated.reason` of its container",
    "the VM is gone and the guest reported no exit code; how the job went is unknown",
)
RUN_FAILED: Final = StatusReason(
    "TartRunFailed", "`terminated.reason` of a container", "the hypervisor failed and the guest reported no exit code"
)
COMPLETED: Final = StatusReason("Completed", "`terminated.reason` of a container", "the guest reported exit code 0")
ERROR: Final = StatusReason("Error", "`terminated.reason` of a container", "the guest reported another exit code")

CREATING_VM: Final = normal("CreatingVM", "the Pod's VM is being made")
IDENTITY_REGEN_SKIPPED: Final = warning(
    "IdentityRegenSkipped", "the VM kept the identity of its golden; Apple's asset checks may fail in it"
)
CACHE_VOLUME_SKIPPED: Final = warning("CacheVolumeSkipped", "the VM starts without a cache volume")
