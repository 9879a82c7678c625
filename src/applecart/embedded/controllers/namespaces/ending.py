"""Ends a deleted namespace: empties it round by round, says in its status how that goes, and lets it go when it is empty.

Pods go first, each with its own grace, and nothing else goes before the last of them: what they use must outlive them. A kind
that refuses is noted and the others go on; an API that does not answer at all ends the round, to be tried again. The finalizer
is taken only after a round that found nothing, knew every kind and met no refusal. Acts on the namespace as the API has it,
never on a cached one. The conditions are the real controller's, in its words.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from applecart.api.core import Namespace
from applecart.api.meta import Key, Object, Resource, instant
from applecart.api.pods import Pod
from applecart.embedded.kinds.conditions import with_condition
from applecart.embedded.kinds.strategy import Document
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.controller import DONE, Controller, Result, again_in
from applecart.kube.discovery import Discovery, Served, discover
from applecart.kube.errors import ApiError, MethodNotAllowed, NotFound, ServerFault
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import MetadataClient, metadata_kind
from applecart.kube.patch import Merge
from applecart.kube.paths import collection_path, object_path
from applecart.kube.transport import Request
from applecart.observe.logs import logger

DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
PARSING_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"

# What each says when there is nothing to tell: reason and message.
WELL = {
    DISCOVERY_FAILURE: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING_FAILURE: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}

PODS = "pods"
GRACE_S = 30  # of a Pod that says none
_IN_BACKGROUND = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})

FINALIZER = "kubernetes"
WORKERS = 4  # namespaces that end at the same time; one with many Pods must not hold up the others
ROUND_S = 600.0  # through a namespace with tens of thousands of objects
TERMINATING = "Terminating"
# A Pod's end or somebody's finalizer is waited for: soon at first, then about as often as kube-controller-manager looks.
PACE = Backoff(first_s=0.5, longest_s=10.0)

log = logger(__name__)


class Survey(msgspec.Struct, frozen=True):
    """What a round of deletion found."""

    unknown: tuple[str, ...] = ()  # groups with versions of which nothing is known
    failures: tuple[str, ...] = ()
    remaining: Mapping[tuple[str, str], int] = {}  # by plural and group
    finalizers: Mapping[str, int] = {}  # on how many of them

    @property
    def is_clear(self) -> bool:
        return not (self.unknown or self.failures or self.remaining)


def conditions_after(survey: Survey, known: Sequence[Document], now: datetime) -> list[Document]:
    """The conditions of the status from now on; equal to the known ones when nothing changed."""
    told = _told(survey)
    conditions = list(known)
    for kind, (well_reason, well_message) in WELL.items():
        status = "True" if kind in told else "False"
        reason, message = told.get(kind, (well_reason, well_message))
        conditions = with_condition(conditions, {"type": kind, "status": status, "reason": reason, "message": message}, now)
    return conditions


def _told(survey: Survey) -> dict[str, tuple[str, str]]:
    """The conditions that are true, with reason and message."""
    told: dict[str, tuple[str, str]] = {}
    if survey.unknown:
        stale = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in survey.unknown)
        message = (
            f"Discovery failed for some groups, {len(survey.unknown)} failing: "
            f"unable to retrieve the complete list of server APIs: {stale}"
        )
        told[DISCOVERY_FAILURE] = ("DiscoveryFailed", message)
    if survey.failures:
        failed = ", ".join(sorted(survey.failures))
        message = f"Failed to delete all resource types, {len(survey.failures)} remaining: {failed}"
        told[CONTENT_FAILURE] = ("ContentDeletionFailed", message)
    if survey.remaining:
        counts = sorted(
            f"{plural}.{group} has {count} resource instances" for (plural, group), count in survey.remaining.items()
        )
        told[CONTENT_REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}")
    if survey.finalizers:
        counts = sorted(f"{name} in {count} resource instances" for name, count in survey.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
        told[FINALIZERS_REMAINING] = ("SomeFinalizersRemain", message)
    return told


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
                is_patient = resource.label == PODS and deleted_for_s < longest_grace_s(await self._client.list(Pod, namespace))
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

    async def _empty(self, served: Served, namespace: str) -> Sequence[Object]:
        """Delete all objects of a kind; those that are still there."""
        kind = metadata_kind(served.resource)
        can_list = served.allows("list")
        found = await self._metadata.list(kind, namespace) if can_list else []
        if can_list and not found:
            return []
        if served.allows("deletecollection"):
            await self._metadata.call(Request("DELETE", collection_path(served.resource, namespace), body=_IN_BACKGROUND))
        for obj in found if not served.allows("deletecollection") else ():
            with suppress(NotFound):
                await self._metadata.delete(type(obj), obj.key, propagation="Background")
        return await self._metadata.list(kind, namespace) if can_list else []


def unexpected(namespace: str, resource: Resource) -> str:
    where = f"{resource.group}/{resource.version}, Resource={resource.plural}"
    return f"unexpected items still remain in namespace: {namespace} for gvr: {where}"


class Ending:
    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._namespaces = manager.informer(Namespace)
        self._clock = manager.clock
        self._content = Content(manager.client)
        self._rounds: dict[str, int] = {}  # by uid, of namespaces that are going
        controller: Controller[Key] = manager.controller(
            "namespace ending", self.reconcile, workers=WORKERS, deadline_s=ROUND_S
        )
        controller.watch(self._namespaces)

    async def reconcile(self, key: Key) -> Result:
        seen = self._namespaces.get(key)
        if seen is None or not seen.is_being_deleted:
            return DONE
        document = await self._read(key)
        if document is None or document["metadata"]["uid"] != seen.uid or FINALIZER not in finalizers_of(document):
            self._rounds.pop(seen.uid, None)
            return DONE
        deleted_at = instant(document["metadata"].get("deletionTimestamp", "")) or self._clock.now()
        deleted_for_s = (self._clock.now() - deleted_at).total_seconds()
        survey = await self._content.delete(key.name, await discover(self._client), deleted_for_s)
        try:
            document = await self._tell(key, document, survey)
            if survey.is_clear:
                await self._let_go(key, document)
        except NotFound:
            return DONE
        if survey.is_clear:
            self._rounds.pop(seen.uid, None)
            log.bind(seen).info("a namespace is empty and gone", kind="namespaces")
            return DONE
        self._rounds[seen.uid] = rounds = self._rounds.get(seen.uid, 0) + 1
        return again_in(timedelta(seconds=PACE.wait_s(rounds, self._clock.random)))

    async def _read(self, key: Key) -> Document | None:
        try:
            answer = await self._client.call(Request("GET", object_path(Namespace.resource, key)))
        except NotFound:
            return None
        document: Document = msgspec.json.decode(answer.body)
        return document

    async def _tell(self, key: Key, document: Document, survey: Survey) -> Document:
        """Write the status unless it says so already; the namespace as it is now."""
        status = status_after(document.get("status") or {}, survey, self._clock.now())
        if status == document.get("status"):
            return document
        revision = document["metadata"]["resourceVersion"]
        body = Merge({"metadata": {"resourceVersion": revision}, "status": status})
        path = object_path(Namespace.resource, key, "status")
        request = Request("PATCH", path, body=body.encoded(), content_type=body.content_type)
        changed: Document = msgspec.json.decode((await self._client.call(request)).body)
        return changed

    async def _let_go(self, key: Key, document: Document) -> None:
        left = [finalizer for finalizer in finalizers_of(document) if finalizer != FINALIZER]
        body = {**document, "spec": {**document["spec"], "finalizers": left}}
        path = object_path(Namespace.resource, key, "finalize")
        await self._client.call(Request("PUT", path, body=msgspec.json.encode(body)))


def finalizers_of(document: Document) -> list[str]:
    return list((document.get("spec") or {}).get("finalizers") or ())


def status_after(status: Document, survey: Survey, now: datetime) -> Document:
    return {**status, "phase": TERMINATING, "conditions": conditions_after(survey, status.get("conditions") or (), now)}
