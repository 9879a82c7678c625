"""A log on disk, which may be in the hands of a guest: opened so that nothing it is made into can hurt the host.

A guest writes to its share as it likes: a link to a file of the host, a pipe that nobody fills, a hole of a terabyte, a folder.
Only a plain file that has no other name is read, without waiting, and only its last part. A file that was replaced or cut is
read from its beginning.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from applecart.kubelet.guest.guest_files import Refused, open_plain

MOST_BYTES = 16 << 20  # of what is there already; logs are for people, and the agent is small
NEVER = datetime.min.replace(tzinfo=UTC)


class LogFile:
    """The first of some files that can be read. Look with `refresh`, then read what lies between two positions."""

    def __init__(self, *choices: tuple[Path, str]) -> None:
        self._choices: Sequence[tuple[Path, str]] = choices
        self._handle = -1
        self._identity = (0, 0)
        self.position = 0  # up to where it was read
        self.size = 0
        self.changed_at = NEVER

    @property
    def is_open(self) -> bool:
        return self._handle >= 0

    @property
    def begin(self) -> int:
        return max(0, self.size - MOST_BYTES)

    def refresh(self) -> bool:
        """Whether there is a log; its size and time are then as they are now."""
        handle = self._open()
        if handle < 0 and not self.is_open:
            return False
        if handle >= 0:
            self._use(handle)
        # A file that was removed while we read is held, and may have got a last line before it went.
        status = os.fstat(self._handle)
        self.size = status.st_size
        self.changed_at = instant(status.st_mtime)
        if self.size < self.position:
            self.position = 0
        return True

    def read(self, start: int, count: int) -> bytes:
        """Fewer bytes than asked for when the file was cut meanwhile."""
        try:
            return os.pread(self._handle, count, start) if self.is_open else b""
        except OSError:
            return b""

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _use(self, handle: int) -> None:
        status = os.fstat(handle)
        identity = (status.st_dev, status.st_ino)
        if not self.is_open or identity != self._identity:
            self.position = 0
        self.close()
        self._handle, self._identity = handle, identity

    def _open(self) -> int:
        # Once one of them was read, another is another log: a copy would show everything a second time.
        for folder, name in self._choices:
            with suppress(OSError, Refused):
                handle, _ = open_plain(folder, name)
                self._choices = ((folder, name),)
                return handle
        return -1


def instant(seconds: float) -> datetime:
    """The time of a file; NEVER when it is no time."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return NEVER  # a guest may set the time of its files to anything
