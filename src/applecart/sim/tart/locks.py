"""Tart's locks: flock on a file or a folder, gone with the process that holds them.

A real flock belongs to an open file, not to a process, so simulated processes that share one real process exclude each other
just as well. To look at a lock takes a share of it for a moment: looks do not keep each other away, and whoever wants the whole
lock waits until they are over. (Tart asks the kernel instead, which takes nothing; a flock cannot be asked.)
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

POLL_S = 0.1  # Tart blocks in the kernel instead; nobody can tell
LOOK_S = 0.002  # longer than a look takes
MOST_LOOKS = 500  # to wait for; nobody looks that often by chance


class Lock:
    """`with Lock(path) as lock` gives it back at the end, also when the program is killed."""

    def __init__(self, path: Path) -> None:
        self._handle: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def try_take(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def try_look(self) -> bool:
        """False when somebody holds it."""
        return self._try(fcntl.LOCK_SH)

    async def take_unless_held(self) -> bool:
        """False at once when somebody holds it; those who only look are waited for."""
        for _ in range(MOST_LOOKS):
            if self.try_take():
                return True
            if not self.try_look():
                return False
            self._try(fcntl.LOCK_UN)
            await asyncio.sleep(LOOK_S)
        return False

    async def take(self) -> None:
        while True:
            if self.try_take():
                return
            await asyncio.sleep(POLL_S)

    def wait(self) -> None:
        """For what is held for a few instructions and never while anything is awaited."""
        assert self._handle is not None
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def _try(self, how: int) -> bool:
        assert self._handle is not None
        try:
            fcntl.flock(self._handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

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
        return not lock.try_look()
    return False
