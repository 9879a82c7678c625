"""Looks at one object at a time and carries out what its owners' fate means for it.

Every write is made on the revision that was judged, and every deletion names the uid: an object that found a new owner
meanwhile, or that took a deleted one's name, is left alone and judged again. Deletes nothing on hearsay: absence is believed
only after the API said so about exactly the object that a reference names, in the dependent's own namespace. A uid never comes
back, so what was absent once is not asked again. A reference to a kind that the API does not serve cannot be judged and leaves
the object as it is.
"""

from collections import OrderedDict
from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.api.meta import Key, Object, OwnerReference
from applecart.api.reasons import warning
from applecart.embedded.controllers.garbage.decide import Delete, OwnerState, Strip, plan, standing_of, unblocked, without_owner
from applecart.embedded.controllers.garbage.graph import Graph, Monitors, is_foreground, is_orphaning
from applecart.errors import Transient
from applecart.kube.client import Client
from applecart.kube.controller import DONE, WAIT, Controller, Result, again_in
from applecart.kube.discovery import Discovery
from applecart.kube.errors import NotFound
from applecart.kube.finalizers import remove_finalizer
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import MetadataClient, PartialObject, metadata_kind
from applecart.kube.patch import Merge
from applecart.observe.logs import logger

REMEMBERED_ABSENTEES = 500  # owners with many dependents are deleted one at a time; this is many of them

WORKERS = 5  # deletions are calls that wait; more would only crowd out the others who share the API
DEADLINE_S = 120.0  # orphaning thousands of dependents is the longest work
LOOK_AGAIN = timedelta(seconds=30)  # at an owner whose end nobody tells us, because its kind cannot be watched
INVALID_NAMESPACE: Final = warning("OwnerRefInvalidNamespace", "the owner is in another namespace, which counts as absent")

COMPONENT = "garbage-collector-controller"


log = logger(__name__)


class Unserved(Transient):
    """The owner's kind is not served, or not yet."""


class WrongScope(Transient):
    """The object is of the whole cluster and names an owner that lives in a namespace, which means nothing."""


class Owners:
    def __init__(self, client: Client, graph: Graph) -> None:
        self.discovery = Discovery()
        self._client = client
        self._graph = graph
        self._absentees: OrderedDict[tuple[str, OwnerReference], None] = OrderedDict()

    async def standing(self, reference: OwnerReference, dependent: Object) -> tuple[OwnerState, bool]:
        """How the owner is, and whether its end will be told to us."""
        if (seen := self._graph.owner_of(reference, dependent)) is not None:
            return standing_of(seen), True
        resource = self.discovery.find(reference.api_version, reference.kind)
        if resource is None:
            raise Unserved(
                f"{dependent.resource.kind} {dependent.key} is owned by a {reference.kind} of {reference.api_version}, which "
                "the API does not serve; it stays until that is known"
            )
        if resource.namespaced and not dependent.namespace:
            raise WrongScope(f"{dependent.resource.kind} {dependent.key} names a {reference.kind} in a namespace as its owner")
        key = Key(dependent.namespace if resource.namespaced else "", reference.name)
        known = (key.namespace, reference)
        if known in self._absentees:
            return OwnerState.DANGLING, True
        try:
            owner = await self._client.get(metadata_kind(resource), key)
            if owner.uid == reference.uid:
                return standing_of(owner), False
        except NotFound:
            pass
        self._absentees[known] = None
        if len(self._absentees) > REMEMBERED_ABSENTEES:
            self._absentees.popitem(last=False)
        return OwnerState.DANGLING, True

    def is_elsewhere(self, reference: OwnerReference, dependent: Object) -> bool:
        """Whether an object with the owner's uid was seen in another namespace."""
        found = self._graph.get(reference.uid)
        return found is not None and found.namespace not in ("", dependent.namespace)


class Collector:
    def __init__(self, manager: Manager) -> None:
        self.graph = Graph()
        self.client = MetadataClient.of(manager.client)
        self.owners = Owners(self.client, self.graph)
        self._recorder = manager.recorder(COMPONENT)
        self._unjudged: set[str] = set()
        monitors = Monitors(manager, self.graph, self.look_at, self._kinds_changed)
        manager.background("garbage monitors", monitors.run)
        # Before every kind was listed once, owners look absent and each would cost a question to the API.
        controller: Controller[str] = manager.controller(
            "garbage collector", self.reconcile, workers=WORKERS, deadline_s=DEADLINE_S, after=monitors.ready
        )
        self.queue = controller.queue

    def look_at(self, uids: list[str]) -> None:
        for uid in uids:
            self.queue.add(uid)

    def _kinds_changed(self, discovery: Discovery) -> None:
        """What could not be judged may be judged now."""
        self.owners.discovery = discovery
        unjudged, self._unjudged = self._unjudged, set()
        self.look_at(sorted(unjudged))

    async def reconcile(self, uid: str) -> Result:
        obj = self.graph.get(uid)
        if obj is None:
            return DONE
        if is_orphaning(obj):
            return await self._orphan_dependents(obj)
        if is_foreground(obj):
            return await self._finish_when_alone(obj)
        if obj.is_being_deleted or not obj.metadata.owner_references:
            return DONE
        return await self._judge(obj)

    async def _judge(self, seen: Object) -> Result:
        obj = await self._live(seen)
        if obj is None or obj.is_being_deleted:
            return DONE
        try:
            found = [await self.owners.standing(reference, obj) for reference in obj.metadata.owner_references]
        except Unserved:
            self._unjudged.add(obj.uid)
            return WAIT
        except WrongScope as problem:
            log.bind(obj).warning("an owner reference means nothing, leaving the object alone", because=str(problem))
            return DONE
        standings = [standing for standing, _ in found]
        self._warn_of_strangers(obj, standings)
        todo = plan(obj, standings, self.graph.dependents(obj.uid))
        if isinstance(todo, Strip):
            await self._write_owners(obj, todo.references)
        elif isinstance(todo, Delete):
            await self._delete(obj, todo)
        return DONE if all(is_told for _, is_told in found) else again_in(LOOK_AGAIN)

    async def _delete(self, obj: PartialObject, todo: Delete) -> None:
        if todo.unblock_first:
            obj = await self._write_owners(obj, unblocked(obj))
        with suppress(NotFound):
            await self.client.delete(type(obj), obj.key, if_uid=obj.uid, if_revision=obj.revision, propagation=todo.propagation)
            log.bind(obj).info("deleted an object without owners", kind=obj.resource.label, propagation=todo.propagation)

    async def _finish_when_alone(self, owner: Object) -> Result:
        blocking = self.graph.blocking(owner.uid)
        if not blocking or self.graph.waits_for_itself(owner.uid):
            await remove_finalizer(self.client, owner, FOREGROUND_DELETION)
            return DONE
        self.look_at([dependent.uid for dependent in blocking if not dependent.is_being_deleted])
        return WAIT

    async def _orphan_dependents(self, owner: Object) -> Result:
        for seen in self.graph.dependents(owner.uid):
            dependent = await self._live(seen)
            if dependent is None:
                continue
            left = without_owner(dependent, owner.uid)
            if left != dependent.metadata.owner_references:
                with suppress(NotFound):
                    await self._write_owners(dependent, left)
        await remove_finalizer(self.client, owner, ORPHAN_DEPENDENTS)
        return DONE

    async def _live(self, seen: Object) -> PartialObject | None:
        """The object as the API has it now; None when it is gone, whoever has its name."""
        try:
            obj = await self.client.get(metadata_kind(seen.resource), seen.key)
        except NotFound:
            return None
        return obj if obj.uid == seen.uid else None

    async def _write_owners(self, obj: PartialObject, references: tuple[OwnerReference, ...]) -> PartialObject:
        owners = [msgspec.to_builtins(reference) for reference in references] or None
        return await self.client.patch(
            type(obj), obj.key, Merge({"metadata": {"ownerReferences": owners}}), if_revision=obj.revision
        )

    def _warn_of_strangers(self, obj: Object, standings: list[OwnerState]) -> None:
        for reference, standing in zip(obj.metadata.owner_references, standings, strict=True):
            if standing is OwnerState.DANGLING and self.owners.is_elsewhere(reference, obj):
                named = (
                    f"[{reference.api_version}/{reference.kind}, namespace: {obj.namespace}, name: {reference.name}, "
                    f"uid: {reference.uid}]"
                )
                message = f'ownerRef {named} does not exist in namespace "{obj.namespace}"'
                self._recorder.event(obj, INVALID_NAMESPACE.type, INVALID_NAMESPACE.name, message)
