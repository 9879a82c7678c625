"""One resource in memory: what is committed, what is on its way, the recent past, and who watches it.

Readers see only what is committed. Writers check against the tip, which includes what is still on its way to the disk, so
that writes need not wait for each other. The ring of recent changes serves watches that resume and lists that go on. The
publisher never waits for a reader: it appends references to each watcher's queue and wakes it once per batch. A reader that
falls too far behind is closed, and its client lists again; nobody else notices.
"""

import asyncio
import math
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from applecart.api.meta import Key
from applecart.embedded.store.log import Compacted
from applecart.embedded.store.record import Change, Op, Record

MOST_EVENTS = 1000  # waiting for one reader
MOST_BYTES = 8 << 20  # likewise; large objects reach it first


class Scope(NamedTuple):
    """Which part of a resource a watcher wants, as far as an index can tell; selectors decide the rest."""

    namespace: str | None = None
    name: str | None = None
    node: str | None = None  # spec.nodeName, which every node's agent asks for


class Watcher:
    """Changes that wait for one reader."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.is_closed = False  # by the store: the reader was too slow, or the kind is gone
        self._waiting: deque[Change] = deque()
        self._bytes = 0
        self._reader: asyncio.Future[None] | None = None  # sleeps until it is woken
        self._alarm: asyncio.TimerHandle | None = None

    def offer(self, change: Change) -> None:
        if self.is_closed:
            return
        self._waiting.append(change)
        self._bytes += change.size_bytes
        if len(self._waiting) > MOST_EVENTS or self._bytes > MOST_BYTES:
            self.close()

    def flush(self) -> None:
        """Wake the reader; called once per batch."""
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def close(self) -> None:
        self.is_closed = True
        self._waiting.clear()
        self.flush()

    def take(self) -> list[Change]:
        """What waits, without waiting."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return taken

    async def wait(self, until: float = math.inf) -> bool:
        """Sleep until something waits or the watcher is closed; False when `until`, by the loop's clock, came first."""
        loop = asyncio.get_running_loop()
        while not self._waiting and not self.is_closed:
            if loop.time() >= until:
                return False
            self._set_alarm(loop, until)
            self._reader = loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return True

    def stop_alarm(self) -> None:
        """The reader has gone and needs no waking."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        # One timer outlives many events: a reader asks for the same instant each time, and a timer for each event costs more
        # than the event.
        if self._alarm is not None and self._alarm.when() == until and not self._alarm.cancelled():
            return
        self.stop_alarm()
        if until != math.inf:
            self._alarm = loop.call_at(until, self.flush)


RING_EVENTS = 4096  # of one resource: a reader that was away for less than this resumes without a list
RING_BYTES = 24 << 20  # likewise, of values that are no more and of what was encoded; large objects reach it first
NODE_FIELD = "spec.nodeName"
LAST_NAME = "\U0010ffff"  # sorts after every name


class Table:
    """The objects of one resource, by key."""

    def __init__(self, label: str, floor: int) -> None:
        self.label = label
        self.floor = floor  # the ring holds every change after this revision
        self.changed_at = floor
        self._committed: dict[Key, Record] = {}
        self._keys: list[Key] = []  # sorted, which is the order of lists
        self._on_the_way: dict[Key, tuple[int, Record | None]] = {}
        self._ring: deque[Change] = deque()
        self.ring_bytes = 0
        self._watchers_of_all: dict[Watcher, None] = {}  # in the order of their coming: the same seed gives the same run
        self._watchers_of: defaultdict[tuple[str, str], dict[Watcher, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._committed)

    # Writing

    def load(self, record: Record) -> None:
        """Take an object that was committed before this process started; in any order, `sort` ends it."""
        self._committed[record.key] = record

    def sort(self) -> None:
        self._keys = sorted(self._committed)

    def tip(self, key: Key) -> Record | None:
        """The object as the next write finds it."""
        on_the_way = self._on_the_way.get(key)
        return on_the_way[1] if on_the_way else self._committed.get(key)

    def expect(self, op: Op, record: Record) -> None:
        """A write was handed to the log."""
        self._on_the_way[record.key] = (record.revision, None if op is Op.DELETED else record)

    def publish(self, op: Op, record: Record, touched: dict[Watcher, None]) -> Change:
        """A write is durable: show it to readers and offer it to watchers."""
        key = record.key
        if (waiting := self._on_the_way.get(key)) and waiting[0] == record.revision:
            del self._on_the_way[key]
        previous = self._committed.get(key)
        if op is Op.DELETED:
            if previous is not None:
                del self._committed[key]
                del self._keys[bisect_left(self._keys, key)]
        else:
            if previous is None:
                insort(self._keys, key)
            self._committed[key] = record
        self.changed_at = record.revision
        change = Change(op, record, previous, self._hold)
        self._ring.append(change)
        self._hold(change.held_bytes)
        for watcher in self._interested(change):
            watcher.offer(change)
            touched[watcher] = None
        return change

    def _hold(self, more_bytes: int) -> None:
        self.ring_bytes += more_bytes
        while self._ring and (len(self._ring) > RING_EVENTS or self.ring_bytes > RING_BYTES):
            oldest = self._ring.popleft()
            self.floor = oldest.revision
            self.ring_bytes -= oldest.held_bytes
            oldest.let_go()

    def renew(self, record: Record) -> None:
        """The same revision, served in another way; no change that anybody is told of."""
        self._committed[record.key] = record

    # Reading

    def get(self, key: Key) -> Record | None:
        return self._committed.get(key)

    def records(self, namespace: str | None = None, after: Key | None = None) -> list[Record]:
        """The objects in order, as they are now; a list of its own, so the reader may take its time."""
        first, last = self._range(namespace, after)
        get = self._committed.get
        # Another thread may read here while the loop takes one out.
        return [record for key in self._keys[first:last] if (record := get(key)) is not None]

    def records_at(self, revision: int, namespace: str | None, after: Key | None) -> list[Record]:
        """The objects as they were at a revision that the ring reaches back to. Raises Compacted."""
        if revision < self.floor:
            raise Compacted
        past: dict[Key, Record | None] = {}
        for change in reversed(self._ring):
            if change.revision <= revision:
                break
            past[change.record.key] = change.previous
        if not past:
            return self.records(namespace, after)
        state = {record.key: record for record in self.records(namespace, after)}
        for key, record in past.items():
            if (namespace is not None and key.namespace != namespace) or (after is not None and key <= after):
                continue
            if record is None:
                state.pop(key, None)
            else:
                state[key] = record
        return [state[key] for key in sorted(state)]

    def since(self, revision: int) -> list[Change]:
        """Everything after a revision. Raises Compacted when the ring does not reach back so far."""
        if revision < self.floor:
            raise Compacted
        changes: list[Change] = []
        for change in reversed(self._ring):
            if change.revision <= revision:
                break
            changes.append(change)
        changes.reverse()
        return changes

    # Watching

    def watch(self, scope: Scope) -> Watcher:
        watcher = Watcher(scope)
        self._group_of(scope)[watcher] = None
        return watcher

    def unwatch(self, watcher: Watcher) -> None:
        watcher.stop_alarm()
        self._group_of(watcher.scope).pop(watcher, None)
        for place in [place for place, group in self._watchers_of.items() if not group]:
            del self._watchers_of[place]

    def close_watchers(self) -> None:
        for watcher in [*self._watchers_of_all, *(one for group in self._watchers_of.values() for one in group)]:
            watcher.close()

    def _group_of(self, scope: Scope) -> dict[Watcher, None]:
        # The narrowest of the three: a name is one object, a node a few.
        if scope.name is not None:
            return self._watchers_of["name", scope.name]
        if scope.node is not None:
            return self._watchers_of["node", scope.node]
        if scope.namespace is not None:
            return self._watchers_of["namespace", scope.namespace]
        return self._watchers_of_all

    def _interested(self, change: Change) -> Iterator[Watcher]:
        yield from self._watchers_of_all
        if not self._watchers_of:
            return
        groups = self._watchers_of
        key = change.record.key
        yield from groups.get(("name", key.name), ())
        yield from groups.get(("namespace", key.namespace), ())
        node = change.record.traits.fields.get(NODE_FIELD, "")
        yield from groups.get(("node", node), ())
        if change.previous is not None and (before := change.previous.traits.fields.get(NODE_FIELD, "")) != node:
            yield from groups.get(("node", before), ())

    def _range(self, namespace: str | None, after: Key | None) -> tuple[int, int]:
        first, last = 0, len(self._keys)
        if namespace is not None:
            first = bisect_left(self._keys, Key(namespace, ""))
            last = bisect_right(self._keys, Key(namespace, LAST_NAME))
        if after is not None:
            first = max(first, bisect_right(self._keys, after))
        return first, last
