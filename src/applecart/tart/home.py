"""Tart's store on disk, read without Tart.

Every Tart command but pull and clone first wipes unfinished pulls, and each takes its time; so whatever can be known from files
is read from files. Anything may vanish while it is read, names are hostile until checked, and no link is followed out of the
store. The one thing written here is the ownership mark inside a VM's folder (I3).
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.tart.cached_images import CachedImage, cached_images, digest_linked
from applecart.tart.failures import VmMissing
from applecart.tart.files import Files
from applecart.tart.images import ImageRef
from applecart.tart.marks import LONGEST_MARK_BYTES, MARK_FILE, Mark

VM_FILES = ("config.json", "disk.img", "nvram.bin")  # Tart calls a folder a VM when all three are in it
BLOCK_BYTES = 512  # the unit of st_blocks, whatever the file system's own is
_READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not block us, a link not lead us

_decode_mark = msgspec.json.Decoder(Mark).decode
_encode = msgspec.json.Encoder().encode


class LocalVm(msgspec.Struct, frozen=True):
    name: str
    path: Path
    size_bytes: int  # on disk; blocks shared with a clone count for both
    used_at: datetime
    mark: Mark | None  # None: not ours
    is_whole: bool = True  # all of Tart's files are there


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.tmp = path / "tmp"
        self._vms = path / "vms"
        self._images = path / "cache" / "OCIs"

    def vms(self) -> list[LocalVm]:
        """Those that Tart would list, by name."""
        return [vm for vm in self._folders() if vm.is_whole]

    def half_made(self) -> list[LocalVm]:
        """Folders that lack one of a VM's files: being made, being removed, or left by a crash."""
        return [vm for vm in self._folders() if not vm.is_whole]

    def vm(self, name: str) -> LocalVm | None:
        """The VM or half-made folder of that name."""
        return self._look(self._vms / name) if is_vm_name(name) else None

    def images(self) -> list[CachedImage]:
        """One per digest, whatever number of tags lead to it."""
        return cached_images(self._images, bytes_in)

    def digest_of(self, image: ImageRef) -> str | None:
        """`repository@sha256:...` of a reference whose content is in the store."""
        return digest_linked(self._images, image)

    def mark(self, vm: str) -> Mark | None:
        """None when there is no VM, no mark, or a mark that cannot be read."""
        folder = self._vms / vm
        if not is_vm_name(vm) or folder.is_symlink():
            return None
        data = _read_bounded(folder / MARK_FILE, LONGEST_MARK_BYTES)
        try:
            return None if data is None else _decode_mark(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def write_mark(self, vm: str, mark: Mark, files: Files) -> None:
        folder = self._vms / vm
        if not is_vm_name(vm) or folder.is_symlink():
            raise VmMissing(f"{vm!r} is not a VM of this store, so it cannot be marked")
        try:
            files.write(folder / MARK_FILE, _encode(mark))
        except (FileNotFoundError, NotADirectoryError):
            raise VmMissing(f"VM {vm} is gone, so it cannot be marked") from None

    def has_pull_under_way(self) -> bool:
        """Whether something in `tmp` is locked as a pull locks it; the shared locks that protect a partial do not count."""
        with suppress(OSError), os.scandir(self.tmp) as entries:
            return any(_is_locked(entry.path) for entry in entries)
        return False

    def _folders(self) -> Iterator[LocalVm]:
        try:
            names = sorted(os.listdir(self._vms))
        except (FileNotFoundError, NotADirectoryError):
            return  # Tart makes it with the first VM
        for name in names:
            if is_vm_name(name) and (found := self._look(self._vms / name)):
                yield found

    def _look(self, folder: Path) -> LocalVm | None:
        try:
            about = folder.stat()
            if not stat.S_ISDIR(about.st_mode):
                return None
            is_whole = all((folder / file).exists() for file in VM_FILES)
            used_at = datetime.fromtimestamp(max(about.st_mtime, about.st_atime), UTC)
        except OSError:
            return None  # gone meanwhile, or a link to nothing
        return LocalVm(folder.name, folder, bytes_in(folder), used_at, self.mark(folder.name), is_whole)


def is_vm_name(name: str) -> bool:
    """A name that stays inside `vms/` and that a terminal can show."""
    return bool(name) and not name.startswith(".") and "/" not in name and name.isprintable()


def bytes_in(folder: Path) -> int:
    """What a folder occupies on disk. Links count as nothing; what vanishes meanwhile too."""
    total = 0
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    total += bytes_in(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    return total


def _read_bounded(path: Path, limit_bytes: int) -> bytes | None:
    """A regular file's content; None when it is anything else, too long or gone."""
    try:
        handle = os.open(path, _READ_ONLY)
    except (OSError, ValueError):
        return None
    with suppress(OSError), open(handle, "rb") as file:
        if stat.S_ISREG(os.fstat(handle).st_mode) and len(data := file.read(limit_bytes + 1)) <= limit_bytes:
            return data
    return None


def _is_locked(path: str) -> bool:
    try:
        handle = os.open(path, _READ_ONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False
