"""Who owns whom, as last seen: objects by uid, and for every uid the objects that name it as an owner.

Plain memory without I/O. Each change is told once and answered with the uids that are worth a look now; deciding what becomes
of them is `decide.py`'s work. Owners are matched by uid, also those that were never seen: their dependents are indexed all the
same. Nothing here is ever found by going through all objects.
"""

from collections.abc import Iterable

from applecart.api.meta import Object, OwnerReference
from applecart.kube.metadata_only import PartialObject

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


class Graph:
    def __init__(self) -> None:
        self._objects: dict[str, PartialObject] = {}
        self._dependents: dict[str, dict[str, None]] = {}  # owner's uid to dependents' uids, in the order they came

    def __len__(self) -> int:
        return len(self._objects)

    # Reading

    def get(self, uid: str) -> PartialObject | None:
        return self._objects.get(uid)

    def dependents(self, uid: str) -> list[PartialObject]:
        return [self._objects[dependent] for dependent in self._dependents.get(uid, ())]

    def blocking(self, uid: str) -> list[PartialObject]:
        """The dependents without which an owner in foreground deletion may not go."""
        return [dependent for dependent in self.dependents(uid) if _blocks(dependent, uid)]

    def waits_for_itself(self, uid: str) -> bool:
        """Whether an owner in foreground deletion waits, in a circle, for nobody but others who do.

        Kubernetes' own collector opens a circle when one of it is deleted; when several are, they wait for each other forever.
        """
        circle, unseen = set[str](), [uid]
        while unseen:
            for dependent in self.blocking(unseen.pop()):
                if not is_foreground(dependent):
                    return False
                if dependent.uid not in circle:
                    circle.add(dependent.uid)
                    unseen.append(dependent.uid)
        return uid in circle

    def owner_of(self, reference: OwnerReference, dependent: Object) -> PartialObject | None:
        """The owner that a reference means, when it was seen and is what the reference says it is."""
        owner = self._objects.get(reference.uid)
        if owner is None or not is_described_by(owner, reference) or owner.namespace not in ("", dependent.namespace):
            return None
        return owner

    # Changing

    def observe(self, obj: PartialObject) -> list[str]:
        """An object is there, new or changed."""
        old = self._objects.get(obj.uid)
        self._objects[obj.uid] = obj
        self._index(obj.uid, _owner_uids(old), _owner_uids(obj))
        looks: dict[str, None] = {}
        if (old is None or old.metadata.owner_references != obj.metadata.owner_references) and self._is_doubtful(obj):
            looks[obj.uid] = None
        if old is not None:
            looks |= dict.fromkeys(self._released(old, obj))
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
        looks |= dict.fromkeys(self._waiting(_owner_uids(obj)))
        return list(looks)

    def drop(self, uid: str) -> PartialObject | None:
        """An object is no longer followed, whether it exists or not."""
        obj = self._objects.pop(uid, None)
        self._index(uid, _owner_uids(obj), ())
        return obj

    # Inside

    def _index(self, uid: str, before: Iterable[str], after: Iterable[str]) -> None:
        kept = set(after)
        for owner in before:
            if owner not in kept and (bucket := self._dependents.get(owner)) is not None:
                bucket.pop(uid, None)
                if not bucket:
                    del self._dependents[owner]
        for owner in after:
            self._dependents.setdefault(owner, {})[uid] = None

    def _is_doubtful(self, obj: PartialObject) -> bool:
        """Whether an owner was not seen where the reference says, or waits for its dependents to go."""
        owners = (self.owner_of(reference, obj) for reference in obj.metadata.owner_references)
        return any(owner is None or is_foreground(owner) for owner in owners)

    def _released(self, old: PartialObject, new: PartialObject) -> Iterable[str]:
        """Owners that wait for their dependents, and for which this one counts no longer."""
        return self._waiting(uid for uid in _owner_uids(old) if _blocks(old, uid) and not _blocks(new, uid))

    def _waiting(self, uids: Iterable[str]) -> Iterable[str]:
        return [uid for uid in uids if (owner := self._objects.get(uid)) is not None and is_foreground(owner)]


def is_orphaning(obj: Object) -> bool:
    """Deleted with the wish that its dependents live on."""
    return obj.is_being_deleted and ORPHAN in obj.metadata.finalizers


def is_foreground(obj: Object) -> bool:
    """Deleted, and gone only after its dependents."""
    return obj.is_being_deleted and FOREGROUND in obj.metadata.finalizers


def is_described_by(owner: Object, reference: OwnerReference) -> bool:
    """Whether a reference names this object; the version does not matter, an object has the same uid in all of them."""
    group = reference.api_version.rpartition("/")[0]
    found = owner.resource
    return (found.group, found.kind, owner.name, owner.uid) == (group, reference.kind, reference.name, reference.uid)


def _owner_uids(obj: Object | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(reference.uid for reference in obj.metadata.owner_references)) if obj is not None else ()


def _blocks(dependent: Object, uid: str) -> bool:
    return any(reference.uid == uid and reference.block_owner_deletion for reference in dependent.metadata.owner_references)
