"""Who owns whom, as last seen: objects by uid, for every uid its dependents, and the watches that feed both.

The graph is plain memory. Each change is told once and answered with the uids that are worth a look now; what becomes of them
is decided elsewhere. Owners are matched by uid, also those that were never seen: their dependents are indexed all the same.

`Monitors` follow the metadata of every kind that can be deleted, listed and watched, as kinds come and go. A kind that is no
longer served is no longer followed; one whose server does not answer is, as last known.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.api.meta import Object, OwnerReference, Resource
from applecart.errors import ApplecartError
from applecart.kube.cache import Change
from applecart.kube.discovery import Discovery, discover
from applecart.kube.informer import Informer
from applecart.kube.manager import Manager
from applecart.kube.metadata_only import metadata_kind
from applecart.observe.logs import logger

NEEDED_VERBS = ("delete", "list", "watch")
IGNORED = frozenset({"events", "events.events.k8s.io"})  # many, short-lived, and nobody's owners or dependents
DEFINES_KINDS = frozenset({"customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"})
ASK_EVERY_S = 30.0
# A server shows a new kind in its lists some moments after the definition is accepted.
ASK_AFTER_CHANGE_S = (0.2, 1.0, 5.0)
SYNC_WITHIN_S = 30.0  # one kind that cannot be listed must not keep all others from being cleaned up


log = logger(__name__)


class Graph:
    def __init__(self) -> None:
        self._objects: dict[str, Object] = {}
        self._dependents: dict[str, dict[str, bool]] = {}  # by owner's uid: its dependents' uids, and whether they block it

    def __len__(self) -> int:
        return len(self._objects)

    # Reading

    def get(self, uid: str) -> Object | None:
        return self._objects.get(uid)

    def dependents(self, uid: str) -> list[Object]:
        return [self._objects[dependent] for dependent in self._dependents.get(uid, ())]

    def blocking(self, uid: str) -> list[Object]:
        """The dependents without which an owner in foreground deletion may not go."""
        return [self._objects[dependent] for dependent, blocks in self._dependents.get(uid, {}).items() if blocks]

    def waits_for_itself(self, uid: str) -> bool:
        """Whether an owner in foreground deletion waits, in a circle, for nobody but others who do.

        Kubernetes' own collector opens a circle when one of it is deleted; when several are, they wait for each other forever.
        """
        circle, unseen = set[str](), [uid]
        while unseen:
            for dependent, blocks in self._dependents.get(unseen.pop(), {}).items():
                if not blocks or dependent in circle:
                    continue
                if not is_foreground(self._objects[dependent]):
                    return False
                circle.add(dependent)
                unseen.append(dependent)
        return uid in circle

    def owner_of(self, reference: OwnerReference, dependent: Object) -> Object | None:
        """The owner that a reference means, when it was seen and is what the reference says it is."""
        owner = self._objects.get(reference.uid)
        if owner is None or not is_described_by(owner, reference) or owner.namespace not in ("", dependent.namespace):
            return None
        return owner

    # Changing

    def observe(self, obj: Object) -> list[str]:
        """An object is there, new or changed."""
        old = self._objects.get(obj.uid)
        self._objects[obj.uid] = obj
        before, after = _owners(old), _owners(obj)
        self._index(obj.uid, before, after)
        looks: dict[str, None] = {}
        if (old is None or old.metadata.owner_references != obj.metadata.owner_references) and self._is_doubtful(obj):
            looks[obj.uid] = None
        if old is not None:
            # Owners that wait for their dependents, and for which this one counts no longer.
            looks |= dict.fromkeys(self._waiting(uid for uid, blocks in before.items() if blocks and not after.get(uid)))
        if old is None:
            looks |= dict.fromkeys(uid for uid in self._dependents.get(obj.uid, ()) if self._is_doubtful(self._objects[uid]))
        if is_orphaning(obj):
            looks[obj.uid] = None
        elif is_foreground(obj):
            if old is None or not is_foreground(old):
                looks |= dict.fromkeys(self._dependents.get(obj.uid, ()))
            looks[obj.uid] = None
        return list(looks)

    def forget(self, uid: str) -> list[str]:
        """An object is gone: its dependents may have lost their last owner, and an owner may have waited for it."""
        obj = self.drop(uid)
        looks = dict.fromkeys(self._dependents.get(uid, ()))
        looks |= dict.fromkeys(self._waiting(_owners(obj)))
        return list(looks)

    def drop(self, uid: str) -> Object | None:
        """An object is no longer followed, whether it exists or not."""
        obj = self._objects.pop(uid, None)
        self._index(uid, _owners(obj), {})
        return obj

    # Inside

    def _index(self, uid: str, before: Iterable[str], after: Mapping[str, bool]) -> None:
        for owner in before:
            if owner not in after and (bucket := self._dependents.get(owner)) is not None:
                bucket.pop(uid, None)
                if not bucket:
                    del self._dependents[owner]
        for owner, blocks in after.items():
            self._dependents.setdefault(owner, {})[uid] = blocks

    def _is_doubtful(self, obj: Object) -> bool:
        """Whether an owner was not seen where the reference says, or waits for its dependents to go."""
        owners = (self.owner_of(reference, obj) for reference in obj.metadata.owner_references)
        return any(owner is None or is_foreground(owner) for owner in owners)

    def _waiting(self, uids: Iterable[str]) -> Iterable[str]:
        return [uid for uid in uids if (owner := self._objects.get(uid)) is not None and is_foreground(owner)]


def is_orphaning(obj: Object) -> bool:
    """Deleted with the wish that its dependents live on."""
    return obj.is_being_deleted and ORPHAN_DEPENDENTS in obj.metadata.finalizers


def is_foreground(obj: Object) -> bool:
    """Deleted, and gone only after its dependents."""
    return obj.is_being_deleted and FOREGROUND_DELETION in obj.metadata.finalizers


def is_described_by(owner: Object, reference: OwnerReference) -> bool:
    """Whether a reference names this object; the version does not matter, an object has the same uid in all of them."""
    group = reference.api_version.rpartition("/")[0]
    found = owner.resource
    return (found.group, found.kind, owner.name, owner.uid) == (group, reference.kind, reference.name, reference.uid)


def _owners(obj: Object | None) -> dict[str, bool]:
    """The owners' uids, and whether they may not go before it in foreground."""
    owners: dict[str, bool] = {}
    for reference in obj.metadata.owner_references if obj is not None else ():
        owners[reference.uid] = bool(reference.block_owner_deletion) or owners.get(reference.uid, False)
    return owners


def followed(discovery: Discovery) -> dict[str, Resource]:
    """The resources to follow, by label."""
    return {
        served.resource.label: served.resource
        for served in discovery.preferred()
        if served.allows(*NEEDED_VERBS) and served.resource.label not in IGNORED
    }


class Monitors:
    def __init__(
        self,
        manager: Manager,
        graph: Graph,
        look_at: Callable[[list[str]], None],
        discovered: Callable[[Discovery], None],
    ) -> None:
        self._manager = manager
        self._graph = graph
        self._look_at = look_at
        self._discovered = discovered
        self._followed: dict[str, Informer[Any]] = {}
        self._definitions_changed = asyncio.Event()
        self._first = asyncio.Event()

    async def ready(self) -> None:
        """Wait until all kinds were listed once, or until those that can be have had time enough."""
        await self._first.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(SYNC_WITHIN_S):
                for informer in list(self._followed.values()):
                    await informer.synced()

    async def run(self) -> None:
        """Follow until cancelled."""
        asks_due_s: list[float] = []
        while True:
            await self._ask()
            try:
                async with asyncio.timeout(asks_due_s.pop(0) if asks_due_s else ASK_EVERY_S):
                    await self._definitions_changed.wait()
            except TimeoutError:
                continue
            self._definitions_changed.clear()
            asks_due_s = list(ASK_AFTER_CHANGE_S)
            await asyncio.sleep(asks_due_s.pop(0))

    async def _ask(self) -> None:
        try:
            discovery = await discover(self._manager.client)
        except ApplecartError as error:
            log.warning("cannot learn which kinds exist, following those that are known", because=str(error))
            return
        self._follow(discovery)
        self._discovered(discovery)
        self._first.set()

    def _follow(self, discovery: Discovery) -> None:
        wanted = followed(discovery)
        for label, informer in list(self._followed.items()):
            resource = informer.kind.resource
            if wanted.get(label) != resource and not discovery.is_unknown(resource.group):
                del self._followed[label]
                self._manager.drop(informer, self._changed)
                for obj in informer:
                    self._graph.drop(obj.uid)
        for label, resource in wanted.items():
            if label not in self._followed:
                # What somebody follows whole is not held in memory a second time.
                whole = self._manager.informer_of_all(resource)
                followed_now = self._manager.informer(metadata_kind(resource)) if whole is None else whole
                self._followed[label] = followed_now
                followed_now.on_change(self._changed)

    def _changed(self, change: Change[Any]) -> None:
        if change.new is not None:
            self._look_at(self._graph.observe(change.new))
        elif change.old is not None:
            self._look_at(self._graph.forget(change.old.uid))
        state = change.new or change.old
        if state is not None and state.resource.label in DEFINES_KINDS:
            self._definitions_changed.set()
