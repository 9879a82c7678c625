"""What is needed now and then: old revisions forgotten, the write-ahead log moved into the database, memory given back.

Beside the requests, never inside one. What goes wrong is said and tried again (`kube/background.py`): without it the log grows
until the disk is full. A step on the writer's own connection that fails ends the store like a failed commit, because it is the
same disk.
"""

import asyncio
import ctypes
from collections.abc import Awaitable, Callable
from functools import partial

from applecart.embedded.server.core import Core
from applecart.embedded.store.sqlite_log import SqliteLog

COMPACT_EVERY_S = 300.0
KEPT_REVISIONS = 1000  # always: a list that goes on, or a look at the recent past, needs some
CHECKPOINT_EVERY_S = 5.0
CHECKPOINT_ABOVE_BYTES = 4 << 20
GIVE_BACK_EVERY_S = 60.0
MMAP_THRESHOLD = -3  # of glibc's mallopt
APART_BYTES = 128 << 10  # blocks of this size go back to the system at once; by itself glibc keeps what is smaller than 32 MB
TRUNCATE_ABOVE_BYTES = 64 << 20  # a writer that never pauses lets the write-ahead log grow; then it must wait a moment

_libc = ctypes.CDLL(None)


class Maintenance:
    """The loops, as long as the server runs."""

    def __init__(self, core: Core, log: SqliteLog) -> None:
        self._store = core.store
        self._log = log
        self._last_round = core.store.revision
        if hasattr(_libc, "mallopt"):
            _libc.mallopt(MMAP_THRESHOLD, APART_BYTES)
        for name, period_s, work in (
            ("compaction", COMPACT_EVERY_S, self._compact),
            ("checkpoints", CHECKPOINT_EVERY_S, self._checkpoint),
            ("memory", GIVE_BACK_EVERY_S, _give_memory_back),
        ):
            core.background.add(name, partial(_every, period_s, work))

    async def _compact(self) -> None:
        """Forget up to the revision of one round ago: whoever reads the past has at least that long."""
        target = min(self._last_round, self._store.revision - KEPT_REVISIONS)
        self._last_round = self._store.revision
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


async def _every(period_s: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(period_s)
        await work()
