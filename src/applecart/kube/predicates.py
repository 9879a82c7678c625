"""Which changes are worth a reconcile: plain functions over a `Change`, for `Controller.watch(when=...)`.

A predicate may only spare work. Whoever drops a change must be sure that no decision depends on it.
"""

from typing import TypeVar

from applecart.api.meta import Object, ObjectMeta
from applecart.kube.cache import Change

K = TypeVar("K", bound=Object)


def beyond_status(change: Change[K]) -> bool:
    """More than the status changed: a controller that writes the status need not wake itself.

    For kinds with a status subresource only; elsewhere the API does not count generations.
    """
    if change.old is None or change.new is None:
        return True
    return _wanted(change.old.metadata) != _wanted(change.new.metadata)


def appeared_or_went(change: Change[K]) -> bool:
    return change.old is None or change.new is None


def _wanted(metadata: ObjectMeta) -> tuple[object, ...]:
    return (
        metadata.generation,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.finalizers,
        metadata.owner_references,
    )
