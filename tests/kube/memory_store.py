"""Objects, one global revision, and everybody who watches: the state behind `MemoryApi`.

Every write gets the next revision and is kept in a log, so that a list can be read as of an older revision and a watch can
begin there. `compact` forgets the log, as etcd does: older revisions are `Compacted` from then on. Objects are plain dicts that
nobody changes after they were stored.
"""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from applecart.errors import Unreachable
from applecart.kube.transport import JSON
from tests.kube.memory_selectors import Holds

FIRST_REVISION = 1000  # above 1, so that a test can ask for a revision that is surely forgotten
BOOKMARK_EVERY_S = 60.0  # as kube-apiserver: about once a minute...
LAST_BOOKMARK_S = 2.0  # ...and shortly before the end
SLACK_S = 1e-6  # a loop fires its timers up to its clock's resolution early

Document = dict[str, Any]
_encode = msgspec.json.Encoder().encode


class Kind(NamedTuple):
    """A collection of the API. Versions of one kind share their objects."""

    group: str
    plural: str

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Place(NamedTuple):
    """Where one object lives; sorts as etcd's keys do."""

    kind: Kind
    namespace: str
    name: str


class Write(NamedTuple):
    revision: int
    place: Place
    before: Document | None
    after: Document | None


class Compacted(Exception):
    """The revision is older than the log."""


class MemoryStore:
    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self.compacted = FIRST_REVISION
        self.objects: dict[Place, Document] = {}
        self.watches: set[MemoryWatch] = set()
        self._log: list[Write] = []

    def commit(self, place: Place, after: Document | None) -> Document:
        """Store (or with None remove) an object at a new revision, and tell every watch. Gives back what watches see."""
        before = self.objects.get(place)
        self.revision += 1
        last = after if after is not None else before
        assert last is not None, f"{place} does not exist"
        stamped = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self.revision)}}
        if after is None:
            del self.objects[place]
        else:
            self.objects[place] = stamped
        write = Write(self.revision, place, before, stamped if after is not None else None)
        self._log.append(write)
        for watch in tuple(self.watches):
            watch.offer(write)
        return stamped

    def as_of(self, revision: int) -> dict[Place, Document]:
        """The objects as they were at a revision: today's, with the log undone."""
        if revision < self.compacted:
            raise Compacted(f"The provided continue parameter is too old: {revision} ({self.compacted})")
        objects = dict(self.objects)
        for write in reversed(self._log):
            if write.revision <= revision:
                break
            if write.before is None:
                objects.pop(write.place, None)
            else:
                objects[write.place] = write.before
        return objects

    def since(self, revision: int) -> list[Write]:
        if revision < self.compacted:
            raise Compacted(f"too old resource version: {revision} ({self.compacted})")
        return [write for write in self._log if write.revision > revision]

    def compact(self) -> None:
        """Forget everything but the present, as etcd's compaction does."""
        self.compacted = self.revision
        self._log.clear()


def event_for(write: Write, matches: Holds) -> Document | None:
    """What a watch with this selector sees of a write: entering is ADDED, leaving DELETED with the state it left in."""
    was = write.before is not None and matches(write.before)
    now = write.after is not None and matches(write.after)
    if now:
        return {"type": "MODIFIED" if was else "ADDED", "object": write.after}
    if not was or write.before is None:
        return None
    metadata = {**write.before["metadata"], "resourceVersion": str(write.revision)}
    return {"type": "DELETED", "object": {**write.before, "metadata": metadata}}


class MemoryWatch:
    """An open watch: a `Stream` whose bytes come from later writes and from bookmarks, on the loop's time."""

    def __init__(
        self,
        store: MemoryStore,
        kind: Kind,
        namespace: str,
        matches: Holds,
        *,
        type_: Document,
        bookmarks: bool,
        ends_in_s: float,
    ) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {"content-type": JSON}
        self._store = store
        self._kind = kind
        self._namespace = namespace
        self._matches = matches
        self._type = type_
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._now() + ends_in_s
        self._bookmarks_at = deque(_bookmark_times(self._now(), self._ends_at) if bookmarks else ())
        self._lines: deque[bytes] = deque()
        self._woken = asyncio.Event()
        self._closed = False
        store.watches.add(self)

    def _now(self) -> float:
        return self._loop.time() + SLACK_S

    def offer(self, write: Write) -> None:
        if write.place.kind != self._kind or (self._namespace and write.place.namespace != self._namespace):
            return
        event = event_for(write, self._matches)
        if event is not None:
            self.push(event)

    def push(self, event: Document) -> None:
        self._lines.append(_encode(event) + b"\n")
        self._woken.set()

    def end_with(self, event: Document) -> None:
        self.push(event)
        self._ends_at = self._loop.time()

    async def read(self) -> bytes:
        while True:
            if self._closed:
                raise Unreachable("the watch was closed")
            if self._lines:
                chunk = b"".join(self._lines)
                self._lines.clear()
                self._woken.clear()
                return chunk
            if self._now() >= self._ends_at:
                return b""
            if self._bookmarks_at and self._now() >= self._bookmarks_at[0]:
                self._bookmark()
                continue
            next_at = self._bookmarks_at[0] if self._bookmarks_at else self._ends_at
            await self._until_woken(next_at)

    async def aclose(self) -> None:
        self._closed = True
        self._woken.set()
        self._store.watches.discard(self)

    def _bookmark(self) -> None:
        """All that was written so far has been handed out, so whoever resumes may resume from here."""
        while self._bookmarks_at and self._now() >= self._bookmarks_at[0]:
            self._bookmarks_at.popleft()
        revision = str(self._store.revision)
        self.push({"type": "BOOKMARK", "object": {**self._type, "metadata": {"resourceVersion": revision}}})

    async def _until_woken(self, at: float) -> None:
        try:
            async with asyncio.timeout_at(at):
                await self._woken.wait()
        except TimeoutError:
            pass


def _bookmark_times(start: float, end: float) -> Iterator[float]:
    at = start + BOOKMARK_EVERY_S
    while at < end - LAST_BOOKMARK_S:
        yield at
        at += BOOKMARK_EVERY_S
    yield max(start, end - LAST_BOOKMARK_S)
