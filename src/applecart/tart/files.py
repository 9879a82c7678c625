"""The files the agent keeps: written so that a crash leaves the old or the new content, never half of one (D10).

Every change to the host's disk goes through here, so that a test can kill the agent before and after each of them. Reading is
free. Paths are the agent's own; nothing a guest can write to is ever opened here.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path

FOLDER_MODE = 0o700
FILE_MODE = 0o600


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
            os.fsync(handle)
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
            if path.is_dir() and not path.is_symlink():
                _remove_tree(path)
            else:
                path.unlink()

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
            os.fsync(handle)
        finally:
            os.close(handle)


def _remove_tree(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except PermissionError:  # a guest may have closed a folder of its share; it is ours all the same
        _open_up(folder)
        shutil.rmtree(folder)


def _open_up(folder: Path) -> None:
    folder.chmod(FOLDER_MODE)
    for inside in list(folder.iterdir()):
        if inside.is_dir() and not inside.is_symlink():
            _open_up(inside)
