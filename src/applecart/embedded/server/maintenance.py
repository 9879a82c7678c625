"""What the log on disk needs now and then: old revisions forgotten, the write-ahead log moved into the database.

Beside the requests, never inside one. What goes wrong here ends the server like a failed commit: it is the same disk.
"""

import asyncio
from collections import deque

from applecart.clock import Clock
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.embedded.store.store import Store

COMPACT_EVERY_S = 300.0
KEPT_REVISIONS = 1000  # always: a list that goes on, or a look at the recent past, needs some
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT_ABOVE_BYTES = 4 << 20
TRUNCATE_ABOVE_BYTES = 64 << 20  # a writer that never pauses lets the write-ahead log grow; then it must wait a moment


class Maintenance:
    """The two loops."""

    def __init__(self, store: Store, log: SqliteLog, clock: Clock) -> None:
        self._store = store
        self._log = log
        self._clock = clock

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._compact())
            group.create_task(self._checkpoint())

    async def _compact(self) -> None:
        """Forget up to the revision of one round ago: whoever reads the past has at least that long."""
        rounds: deque[int] = deque([self._store.revision], maxlen=2)
        while True:
            await asyncio.sleep(COMPACT_EVERY_S)
            target = min(rounds[-1], self._store.revision - KEPT_REVISIONS)
            rounds.append(self._store.revision)
            if target > self._log.compacted:
                await self._store.compact(target)

    async def _checkpoint(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_EVERY_S)
            size = self._log.wal_bytes
            if size > CHECKPOINT_ABOVE_BYTES:
                await self._log.checkpoint()
            if size > TRUNCATE_ABOVE_BYTES:
                await self._log.checkpoint(truncate=True)
