"""Tart's home on disk: where VMs, images and half-made things are, and how Tart decides that one exists.

`vms/<name>/`, `cache/OCIs/<host>/<namespace>/<tag or digest>/`, `tmp/` as in Tart; `sim/` is the simulation's own. A folder is
a VM when its three files are there; one with fewer is half a VM, which is not the same as none. Everything is read from disk
each time: processes come and go.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.sim.tart import disk_image, refusals
from applecart.sim.tart.host_facts import HostFacts
from applecart.sim.tart.locks import Lock, is_locked
from applecart.sim.tart.remote_names import RemoteName, remote_name

CONFIG, DISK, NVRAM, MANIFEST = "config.json", "disk.img", "nvram.bin", "manifest.json"
EXPLICIT = ".explicitly-pulled"
LONGEST_NAME_BYTES = 255  # of a file


class VmConfig(msgspec.Struct, kw_only=True):
    """The fields of Tart's config.json that anything depends on."""

    version: int = 1
    os: str = "darwin"
    arch: str = "arm64"
    ecid: str = ""
    serial: str = ""  # ours: Tart draws a new hardware identity inside `ecid`
    cpu: int = msgspec.field(default=4, name="cpuCount")
    least_cpu: int = msgspec.field(default=4, name="cpuCountMin")
    memory: int = msgspec.field(default=8 << 30, name="memorySize")
    least_memory: int = msgspec.field(default=4 << 30, name="memorySizeMin")
    mac_address: str = msgspec.field(default="", name="macAddress")
    display: dict[str, int] = msgspec.field(default_factory=lambda: {"width": 1024, "height": 768})


class Store:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.vms = home / "vms"
        self.images = home / "cache" / "OCIs"
        self.tmp = home / "tmp"
        self.sim = home / "sim"
        for folder in (self.vms, self.images, self.tmp, self.sim):
            folder.mkdir(parents=True, exist_ok=True)

    def local(self, name: str) -> Path:
        """The folder of a local VM, there or not."""
        if not name or "/" in name or "\0" in name or name in (".", "..") or len(os.fsencode(name)) > LONGEST_NAME_BYTES:
            raise refusals.missing(name)
        return self.vms / name

    def remote(self, name: RemoteName) -> Path:
        return self.images / name.host / name.namespace / name.reference

    def open(self, name: str) -> Path:
        """The folder of a VM or image that exists."""
        remote = remote_name(name)
        return _whole(name, self.remote(remote) if remote else self.local(name))

    def open_local(self, name: str) -> Path:
        return _whole(name, self.local(name))

    def local_names(self) -> list[str]:
        return sorted(folder.name for folder in self.vms.iterdir() if exists(folder))

    def running_names(self) -> list[str]:
        return [name for name in self.local_names() if self.is_running(name)]

    def is_running(self, name: str) -> bool:
        return is_locked(self.vms / name / CONFIG)

    def cached(self) -> Iterator[tuple[str, Path]]:
        """Every row that `list` shows: tags are links to digests."""
        for parent, folders, _ in os.walk(self.images):
            for name in sorted(folders):
                folder = Path(parent) / name
                if exists(folder):
                    where = Path(parent).relative_to(self.images)
                    yield f"{where}{':' if folder.is_symlink() else '@'}{name}", folder

    def free_bytes(self) -> int:
        facts = HostFacts.read(self.sim)
        return max(0, facts.disk_bytes - facts.other_bytes - disk_image.used_bytes(self._disks()))

    def _disks(self) -> Iterator[str]:
        for folder in (self.vms, self.tmp):
            for name in os.listdir(folder):
                yield f"{folder}/{name}/{DISK}"
        yield from _disks_below(str(self.images))

    def clean_tmp(self) -> None:
        """What every command but pull and clone does first."""
        for entry in self.tmp.iterdir():
            with Lock(entry) as lock:
                if lock.try_take():
                    remove(entry)

    def drop_unreferenced(self) -> None:
        """After a tag moved or went: broken links go, and images that no tag leads to unless pulled by digest."""
        held: set[Path] = set()
        digests: list[Path] = []
        for parent, folders, files in os.walk(self.images):
            for name in (*folders, *files):
                path = Path(parent) / name
                if path.is_symlink() and not path.exists():
                    path.unlink()
                elif path.is_symlink():
                    held.add(path.resolve())
                elif exists(path):
                    digests.append(path)
        for path in digests:
            if path.resolve() not in held and not (path / EXPLICIT).exists():
                remove(path)

    def others(self, name: str) -> Iterator[VmConfig]:
        """The configurations of all other local VMs."""
        for other in self.local_names():
            if other != name:
                with suppress(OSError, refusals.Refused):
                    yield read_config(self.vms / other)


def _disks_below(folder: str) -> Iterator[str]:
    """A tag is a link, which it does not follow."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # deleted while we looked
        return
    for entry in entries:
        if entry.name == DISK:
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            yield from _disks_below(entry.path)


def exists(folder: Path) -> bool:
    return all((folder / file).exists() for file in (CONFIG, DISK, NVRAM))


def _whole(name: str, folder: Path) -> Path:
    if not folder.exists():
        raise refusals.missing(name)
    if not exists(folder):
        raise refusals.missing_files(CONFIG, DISK, NVRAM)
    return folder


def read_config(folder: Path) -> VmConfig:
    try:
        return msgspec.json.decode((folder / CONFIG).read_bytes(), type=VmConfig)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise refusals.unreadable(CONFIG, str(error)) from None


def write_config(folder: Path, config: VmConfig) -> None:
    """In place: the lock of a running VM is on this very file."""
    (folder / CONFIG).write_bytes(msgspec.json.encode(config))


def touch(folder: Path, at: datetime) -> None:
    """The time of the last use, which `list` shows and pruning goes by.

    Readers move a folder's own times, and by the real clock; those of its nvram are nobody else's.
    """
    for path in (folder / NVRAM, folder):
        stamp(path, at)


def accessed_at(folder: Path) -> datetime:
    return datetime.fromtimestamp((folder / NVRAM).stat().st_mtime, UTC)


def stamp(path: Path, at: datetime) -> None:
    """A file written on virtual time carries virtual time."""
    os.utime(path, (at.timestamp(), at.timestamp()))


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
