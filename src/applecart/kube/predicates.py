"""Which changes are worth a reconcile: plain functions over a `Change`, for `Controller.watch(when=...)`.

A predicate may only spare work. Whoever drops a change must be sure that no decision depends on it.
"""

from functools import cache
from typing import TypeVar

from applecart.api.meta import Object, ObjectMeta
from applecart.kube.cache import Change

K = TypeVar("K", bound=Object)


def beyond_status(change: Change[K]) -> bool:
    """More than the status changed: a controller that writes the status need not wake itself."""
    if change.old is None or change.new is None:
        return True
    if _wanted(change.old.metadata) != _wanted(change.new.metadata):
        return True
    return any(getattr(change.old, name) != getattr(change.new, name) for name in _compared(type(change.new)))


def appeared_or_went(change: Change[K]) -> bool:
    return change.old is None or change.new is None


@cache
def _compared(kind: type[Object]) -> tuple[str, ...]:
    """Kinds without a status subresource do not count generations, so their fields are looked at."""
    return tuple(name for name in kind.__struct_fields__ if name not in ("metadata", "status"))


def _wanted(metadata: ObjectMeta) -> tuple[object, ...]:
    return (
        metadata.generation,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.finalizers,
        metadata.owner_references,
    )
