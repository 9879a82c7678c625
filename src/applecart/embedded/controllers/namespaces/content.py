"""Deletes what is in a namespace, kind by kind, and tells what is left.

Pods go first, each with its own grace, and nothing else goes before the last of them: what they use must outlive them. A kind
that refuses is noted and the others go on; an API that does not answer at all ends the round, to be tried again. Whoever holds
an object with a finalizer is waited for.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from applecart.api.meta import Object, Resource
from applecart.api.pods import Pod
from applecart.embedded.controllers.namespaces.conditions import Survey
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery, Served
from applecart.kube.errors import ApiError, MethodNotAllowed, NotFound, ServerFault
from applecart.kube.metadata_only import MetadataClient, PartialObject, metadata_kind
from applecart.kube.paths import collection_path
from applecart.kube.transport import Request

PODS = "pods"
GRACE_S = 30  # of a Pod that says none
_IN_BACKGROUND = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})


def deletable(discovery: Discovery) -> list[Served]:
    """The kinds to empty, Pods first."""
    found = [one for one in discovery.preferred() if one.resource.namespaced and one.allows("delete")]
    return sorted(found, key=lambda one: one.resource.label != PODS)


def longest_grace_s(pods: Sequence[Pod]) -> int:
    """How long the slowest of the Pods that still run may take to end."""
    return max((pod.spec.termination_grace_period_seconds or GRACE_S for pod in pods if not pod.is_terminal), default=0)


class Content:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._metadata = MetadataClient.of(client)

    async def delete(self, namespace: str, discovery: Discovery, deleted_for_s: float) -> Survey:
        """One round. `deleted_for_s` is how long ago the namespace was deleted: Pods are given their grace from there."""
        failures: list[str] = []
        remaining: dict[tuple[str, str], int] = {}
        finalizers: Counter[str] = Counter()
        for served in deletable(discovery):
            resource = served.resource
            try:
                is_patient = resource.label == PODS and await self._is_within_grace(namespace, deleted_for_s)
                left = await self._empty(served, namespace)
            except (NotFound, MethodNotAllowed):
                continue  # the kind went away, or cannot be deleted in spite of what it says
            except ServerFault:
                raise
            except ApiError as error:
                failures.append(str(error))
                continue
            if left:
                remaining[resource.plural, resource.group] = len(left)
                held = Counter(name for obj in left for name in obj.metadata.finalizers)
                finalizers += held
                if not held and not is_patient:
                    failures.append(unexpected(namespace, resource))
                if resource.label == PODS:
                    break
        return Survey(discovery.unknown, tuple(failures), remaining, dict(finalizers))

    async def _is_within_grace(self, namespace: str, deleted_for_s: float) -> bool:
        return deleted_for_s < longest_grace_s(await self._client.list(Pod, namespace))

    async def _empty(self, served: Served, namespace: str) -> Sequence[Object]:
        """Delete all objects of a kind; those that are still there."""
        kind = metadata_kind(served.resource)
        can_list = served.allows("list")
        found = await self._metadata.list(kind, namespace) if can_list else []
        if can_list and not found:
            return []
        if served.allows("deletecollection"):
            path = collection_path(served.resource, namespace)
            await self._metadata.call(Request("DELETE", path, body=_IN_BACKGROUND))
        else:
            await self._delete_each(found)
        return await self._metadata.list(kind, namespace) if can_list else []

    async def _delete_each(self, found: Sequence[PartialObject]) -> None:
        for obj in found:
            with suppress(NotFound):
                await self._metadata.delete(type(obj), obj.key, propagation="Background")


def unexpected(namespace: str, resource: Resource) -> str:
    where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
    return f"unexpected items still remain in namespace: {namespace} for gvr: {where}"
