"""What an informer knows: objects by key, and by index.

Plain memory without I/O. It reports every difference as a `Change` exactly once, also the ones a new list brings: an object
that is missing there was deleted, and one that came back under its old name with another uid was deleted and created. Objects
are frozen and shared; nobody may keep a change from the next reader.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from applecart.api.meta import Key, Object

K = TypeVar("K", bound=Object)

IndexFunction = Callable[[K], Iterable[str]]  # the values under which an object is found


class Change(msgspec.Struct, Generic[K], frozen=True, gc=False):
    """An object appeared (`old` is None), changed, or went (`new` is None)."""

    key: Key
    old: K | None
    new: K | None


class Cache(Generic[K]):
    def __init__(self) -> None:
        self._objects: dict[Key, K] = {}
        self._functions: dict[str, IndexFunction[K]] = {}
        self._found_by: dict[str, dict[Key, tuple[str, ...]]] = {}  # by index: a function may say another thing the next time
        self._indexes: dict[str, dict[str, dict[Key, K]]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[K]:
        return iter(self._objects.values())

    def get(self, key: Key) -> K | None:
        return self._objects.get(key)

    def keys(self) -> Iterable[Key]:
        return self._objects.keys()

    def by_index(self, index: str, value: str) -> list[K]:
        return list(self._indexes[index].get(value, {}).values())

    def add_index(self, name: str, function: IndexFunction[K]) -> None:
        """Find objects by one more value, those that are known included. The function must not fail."""
        if name not in self._functions:
            self._functions[name] = function
            self._indexes[name], self._found_by[name] = {}, {}
            for key, obj in self._objects.items():
                self._reindex(name, key, obj, _values(function, obj))

    def put(self, obj: K) -> list[Change[K]]:
        """Store what the API says now; the changes that it means, usually one. One that fails has stored nothing."""
        metadata = obj.metadata
        key = Key(metadata.namespace, metadata.name)
        old = self._objects.get(key)
        values = {name: _values(function, obj) for name, function in self._functions.items()}
        self._objects[key] = obj
        for name, after in values.items():
            self._reindex(name, key, obj, after)
        if old is None:
            return [Change(key, None, obj)]
        if old.metadata.uid != metadata.uid:
            return [Change(key, old, None), Change(key, None, obj)]
        if old.metadata.resource_version == metadata.resource_version:
            return []
        return [Change(key, old, obj)]

    def remove(self, key: Key, last: K | None = None) -> list[Change[K]]:
        """Forget an object; `last` is its final state where the API told it."""
        old = self._objects.pop(key, None)
        if old is None:
            return []
        for name in self._functions:
            self._reindex(name, key, old, ())
        same = last is not None and last.metadata.uid == old.metadata.uid
        return [Change(key, last if same else old, None)]

    def _reindex(self, name: str, key: Key, obj: K, after: tuple[str, ...]) -> None:
        index, found_by = self._indexes[name], self._found_by[name]
        for value in found_by.pop(key, ()):
            if value not in after:
                bucket = index[value]
                del bucket[key]
                if not bucket:
                    del index[value]
        if after:
            found_by[key] = after
            for value in after:
                index.setdefault(value, {})[key] = obj


def _values(function: IndexFunction[K], obj: K) -> tuple[str, ...]:
    return tuple(dict.fromkeys(function(obj)))


class Replacement(Generic[K]):
    """A new list on its way into a cache, page by page; the cache stays as it is until `commit`.

    Objects that did not change are dropped as their page arrives, so a relist of a large cache does not hold everything twice.
    """

    def __init__(self, cache: Cache[K]) -> None:
        self._cache = cache
        self._seen: set[Key] = set()
        self._changed: list[K] = []

    def offer(self, page: Iterable[K]) -> None:
        for obj in page:
            key = obj.key
            self._seen.add(key)
            known = self._cache.get(key)
            if known is None or known.revision != obj.revision or known.uid != obj.uid:
                self._changed.append(obj)

    def commit(self) -> Iterator[Change[K]]:
        """Make the cache equal to the list: what is gone first, then what is new or changed, in the list's order.

        Each change is told as soon as it is stored, so that a failure in between hides none.
        """
        for key in [obj.key for obj in self._cache if obj.key not in self._seen]:
            yield from self._cache.remove(key)
        for obj in self._changed:
            yield from self._cache.put(obj)
