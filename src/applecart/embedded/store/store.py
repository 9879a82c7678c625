"""All objects of the server: one writer at a time decides, the log makes it durable, then everybody sees it.

A write is assigned its revision on the event loop, where it was checked against the tip; between the check and `write` nothing
else runs. It becomes visible to reads and watches only when the log has it on disk. A log that fails ends the store: what was
not acknowledged is refused, and nothing is taken back in place. A listener that fails ends it too, after everybody has heard of
the write: a server that missed what follows from one may serve what it must not. So does a write that cannot be shown: its
writer would wait for ever.
"""

import asyncio
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from applecart.api.meta import Key
from applecart.embedded.store.log import Compacted, Log, StoreFailed
from applecart.embedded.store.record import NOTHING, Change, LogEntry, Op, Record, Traits
from applecart.embedded.store.table import Table, Watcher
from applecart.errors import BadInput
from applecart.observe.logs import logger

_log = logger(__name__)

WOKEN_AT_ONCE = 50  # watchers; each selects and sends for up to 0.6 ms before others get a turn
RENEWED_AT_ONCE = 250  # objects of a resource whose schema has changed: some 6 ms
RENEWED_BYTES = 64 << 10  # likewise; large objects reach it first
TakeIn = Callable[[str, bytes], tuple[bytes, Traits]]  # an older value as it is served today, and its traits


class _Past(Record, frozen=True, gc=True, weakref=True):
    """An object as it was, for as long as somebody reads it."""


class Store:
    """The committed view, the tip and the way to the log."""

    def __init__(self, log: Log, take_in: TakeIn) -> None:
        self._log = log
        self._take_in = take_in
        self._tables: dict[str, Table] = {}
        self.past: weakref.WeakValueDictionary[tuple[str, Key, int], _Past] = weakref.WeakValueDictionary()
        self._reading_past = asyncio.Lock()  # nobody holds more than one copy of what is about to be shared
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._listeners: dict[str, list[Callable[[Change], None]]] = {}
        self._failed_listeners: list[Callable[[StoreFailed], None]] = []
        self.renewing: dict[str, asyncio.Event] = {}  # resources of which some objects are still as they were
        self.failure: StoreFailed | None = None

    def start(self) -> None:
        """Read what exists and take writes from now on."""
        records = [(label, self._taken_in(label, *row)) for label, row in self._log.current()]
        self._log.start(self._publish, self._fail)
        self._revision = self._tip_revision = self._boot = self._log.revision
        for label, record in records:
            self.table(label).load(record)
        for table in self._tables.values():
            table.sort()

    def close_watchers(self) -> None:
        """End all watches in an orderly way; their readers come back later, or to somebody else."""
        for table in self._tables.values():
            table.close_watchers()

    async def aclose(self) -> None:
        self.close_watchers()
        await self._log.aclose()

    def on_failure(self, listener: Callable[[StoreFailed], None]) -> None:
        """Called once, when no more is written."""
        self._failed_listeners.append(listener)

    # Reading

    @property
    def revision(self) -> int:
        """The newest committed revision."""
        return self._revision

    def table(self, label: str) -> Table:
        table = self._tables.get(label)
        if table is None:
            table = self._tables[label] = Table(label, self._boot)
        return table

    def labels(self) -> list[str]:
        """The resources that have objects."""
        return sorted(label for label, table in self._tables.items() if len(table))

    async def records_at(self, label: str, revision: int, namespace: str | None, after: Key | None) -> list[Record]:
        """The objects of a resource as they were at a revision. Raises Compacted."""
        if revision < self._log.compacted:
            raise Compacted
        with suppress(Compacted):
            return self.table(label).records_at(revision, namespace, after)
        found, size_bytes = [], 0
        async with self._reading_past:
            for key, at, value in await self._log.history(label, namespace, revision):
                if after is None or key > after:
                    found.append(self._shared(label, key, at, value))
                    if (size_bytes := size_bytes + len(value)) > RENEWED_BYTES:
                        size_bytes = 0
                        await asyncio.sleep(0)
        return found

    # Writing

    def next_revision(self) -> int:
        """The revision of the next write; it is given out by that write."""
        return self._tip_revision + 1

    def write(self, label: str, op: Op, record: Record) -> "asyncio.Future[None]":
        """Hand a write to the log; the future is done when it is durable and visible."""
        if self.failure:
            raise self.failure
        assert record.revision == self._tip_revision + 1, "a write must take the next revision, without waiting in between"
        self._tip_revision = record.revision
        self.table(label).expect(op, record)
        done = asyncio.get_running_loop().create_future()
        self._waiting[record.revision] = done
        self._log.submit(LogEntry(label, op, record))
        return done

    def renew(self, label: str) -> None:
        """Take a resource's objects in again: its schema or what its selectors may ask for has changed.

        A few at a time, with a turn for everybody else between them. Whoever is to read or write them waits for `renewing`.
        """
        done = self.renewing[label] = asyncio.Event()
        self._renew_some(label, [record.key for record in reversed(self.table(label).records())], done)

    def _renew_some(self, label: str, left: list[Key], done: asyncio.Event) -> None:
        table, count, size_bytes = self.table(label), 0, 0
        while left and count < RENEWED_AT_ONCE and size_bytes < RENEWED_BYTES:
            record = table.get(left.pop())  # as it is by now
            if record is not None:
                table.renew(self._taken_in(label, record.key, record.revision, record.value))
                count, size_bytes = count + 1, size_bytes + record.size_bytes
        if left:
            self.soon(self._renew_some, label, left, done)
            return
        done.set()
        if self.renewing.get(label) is done:  # nobody has begun anew meanwhile
            del self.renewing[label]

    def settled(self, revision: int) -> "asyncio.Future[None] | None":
        """What to wait for before anybody may hear of a revision; None when it is durable."""
        return self._waiting.get(revision)

    def on_commit(self, label: str, listener: Callable[[Change], None]) -> None:
        """Called for each committed write of a resource, before whoever wrote it hears of it."""
        self._listeners.setdefault(label, []).append(listener)

    def soon(self, work: Callable[..., None], *arguments: Any) -> None:
        """What follows from a commit, in a moment: it fails as a listener does."""
        asyncio.get_running_loop().call_soon(self._guarded, work, *arguments)

    async def compact(self, revision: int) -> None:
        """Forget what was overwritten up to a revision. Watches that resume are served from the rings all the same."""
        await self._log.compact(revision)

    def _shared(self, label: str, key: Key, revision: int, value: bytes) -> Record:
        """What was read of the past, once in memory for all who hold it at the same time."""
        taken = self._taken_in(label, key, revision, value)
        past = _Past(key, revision, taken.value, taken.traits)
        shared = self.past.setdefault((label, key, revision), past)
        return shared if shared == past else past  # its kind may be served in another way by now

    def _taken_in(self, label: str, key: Key, revision: int, value: bytes) -> Record:
        try:
            return Record(key, revision, *self._take_in(label, value))
        except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, TypeError):
            # The database is whole and what it holds is not: no check of its pages could tell.
            raise BadInput(
                f"{label} {key} at revision {revision} is no readable object: its row was damaged or altered; "
                "run: applecart api restore"
            ) from None

    def _publish(self, batch: Sequence[LogEntry]) -> None:
        if not self.failure:
            self._guarded(self._show, batch)

    def _show(self, batch: Sequence[LogEntry]) -> None:
        touched: dict[Watcher, None] = {}
        defect: StoreFailed | None = None
        for entry in batch:
            change = self.table(entry.label).publish(entry.op, entry.record, touched)
            for listener in self._listeners.get(entry.label, ()):
                defect = self._tried(listener, change) or defect
        self._revision = batch[-1].record.revision
        self._wake(list(touched))
        for entry in batch:
            done = self._waiting.pop(entry.record.revision)
            if not done.done():
                done.set_result(None)
        if defect:
            self._fail(defect)

    def _wake(self, watchers: Sequence[Watcher]) -> None:
        for watcher in watchers[:WOKEN_AT_ONCE]:
            watcher.flush()
        if more := watchers[WOKEN_AT_ONCE:]:
            self.soon(self._wake, more)

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        if defect := self._tried(work, *arguments):
            self._fail(defect)

    def _tried(self, work: Callable[..., None], *arguments: Any) -> StoreFailed | None:
        try:
            work(*arguments)
        except StoreFailed as failure:
            return failure
        except (Exception, asyncio.CancelledError) as error:  # the loop would drop the latter, with all that was to follow
            _log.exception("what follows from a write failed")
            why = f"what follows from a stored write could not be done ({type(error).__name__}, see the log)"
            return StoreFailed(f"{why}; start again: nothing that was acknowledged is lost")
        return None

    def _fail(self, failure: StoreFailed) -> None:
        if self.failure:
            return
        self.failure = failure
        renewing, self.renewing = self.renewing, {}
        for renewed in renewing.values():
            renewed.set()
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            if not done.done():
                done.set_exception(failure)
        for listener in self._failed_listeners:
            self._tried(listener, failure)


class Reader(Protocol):
    """How the parts that decide read: committed objects as fresh plain values, which they may keep or change."""

    def get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        """One object of a resource (`pods`, `roles.rbac.authorization.k8s.io`); None when there is none."""

    def each(self, label: str, namespace: str | None = None) -> Iterator[dict[str, Any]]:
        """All objects of a resource, of one namespace when it is named."""

    def changed_at(self, label: str) -> int:
        """The revision of the newest change of a resource: what was derived from it is good until this moves."""

    def revisions(self, label: str) -> dict[Key, int]:
        """The revision of each object of a resource: what was derived from one is good until its own moves."""


class StoreReader:
    """A `Reader` of the store; tests of those parts have one of a dict."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        record = self._store.table(label).get(Key(namespace, name))
        return record.document() if record else None

    def each(self, label: str, namespace: str | None = None) -> Iterator[dict[str, Any]]:
        return (record.document() for record in self._store.table(label).records(namespace))

    def changed_at(self, label: str) -> int:
        return self._store.table(label).changed_at

    def revisions(self, label: str) -> dict[Key, int]:
        return {record.key: record.revision for record in self._store.table(label).records()}


class _PeekedMetadata(msgspec.Struct):
    uid: str = ""
    labels: dict[str, str] = NOTHING


class _Peeked(msgspec.Struct):
    metadata: _PeekedMetadata


_peek = msgspec.json.Decoder(_Peeked).decode


def peek(value: bytes) -> Traits:
    """The traits of an object whose kind has no selectable fields, without parsing all of it."""
    metadata = _peek(value).metadata
    return Traits(metadata.uid, metadata.labels, NOTHING)
