"""Finalizers set and removed so that nobody else's is lost.

A finalizer list has several owners. Ours is added to, or taken from, the list as the API holds it, under the revision it was
read at; when somebody was faster the list is read again. `ensure_finalizer` returns only after the API stored it, so what it
guards may be made next (I2).
"""

from typing import TypeVar

from applecart.api.meta import Object
from applecart.errors import Transient
from applecart.kube.client import Client
from applecart.kube.errors import Conflict, NotFound
from applecart.kube.patch import Merge

K = TypeVar("K", bound=Object)

ATTEMPTS = 8  # a status that changes all the time can cost several; after these the caller's own backoff takes over


class BeingDeleted(Transient):
    """The object is going or was replaced: nothing new may be hung on it. Look again and decide again."""


async def ensure_finalizer(client: Client, obj: K, name: str) -> K:
    """The object with our finalizer stored. Raises `BeingDeleted` when it is too late for that, `NotFound` when it is gone."""
    current = obj
    for attempt in range(1, ATTEMPTS + 1):
        if current.uid != obj.uid or (current.is_being_deleted and name not in current.metadata.finalizers):
            raise BeingDeleted(f"{obj.resource.kind} {obj.key} is being deleted; finalizer {name} can no longer be added")
        if name in current.metadata.finalizers:
            return current
        try:
            return await _write(client, current, (*current.metadata.finalizers, name))
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        current = await client.get(type(obj), obj.key)
    raise AssertionError("the last attempt returns or raises")


async def remove_finalizer(client: Client, obj: K, name: str) -> K | None:
    """The object without our finalizer, or None when it is gone: an object of the same name that came after is another."""
    current = obj
    for attempt in range(1, ATTEMPTS + 1):
        if current.uid != obj.uid:
            return None
        if name not in current.metadata.finalizers:
            return current
        try:
            return await _write(client, current, tuple(other for other in current.metadata.finalizers if other != name))
        except Conflict:
            if attempt == ATTEMPTS:
                raise
        except NotFound:
            return None
        try:
            current = await client.get(type(obj), obj.key)
        except NotFound:
            return None
    raise AssertionError("the last attempt returns or raises")


async def _write(client: Client, current: K, finalizers: tuple[str, ...]) -> K:
    """A merge patch replaces the list whole, which is why it must be the revision we read; a successor never has that."""
    patch = Merge({"metadata": {"finalizers": list(finalizers)}})
    return await client.patch(type(current), current.key, patch, if_revision=current.revision)
