"""Removing a folder with everything in it, whatever a guest made of it.

A guest may nest folders deeper than Python recurses, deeper than a path is long and deeper than a process may hold open. So
every folder inside is moved up to the top before it is emptied: there is never more than one level to go down, and a few
handles are enough. No link is followed, a folder that was closed is opened, and what is gone already is gone. Call it only for
a folder whose parent is ours: what lies below may be anybody's.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

OPEN_MODE = 0o700
NAMES_AT_ONCE = 4096  # of a folder with millions of files, so that their names need not fit into memory
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
_CHMOD_KNOWS_LINKS = os.chmod in os.supports_follow_symlinks  # on macOS, where guests are, it does


def remove_tree(folder: Path) -> None:
    """Raises OSError when there is no such folder, or it cannot be removed."""
    fresh = map(str, count())
    with _opened(str(folder)) as top:
        _empty(top, lambda name: _dissolve(name, top, fresh))
    with suppress(FileNotFoundError):
        folder.rmdir()


def _dissolve(name: str, top: int, fresh: Iterator[str]) -> None:
    """Its files go, its folders move up beside it, and it goes."""
    with _opened(name, top) as handle:
        _empty(handle, lambda inner: _move_up(inner, handle, top, fresh))
    os.rmdir(name, dir_fd=top)


def _empty(handle: int, take_away: Callable[[str], None]) -> None:
    """Every file goes; every folder is taken away, here or elsewhere."""
    before = None
    while (inside := _some(handle)) and inside != before:  # the same once more: whoever removes the folder is told why not
        before = inside
        for name, is_folder in inside:
            with suppress(FileNotFoundError):
                if is_folder:
                    take_away(name)
                else:
                    os.unlink(name, dir_fd=handle)


def _move_up(name: str, source: int, top: int, fresh: Iterator[str]) -> None:
    for target in fresh:
        try:
            os.rename(name, target, src_dir_fd=source, dst_dir_fd=top)
        except PermissionError:  # moving a folder changes what its `..` is, so it must be writable itself
            _open_up(name, source)
            os.rename(name, target, src_dir_fd=source, dst_dir_fd=top)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            continue  # a guest may have used the name; each is tried once, so this ends
        return


def _some(handle: int) -> list[tuple[str, bool]]:
    """Names in a folder and whether each is a folder. Those that were removed are not listed again."""
    with os.scandir(handle) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, NAMES_AT_ONCE)]


@contextmanager
def _opened(name: str, inside: int | None = None) -> Iterator[int]:
    try:
        handle = os.open(name, _FOLDER, dir_fd=inside)
    except PermissionError:
        _open_up(name, inside)
        handle = os.open(name, _FOLDER, dir_fd=inside)
    try:
        with suppress(PermissionError):  # not ours: whether anything in it may go will show
            os.fchmod(handle, OPEN_MODE)
        yield handle
    finally:
        os.close(handle)


def _open_up(name: str, inside: int | None) -> None:
    os.chmod(name, OPEN_MODE, dir_fd=inside, follow_symlinks=not _CHMOD_KNOWS_LINKS)
