"""How a Pod is removed by somebody else than its owner: why is written into its status first, then its deletion is asked for.

Every write names the uid it was decided on, so a Pod that took the name meanwhile is never struck. Finalizers are never
touched: a Pod that has one stays until whoever set it is done (I5).
"""

from datetime import datetime

import msgspec

from applecart.api.pods import Pod, PodCondition
from applecart.kube.client import Client
from applecart.kube.conditions import TRUE
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.patch import Strategic

DISRUPTION_TARGET = "DisruptionTarget"


def disrupted(pod: Pod, reason: str, message: str, now: datetime) -> PodCondition:
    """The condition that tells the Pod's owner why it goes; since when is kept from an earlier one."""
    known = pod.condition(DISRUPTION_TARGET)
    since = known.last_transition_time if known is not None and known.status == TRUE else None
    return PodCondition(
        type=DISRUPTION_TARGET,
        status=TRUE,
        reason=reason,
        message=message,
        last_transition_time=since or now.replace(microsecond=0),
        observed_generation=pod.metadata.generation or None,
    )


async def write_pod_status(client: Client, pod: Pod, *conditions: PodCondition, phase: str = "") -> bool:
    """Whether the Pod was still there to be written."""
    status: dict[str, object] = {"phase": phase} if phase else {}
    if conditions:
        status["conditions"] = msgspec.to_builtins(conditions)
    try:
        await client.patch_status(Pod, pod.key, Strategic({"metadata": {"uid": pod.uid}, "status": status}))
    except (NotFound, Conflict):  # without a revision the only conflict is that of the uid
        return False
    return True


async def delete_pod(client: Client, pod: Pod, *, grace_s: int | None = None) -> bool:
    """Whether the Pod was still there to be deleted."""
    try:
        await client.delete(Pod, pod.key, if_uid=pod.uid, grace_s=grace_s)
    except (NotFound, Conflict):
        return False
    return True
