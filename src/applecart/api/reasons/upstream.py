"""Reasons that Kubernetes and Cluster API write and our components read or, in embedded mode, write in their place.

The words are theirs. Only those that decide something for us are here.
"""

from typing import Final

from applecart.api.conditions import INFRASTRUCTURE_READY, POD_SCHEDULED
from applecart.api.reasons import ConditionReason, Severity, normal, warning

UNSCHEDULABLE: Final = ConditionReason(
    "Unschedulable", POD_SCHEDULED, Severity.NONE, "no node fits the Pod now; an unschedulable deadline counts from here"
)
TEMPLATE_CLONING_FAILED: Final = ConditionReason(
    "InfrastructureTemplateCloningFailed",
    INFRASTRUCTURE_READY,
    Severity.ERROR,
    "a MachineSet could not copy its template; the fleet stays short of hosts until the template is mended",
)

SCHEDULED: Final = normal("Scheduled", "the Pod got a node")
FAILED_SCHEDULING: Final = warning("FailedScheduling", "no node fits the Pod now; the message lists why")
