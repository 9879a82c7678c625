"""The two things the scheduler writes into a Pod: its node, and why it has none.

A binding whose answer was lost may have happened, so an answer has three meanings: bound (where), surely refused, or unknown.
A reason is written on the revision that was judged: a Pod that somebody else bound meanwhile is left alone.
"""

from datetime import datetime

import msgspec

from applecart.api.conditions import POD_SCHEDULED
from applecart.api.meta import ObjectMeta
from applecart.api.pods import Binding, ObjectReference, Pod, PodCondition
from applecart.errors import ApplecartError, NeverSent
from applecart.kube.client import Client
from applecart.kube.codec import encode_object
from applecart.kube.conditions import FALSE, find, set_condition
from applecart.kube.errors import ApiError, Conflict, NotFound, ServerFault
from applecart.kube.patch import Strategic
from applecart.kube.paths import object_path
from applecart.kube.transport import Request

BINDING = "binding"


class Answer(msgspec.Struct, frozen=True):
    """What the API said to a binding."""

    node: str = ""  # where the Pod is now, which may be another than we asked for
    is_refused: bool = False
    because: str = ""


async def bind(client: Client, pod: Pod, node: str, *, in_doubt: bool = False) -> Answer:
    """Ask for the node. Never raises for what an API can do.

    `in_doubt` says that an earlier binding to this node got no answer: that this one did nothing then proves nothing.
    """
    # The uid keeps a Pod that took the name meanwhile from being bound by a decision about its predecessor.
    binding = Binding(
        metadata=ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid),
        target=ObjectReference(kind="Node", name=node),
    )
    request = Request("POST", object_path(Pod.resource, pod.key, BINDING), body=encode_object(binding))
    try:
        await client.call(request, repeatable=False)
    except Conflict as error:
        return await _after_conflict(client, pod, error)
    except ApplecartError as error:
        is_refused = isinstance(error, NotFound) or (_did_nothing(error) and not in_doubt)
        return Answer(is_refused=is_refused, because=str(error))
    return Answer(node=node)


async def _after_conflict(client: Client, pod: Pod, refusal: Conflict) -> Answer:
    """Somebody bound it, perhaps we did with an answer that got lost; or it is going, gated or another one."""
    try:
        now = await client.get(Pod, pod.key)
    except NotFound:
        return Answer(is_refused=True, because=str(refusal))
    except ApplecartError as error:
        return Answer(because=str(error))
    if now.uid == pod.uid and now.spec.node_name:
        return Answer(node=now.spec.node_name)
    return Answer(is_refused=True, because=str(refusal))


def _did_nothing(error: ApplecartError) -> bool:
    """A server in trouble may have done what it could not answer for; one that says no has not."""
    return isinstance(error, NeverSent) or (isinstance(error, ApiError) and not isinstance(error, ServerFault))


async def explain(client: Client, pod: Pod, reason: str, message: str, now: datetime) -> None:
    """Say in the Pod's status why it has no node, unless that stands there already."""
    said = PodCondition(
        type=POD_SCHEDULED,
        status=FALSE,
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation or None,
    )
    conditions = set_condition(pod.status.conditions, said, now)
    if conditions is pod.status.conditions:
        return
    patch = Strategic({"status": {"conditions": [find(conditions, POD_SCHEDULED)]}})
    await client.patch_status(Pod, pod.key, patch, if_revision=pod.revision)
