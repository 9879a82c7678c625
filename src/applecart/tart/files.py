"""The files the agent keeps: written so that a crash or a power cut leaves the old or the new content, never half of one (D10).

Every change to the host's disk goes through here, so that a test can kill the agent before and after each of them. Reading is
free. A path may lead into a folder that a guest writes to: nothing a guest made is ever read or written through here, it is
replaced or removed, and no link of its making is followed.
"""

import asyncio
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from applecart.tart.tree_removal import remove_tree

FOLDER_MODE = 0o700
FILE_MODE = 0o600
GOING_SUFFIX = ".going"  # of a hidden folder beside the one that is being removed
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: its fsync ends at the drive, which may forget


class Files:
    def write(self, path: Path, data: bytes, mode: int = FILE_MODE) -> None:
        """Durable when it returns."""
        fresh = path.with_name(f".{path.name}.new")
        with suppress(FileNotFoundError):
            fresh.unlink()  # of an agent that died here; its mode may be another
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            os.fchmod(handle, mode)  # whatever the umask is
            with open(handle, "wb", closefd=False) as file:
                file.write(data)
            _flush(handle)
        except OSError:
            fresh.unlink(missing_ok=True)  # half a file would keep the last blocks of a full disk
            raise
        finally:
            os.close(handle)
        fresh.replace(path)
        self._sync(path.parent)

    def make_folder(self, path: Path, mode: int = FOLDER_MODE) -> None:
        path.mkdir(parents=True, exist_ok=True, mode=mode)
        path.chmod(mode)

    def remove(self, path: Path) -> None:
        """A file or a folder with everything in it; harmless when it is not there. Links are removed, not followed."""
        with suppress(FileNotFoundError):
            if _is_folder(path):
                remove_tree(path)
            else:
                path.unlink()

    async def remove_aside(self, path: Path) -> None:
        """As `remove`, for a folder that a guest filled, perhaps with a million files. Its place is free before anything else
        runs; the rest happens beside the event loop and can hit nothing that comes to that place meanwhile.

        The folder it lies in must be ours alone. Who was killed or cancelled in between does it once more.
        """
        if (going := self._set_aside(path)) is not None:
            await asyncio.to_thread(self.remove, going)

    def _set_aside(self, path: Path) -> Path | None:
        """Where it is now, perhaps beside what an earlier removal left; None when nothing is left to remove."""
        is_aside = path.name.startswith(".") and path.name.endswith(GOING_SUFFIX)
        going = path if is_aside else path.with_name(f".{path.name}{GOING_SUFFIX}")
        if not is_aside and not _is_folder(path):
            self.remove(path)
        elif not is_aside:
            self.make_folder(going)
            path.chmod(FOLDER_MODE)  # one that its guest closed cannot be moved
            self.move(path, going / str(path.lstat().st_ino))  # a number that nothing else on this disk has now
        return going if going.exists() else None

    def move(self, source: Path, target: Path) -> None:
        source.replace(target)
        self._sync(target.parent)

    def empty(self, path: Path) -> None:
        """The same file, without its content: whoever appends to it goes on at the beginning. Links are not followed."""
        handle = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        os.close(handle)

    def _sync(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            _flush(handle)
        finally:
            os.close(handle)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _flush(handle: int) -> None:
    if _FULL_SYNC is not None:
        with suppress(OSError):  # not every file system has it
            fcntl.fcntl(handle, _FULL_SYNC)
            return
    os.fsync(handle)
