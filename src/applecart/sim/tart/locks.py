"""Tart's locks: flock on a file or a folder, gone with the process that holds them.

A real flock belongs to an open file, not to a process, so simulated processes that share one real process exclude each other
just as well.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

POLL_S = 0.1  # Tart blocks in the kernel instead; nobody can tell


class Lock:
    """`with Lock(path) as lock` gives it back at the end, also when the program is killed."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def try_take(self) -> bool:
        assert self._handle is not None
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    async def take(self) -> None:
        while True:
            if self.try_take():
                return
            await asyncio.sleep(POLL_S)

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def __enter__(self) -> "Lock":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def is_locked(path: Path) -> bool:
    with suppress(OSError), Lock(path) as lock:
        return not lock.try_take()
    return False
