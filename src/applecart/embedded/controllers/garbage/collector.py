"""Looks at one object at a time and carries out what its owners' fate means for it.

Every write is made on the revision that was judged, and every deletion names the uid: an object that found a new owner
meanwhile, or that took a deleted one's name, is left alone and judged again. Deletes nothing on hearsay: the object and every
owner that counts as absent were just asked for (`owners.py`). A reference that cannot be judged leaves the object as it is.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

import msgspec

from applecart.api.meta import Object, OwnerReference
from applecart.api.reasons import warning
from applecart.clock import Clock
from applecart.embedded.controllers.garbage.decide import Delete, Standing, Strip, plan, unblocked, without_owner
from applecart.embedded.controllers.garbage.graph import FOREGROUND, ORPHAN, Graph, is_foreground, is_orphaning
from applecart.embedded.controllers.garbage.owners import Owners, Unserved, WrongScope
from applecart.kube.client import Client
from applecart.kube.controller import Controller
from applecart.kube.errors import NotFound
from applecart.kube.events import Recorder
from applecart.kube.finalizers import remove_finalizer
from applecart.kube.metadata_only import MetadataClient, PartialObject
from applecart.kube.patch import Merge
from applecart.kube.results import DONE, WAIT, Result, again_in
from applecart.kube.workqueue import WorkQueue
from applecart.observe.logs import logger

WORKERS = 5  # deletions are calls that wait; more would only crowd out the others who share the API
DEADLINE_S = 120.0  # orphaning thousands of dependents is the longest work
LOOK_AGAIN = timedelta(seconds=30)  # at an owner whose end nobody tells us, because its kind cannot be watched
INVALID_NAMESPACE: Final = warning("OwnerRefInvalidNamespace", "the owner is in another namespace, which counts as absent")

log = logger(__name__)


class Collector:
    def __init__(self, client: Client, recorder: Recorder, clock: Clock) -> None:
        self.graph = Graph()
        self.client = MetadataClient.of(client)
        self.owners = Owners(self.client, self.graph)
        self.queue: WorkQueue[str] = WorkQueue(clock)
        self.controller = Controller(
            "garbage-collector", self.reconcile, self.queue, clock, workers=WORKERS, deadline_s=DEADLINE_S
        )
        self._recorder = recorder
        self._unjudged: set[str] = set()

    def look_at(self, uids: list[str]) -> None:
        for uid in uids:
            self.queue.add(uid)

    def kinds_changed(self) -> None:
        """What could not be judged may be judged now."""
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

    async def _judge(self, seen: PartialObject) -> Result:
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

    async def _finish_when_alone(self, owner: PartialObject) -> Result:
        blocking = self.graph.blocking(owner.uid)
        if not blocking or self.graph.waits_for_itself(owner.uid):
            await remove_finalizer(self.client, owner, FOREGROUND)
            return DONE
        self.look_at([dependent.uid for dependent in blocking if not dependent.is_being_deleted])
        return WAIT

    async def _orphan_dependents(self, owner: PartialObject) -> Result:
        for seen in self.graph.dependents(owner.uid):
            dependent = await self._live(seen)
            if dependent is None:
                continue
            left = without_owner(dependent, owner.uid)
            if left != dependent.metadata.owner_references:
                with suppress(NotFound):
                    await self._write_owners(dependent, left)
        await remove_finalizer(self.client, owner, ORPHAN)
        return DONE

    async def _live(self, seen: PartialObject) -> PartialObject | None:
        """The object as the API has it now; None when it is gone, whoever has its name."""
        try:
            obj = await self.client.get(type(seen), seen.key)
        except NotFound:
            return None
        return obj if obj.uid == seen.uid else None

    async def _write_owners(self, obj: PartialObject, references: tuple[OwnerReference, ...]) -> PartialObject:
        owners = [msgspec.to_builtins(reference) for reference in references] or None
        return await self.client.patch(
            type(obj), obj.key, Merge({"metadata": {"ownerReferences": owners}}), if_revision=obj.revision
        )

    def _warn_of_strangers(self, obj: Object, standings: list[Standing]) -> None:
        for reference, standing in zip(obj.metadata.owner_references, standings, strict=True):
            if standing is Standing.DANGLING and self.owners.is_elsewhere(reference, obj):
                named = (
                    f"[{reference.api_version}/{reference.kind}, namespace: {obj.namespace}, name: {reference.name}, "
                    f"uid: {reference.uid}]"
                )
                message = f'ownerRef {named} does not exist in namespace "{obj.namespace}"'
                self._recorder.event(obj, INVALID_NAMESPACE.type, INVALID_NAMESPACE.name, message)
