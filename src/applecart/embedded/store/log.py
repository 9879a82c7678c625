"""Where committed writes live: the seam below the store.

A log takes entries in order and tells when they are durable, in the same order. `MemoryLog` has no thread and no file, so that
a whole fleet runs on virtual time; `SqliteLog` is the one that survives.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from applecart.api.meta import Key
from applecart.embedded.store.record import LogEntry, Op
from applecart.errors import ControlPlaneFault

BOOT_JUMP = 1000  # revisions skipped at each start: should the disk ever lose a commit, no revision is given out twice

Row = tuple[Key, int, bytes]  # key, revision, value


class StoreFailed(ControlPlaneFault):
    """The log cannot be written any more; the sentence says why. What was acknowledged before is safe."""


class Compacted(Exception):
    """The revision is older than what the log remembers."""


class Log(Protocol):
    def current(self, label: str | None = None) -> Iterable[tuple[str, Row]]:
        """Every object that exists, with its resource; of one resource when it is named."""

    @property
    def revision(self) -> int:
        """The newest revision that was ever given out, the jump at this start included."""

    @property
    def compacted(self) -> int:
        """History before this revision is forgotten."""

    def start(self, published: Callable[[Sequence[LogEntry]], None], failed: Callable[[StoreFailed], None]) -> None:
        """From now on `submit` may be called; both callbacks run on the event loop."""

    def submit(self, entry: LogEntry) -> None:
        """Take a write; `published` is called with it when it is durable."""

    async def history(self, label: str, namespace: str | None, revision: int) -> list[Row]:
        """The objects of a resource as they were, by key. Raises Compacted."""

    async def compact(self, revision: int) -> None:
        """Forget what was overwritten up to a revision."""

    async def aclose(self) -> None:
        """Make everything durable and let go."""


class MemoryLog:
    """A log that lives as long as its process; deterministic, because it commits on the loop itself."""

    def __init__(self) -> None:
        self._entries: list[LogEntry] = []  # since the last compaction, oldest first; the first of a key may be older
        self._pending: list[LogEntry] = []
        self.revision = 0
        self.compacted = 0

    def current(self, label: str | None = None) -> Iterable[tuple[str, Row]]:
        """What an earlier store wrote: a memory log may be handed from one server to the next, as a disk would."""
        self.revision = max(self.revision, max((entry.record.revision for entry in self._entries), default=0))
        for of, row in self._state(self.revision).values():
            if label is None or of == label:
                yield of, row

    def start(self, published: Callable[[Sequence[LogEntry]], None], failed: Callable[[StoreFailed], None]) -> None:
        self.revision += BOOT_JUMP
        self._published = published

    def submit(self, entry: LogEntry) -> None:
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._commit)
        self._pending.append(entry)

    async def history(self, label: str, namespace: str | None, revision: int) -> list[Row]:
        if revision < self.compacted:
            raise Compacted
        rows = [row for of, row in self._state(revision).values() if of == label]
        return sorted(row for row in rows if namespace is None or row[0].namespace == namespace)

    async def compact(self, revision: int) -> None:
        kept = self._state(revision)
        older = [entry for entry in self._entries if entry.record.revision <= revision]
        alive = {row[1] for _, row in kept.values()}
        newer = self._entries[len(older) :]
        self._entries = [entry for entry in older if entry.record.revision in alive] + newer
        self.compacted = max(self.compacted, revision)

    async def aclose(self) -> None:
        self._commit()

    def _commit(self) -> None:
        batch, self._pending = self._pending, []
        if batch:
            self._entries += batch
            self._published(batch)

    def _state(self, revision: int) -> dict[tuple[str, Key], tuple[str, Row]]:
        state: dict[tuple[str, Key], tuple[str, Row]] = {}
        for entry in self._entries:
            record = entry.record
            if record.revision > revision:
                break
            if entry.op is Op.DELETED:
                state.pop((entry.label, record.key), None)
            else:
                state[entry.label, record.key] = (entry.label, (record.key, record.revision, record.value))
        return state
