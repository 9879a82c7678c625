"""A log that forgets: what the store writes to where nothing must survive, and time is virtual."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from applecart.api.meta import Key
from applecart.embedded.store.log import BOOT_JUMP, Compacted, Row, StoreFailed
from applecart.embedded.store.record import LogEntry, Op


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
