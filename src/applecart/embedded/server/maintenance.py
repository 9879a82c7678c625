"""What is needed now and then: old revisions forgotten, the write-ahead log moved into the database, memory given back.

Beside the requests, never inside one. What goes wrong is said and tried again: without it the log grows until the disk is full.
A step on the writer's own connection that fails ends the store like a failed commit, because it is the same disk.
"""

import asyncio
import ctypes
from collections import deque
from collections.abc import Awaitable, Callable

from applecart.embedded.store.log import StoreFailed
from applecart.embedded.store.sqlite_log import SqliteLog
from applecart.embedded.store.store import Store
from applecart.observe.logs import logger

COMPACT_EVERY_S = 300.0
KEPT_REVISIONS = 1000  # always: a list that goes on, or a look at the recent past, needs some
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT_ABOVE_BYTES = 4 << 20
GIVE_BACK_EVERY_S = 60.0
MMAP_THRESHOLD = -3  # of glibc's mallopt
APART_BYTES = 128 << 10  # blocks of this size go back to the system at once; by itself glibc keeps what is smaller than 32 MB
TRUNCATE_ABOVE_BYTES = 64 << 20  # a writer that never pauses lets the write-ahead log grow; then it must wait a moment

_log = logger(__name__)
_libc = ctypes.CDLL(None)


class Maintenance:
    """The loops."""

    def __init__(self, store: Store, log: SqliteLog) -> None:
        self._store = store
        self._log = log
        self._rounds: deque[int] = deque([store.revision], maxlen=2)

    async def run(self) -> None:
        if hasattr(_libc, "mallopt"):
            _libc.mallopt(MMAP_THRESHOLD, APART_BYTES)
        await asyncio.gather(
            every(COMPACT_EVERY_S, self._compact),
            every(CHECKPOINT_EVERY_S, self._checkpoint),
            every(GIVE_BACK_EVERY_S, _give_memory_back),
        )

    async def _compact(self) -> None:
        """Forget up to the revision of one round ago: whoever reads the past has at least that long."""
        target = min(self._rounds[-1], self._store.revision - KEPT_REVISIONS)
        self._rounds.append(self._store.revision)
        if target > self._log.compacted:
            await self._store.compact(target)

    async def _checkpoint(self) -> None:
        size = self._log.wal_bytes
        if size > CHECKPOINT_ABOVE_BYTES:
            await self._log.checkpoint()
        if size > TRUNCATE_ABOVE_BYTES:
            await self._log.checkpoint(truncate=True)


async def _give_memory_back() -> None:
    """What a burst of large requests has left; macOS does it by itself."""
    if hasattr(_libc, "malloc_trim"):
        await asyncio.to_thread(_libc.malloc_trim, 0)


async def every(period_s: float, work: Callable[[], Awaitable[None]]) -> None:
    """Do it again and again, whatever comes of it, until the store has failed."""
    while True:
        await asyncio.sleep(period_s)
        try:
            await work()
        except StoreFailed:
            return  # whoever waits for that was told
        except Exception as error:
            _log.exception("maintenance of the store failed; tried again soon", extra={"error": str(error)})
