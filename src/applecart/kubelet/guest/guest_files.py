"""The one way to read what a guest wrote.

A guest may be hostile: where a report is expected it can put a link to a file of the host, a pipe that never ends, a device or
a terabyte. So a file is opened relative to a handle of its folder, without following links and without waiting; what was
opened is then looked at, and only a plain file with one name is read, up to a limit. Nothing here looks at a path twice, and
nothing here waits for a guest.
"""

import errno
import os
import re
import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.observe.logs import logger

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

LONGEST_SECRET_BYTES = 16 << 10  # what comes after so much cannot be the rest of one that was cut
_LINE_END = re.compile(rb"[\r\n]")  # a progress bar ends its lines with \r alone

log = logger(__name__)


class GuestFile(msgspec.Struct, frozen=True):
    """A piece of a file as it was when it was opened."""

    data: bytes
    offset: int  # where the piece begins
    size_bytes: int  # of the whole file
    modified_at: datetime | None  # the guest can set it to anything; None when it is no time at all

    @property
    def is_whole(self) -> bool:
        return self.offset == 0 and len(self.data) >= self.size_bytes

    @property
    def whole_lines(self) -> bytes:
        """Without what the limit cut in two, which may be half a secret and would not be recognised (I9)."""
        if not self.offset:
            return self.data
        end = _LINE_END.search(self.data)
        return self.data[end.end() if end else LONGEST_SECRET_BYTES :]


class Refused(Exception):
    """What lies there is not read; the text says why."""


def read_tail(folder: Path, name: str, limit_bytes: int) -> GuestFile | None:
    """The last bytes of a file; None when there is none, or none that may be read."""
    try:
        handle, found = open_plain(folder, name)
        try:
            return _tail(handle, found, limit_bytes)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return None
    except (Refused, OSError) as error:
        log.warning("a file of a guest was not read", folder=str(folder), file=name, why=str(error))
        return None


def open_plain(folder: Path, name: str) -> tuple[int, os.stat_result]:
    """A handle, which the caller closes, and what it is of. Raises FileNotFoundError, or Refused for what may not be read."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise Refused("it is not the name of a file")
    inside = os.open(folder, _FOLDER)
    try:
        handle = os.open(name, _FILE, dir_fd=inside)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Refused("it is a link" if error.errno == errno.ELOOP else str(error.strerror)) from None
    finally:
        os.close(inside)
    try:
        return handle, _checked(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise


def _checked(found: os.stat_result) -> os.stat_result:
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"it is {_KINDS.get(stat.S_IFMT(found.st_mode), 'of an unknown kind')}, not a plain file")
    if found.st_nlink > 1:
        raise Refused("it is one of several names of a file, perhaps of a file of the host")
    return found


def _tail(handle: int, found: os.stat_result, limit_bytes: int) -> GuestFile:
    begin = max(0, found.st_size - limit_bytes)
    data = b""
    while len(data) < limit_bytes:  # a read may return less than was asked for
        more = os.pread(handle, limit_bytes - len(data), begin + len(data))
        if not more:
            break
        data += more
    return GuestFile(data, begin, found.st_size, _time(found.st_mtime))


def _time(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
