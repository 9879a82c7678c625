"""Why a Node, a Pod or a guest's container is as the kubelet says, and what the kubelet records as Events.

A container that ended with `TartRunExited` or `TartRunFailed` did not report how its job went: a reader must take that as
unknown, never as success.
"""

from typing import Final

from applecart.api.conditions import DISK_PRESSURE, HOST_BUSY, MEMORY_PRESSURE, PID_PRESSURE, READY
from applecart.api.reasons import ConditionReason, Severity, StatusReason, normal, warning

NODE_READY: Final = ConditionReason("TartKubeletReady", READY, Severity.NONE, "the host can start a VM")
NODE_STARTING: Final = ConditionReason(
    "TartKubeletStarting", READY, Severity.NONE, "the agent has just started and has not finished looking at its host"
)
TART_NOT_ANSWERING: Final = ConditionReason(
    "TartNotAnswering", READY, Severity.NONE, "Tart does not answer, so no VM can be made; the message says since when"
)
NO_GUI_SESSION: Final = ConditionReason(
    "NoGuiSession", READY, Severity.NONE, "nobody is logged in on the host's screen, so no VM can start"
)
SCRATCH_VM_FAILED: Final = ConditionReason(
    "ScratchVmFailed", READY, Severity.NONE, "a VM that was booted only to see whether the host can did not come up"
)
SUFFICIENT_DISK: Final = ConditionReason("TartKubeletHasSufficientDisk", DISK_PRESSURE, Severity.NONE, "the host has room left")
DISK_NEARLY_FULL: Final = ConditionReason(
    "TartKubeletHasDiskPressure", DISK_PRESSURE, Severity.NONE, "the host is nearly full; the message says how full"
)
STATE_NOT_WRITABLE: Final = ConditionReason(
    "TartKubeletStateNotWritable",
    DISK_PRESSURE,
    Severity.NONE,
    "the agent cannot write down what it does, so it takes on no Pod; those that run go on",
)
SUFFICIENT_MEMORY: Final = ConditionReason(
    "TartKubeletHasSufficientMemory",
    MEMORY_PRESSURE,
    Severity.NONE,
    "VMs get their memory when they start; never in short supply",
)
SUFFICIENT_PIDS: Final = ConditionReason(
    "TartKubeletHasSufficientPID", PID_PRESSURE, Severity.NONE, "a VM costs the host a few processes; never in short supply"
)
HOST_WORKS: Final = ConditionReason(
    "VmOrBuildRuns", HOST_BUSY, Severity.NONE, "a VM, an image push or a builder's job runs; the message says which"
)
HOST_IS_IDLE: Final = ConditionReason("NothingRuns", HOST_BUSY, Severity.NONE, "the host may be rebooted")
HOST_UNREADABLE: Final = ConditionReason(
    "ProcessesUnreadable", HOST_BUSY, Severity.NONE, "nobody knows what runs, so the host must be taken as busy"
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

_WAITING = "`waiting.reason` of a container and `status.reason` of a Pod that failed for it"
UNSUPPORTED_POD: Final = StatusReason("UnsupportedPod", _WAITING, "the Pod asks for something that no VM has")
INVALID_IMAGE: Final = StatusReason("InvalidImageName", _WAITING, "the text in the Pod is no image reference")
CONFIG_ERROR: Final = StatusReason(
    "CreateContainerConfigError", _WAITING, "a Secret, ConfigMap or account the Pod needs is missing"
)
PULL_FAILED: Final = StatusReason("ErrImagePull", _WAITING, "the registry does not give out the image")
HOST_DISK_FULL: Final = StatusReason("HostDiskFull", _WAITING, "the host has no room for another VM")
VM_NEEDS_GUI_SESSION: Final = StatusReason(
    NO_GUI_SESSION.name, _WAITING, "nobody is logged in on the host's screen, so no VM can start"
)
TOO_MANY_VMS: Final = StatusReason("TooManyVMs", _WAITING, "the two macOS guests that Apple allows per host run already")
VM_IN_THE_WAY: Final = StatusReason(
    "VmInTheWay", _WAITING, "a VM that this agent did not make has a golden's name; the message says which to delete"
)
CONTROL_PLANE: Final = StatusReason(
    "ControlPlaneUnavailable", _WAITING, "the API does not answer or refuses; it is asked again"
)

_ENDED = "`status.reason` of a Failed Pod and `terminated.reason` of its container"
BOOT_TIMED_OUT: Final = StatusReason("TartBootTimedOut", _ENDED, "the guest had no address within the boot deadline")
LIVENESS_FAILED: Final = StatusReason("LivenessProbeFailed", _ENDED, "the guest was ended because its liveness probe failed")
DEADLINE_EXCEEDED: Final = StatusReason("DeadlineExceeded", _ENDED, "the Pod was active longer than it allows itself to be")
DELETED: Final = StatusReason("PodDeleted", _ENDED, "the Pod was deleted before its VM had ended by itself")

CREATING_VM: Final = normal("CreatingVM", "the Pod's VM is being made")
IDENTITY_REGEN_SKIPPED: Final = warning(
    "IdentityRegenSkipped", "the VM kept the identity of its golden; Apple's asset checks may fail in it"
)
CACHE_VOLUME_SKIPPED: Final = warning("CacheVolumeSkipped", "the VM starts without a cache volume")
GUEST_DISK_NEARLY_FULL: Final = warning("GuestDiskNearlyFull", "the guest's own disk is nearly full; its job may fail")
PULLING: Final = normal("Pulling", "the Pod's image is not on the host and is being fetched")
PULLED: Final = normal("Pulled", "the Pod's image is on the host as a golden")
STARTED: Final = normal("Started", "the guest has booted and has an address")
KILLING: Final = normal("Killing", "the VM is asked to stop, because the Pod is being deleted")
FIELDS_IGNORED: Final = normal("FieldsIgnored", "fields of the Pod that change nothing for a VM; the message lists them")
TEARDOWN_INCOMPLETE: Final = warning(
    "TeardownIncomplete", "the Pod is gone although its VM is not yet; the node keeps trying to remove it"
)
UNHEALTHY: Final = warning("Unhealthy", "a probe of the guest failed; the message says which and how")
FORWARD_REFUSED: Final = warning(
    "MetricsNotForwarded", "the guest's metrics are not on the node's address; the message says why"
)
SCREEN_REFUSED: Final = warning("ScreenNotShown", "the guest's screen cannot be seen; the message says why")
