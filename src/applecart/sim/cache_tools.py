"""The disk for caches of a simulated Mac, and the programs that work on it: cp, chmod, stat, hdiutil, ditto, curl.

A simulated disk image is a sparse file: what it holds as JSON at its beginning, and the length of a real one. It is whole when
its length is the one it names, so a copy or a download that was cut off shows. `cp` follows links, as the real one does.
Clones share their blocks, so images with the same contents are counted once.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from applecart.sim.tart.refusals import Refused
from applecart.sim.tart.suffering import suffer
from applecart.sim.tart.world import World
from applecart.tart.mac import Disk

NAMES = frozenset({"cp", "chmod", "stat", "hdiutil", "curl", "ditto"})
BOOT_DEVICE, CACHE_DEVICE = 16777230, 16777242
EMPTY_BYTES = 40 << 20  # of a fresh sparse image
LONGEST_HEADER_BYTES = 1 << 20
COPY_S = 0.05
TRANSFER_STEP_S = 1.0
SPOILT = b"bytes of two writers"
CURL_HTTP, CURL_PARTIAL, CURL_NO_RANGE, CURL_BAD_PROTOCOL = 22, 18, 33, 1


class Image(msgspec.Struct, frozen=True):
    """What a sparse image holds: files by path, with their sizes."""

    files: dict[str, int] = {}
    size_bytes: int = EMPTY_BYTES
    volume: str = "TuistCache"


@dataclass
class Remote:
    """An image that curl can fetch."""

    image: Image
    bytes_per_s: int = 100 << 20
    serves_ranges: bool = True
    status: int = 200
    breaks_at: list[int] = field(default_factory=list)  # how many bytes arrive in each attempt before the connection breaks
    asked_from: list[int] = field(default_factory=list)  # the first byte of every attempt


@dataclass
class CacheDisk:
    root: Path | None = None
    is_mounted: bool = False
    quota_bytes: int = 80 << 30
    other_bytes: int = 0
    remotes: dict[str, Remote] = field(default_factory=dict)
    attached: dict[str, Path] = field(default_factory=dict)  # images by mount point
    _writable: set[str] = field(default_factory=set)  # mount points whose image is written when it is detached
    _writers: dict[int, list[object]] = field(default_factory=dict)  # the curls that write to an inode now

    def mount(self, root: Path, quota_bytes: int = 80 << 30) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root, self.is_mounted, self.quota_bytes = root, True, quota_bytes

    def holds(self, path: Path) -> bool:
        return self.is_mounted and self.root is not None and path.is_relative_to(self.root)

    def disk(self) -> Disk:
        used: dict[str, int] = {}
        for folder, _, names in os.walk(self.root or ""):
            for name in names:
                path = Path(folder) / name
                if path.suffix in (".sparseimage", ".part") and not path.is_symlink():
                    length = path.stat().st_size
                    used[f"{length}/{_header(path)!r}"] = length
        return Disk(self.quota_bytes, max(0, self.quota_bytes - self.other_bytes - sum(used.values())))

    async def run(self, argv: Sequence[str], world: World) -> int:
        name = os.path.basename(argv[0])
        words = list(argv[1:])
        try:
            await suffer(world, name, words, "before")
            code = await self._do(name, words, world)
            await suffer(world, name, words, "after")
        except Refused as refused:
            await world.streams.err(refused.text.encode(errors="replace") + b"\n")
            return refused.code
        except OSError as error:
            await world.streams.err(f"{name}: {error.filename}: {error.strerror}\n".encode(errors="replace"))
            return 1
        return code

    async def _do(self, name: str, words: list[str], world: World) -> int:
        match name, words:
            case "cp", ["-c", source, target]:
                await _clone(Path(source), Path(target))
            case "chmod", [mode, path]:
                os.chmod(path, int(mode, 8))
            case "stat", ["-f", "%d", *paths]:
                await world.say("\n".join(str(self._device(Path(path))) for path in paths))
            case "hdiutil", ["create", *_, target]:
                await asyncio.sleep(COPY_S)
                _create(Path(target))
            case "hdiutil", ["attach", *options, image]:
                await asyncio.sleep(COPY_S)
                self._attach(Path(image), Path(options[options.index("-mountpoint") + 1]), "-readonly" in options)
            case "ditto", [source, target]:
                await asyncio.sleep(COPY_S)
                _copy_tree(Path(source), Path(target))
            case "hdiutil", ["detach", mount, *_]:
                self._detach(Path(mount))
            case "curl", _:
                return await self._curl(words, world)
            case _:
                raise Refused(64, f"usage: {name}: {' '.join(words)}")
        return 0

    def _device(self, path: Path) -> int:
        path.stat()
        return CACHE_DEVICE if self.holds(path) else BOOT_DEVICE

    def _attach(self, image: Path, mount: Path, is_read_only: bool) -> None:
        found = read_image(image)
        if found is None:
            raise Refused(1, "hdiutil: attach failed - image not recognized")
        self.attached[str(mount)] = image
        self._writable |= set() if is_read_only else {str(mount)}
        for name, size_bytes in found.files.items():
            path = mount / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.truncate(size_bytes)

    def _detach(self, mount: Path) -> None:
        image = self.attached.pop(str(mount), None)
        if image is None:
            raise Refused(1, "hdiutil: detach failed - No such file or directory")
        if str(mount) in self._writable:
            self._writable.discard(str(mount))
            files = {str(path.relative_to(mount)): path.stat().st_size for path in mount.rglob("*") if path.is_file()}
            write_image(image, Image(files, EMPTY_BYTES + sum(files.values())))
        for path in mount.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    async def _curl(self, words: list[str], world: World) -> int:
        target = Path(words[words.index("-o") + 1])
        url = _configured_url(Path(words[words.index("-K") + 1]))
        if not url.startswith("https://"):
            return CURL_BAD_PROTOCOL
        remote = self.remotes.get(url)
        begin = _length(target) if "-C" in words else 0
        status = 404 if remote is None else remote.status
        if remote is not None and status == 200 and begin and begin >= remote.image.size_bytes:
            status = 416
        if "-w" in words and status != 200:
            await world.streams.out(str(status).encode())
        if remote is None or status != 200:
            await world.streams.err(f"curl: (22) The requested URL returned error: {status}\n".encode())
            return CURL_HTTP
        remote.asked_from.append(begin)
        if begin and not remote.serves_ranges:
            await world.streams.err(b"curl: (33) HTTP server doesn't seem to support byte ranges. Cannot resume.\n")
            return CURL_NO_RANGE
        return await _transfer(remote, target, begin, self._writers, world)


async def _transfer(remote: Remote, target: Path, begin: int, writers: dict[int, list[object]], world: World) -> int:
    end = remote.image.size_bytes
    stop = min(end, begin + remote.breaks_at.pop(0)) if remote.breaks_at else end
    header = msgspec.json.encode(remote.image)
    have = begin
    with _opened(target) as file:
        inode = os.fstat(file.fileno()).st_ino
        here = writers.setdefault(inode, [])
        here.append(file)
        try:
            while have < stop:
                # What was there stays as it is: nobody who goes on behind two writers mends what they wrote.
                is_spoilt = len(here) > 1 or (have > 0 and os.pread(file.fileno(), len(header), 0) != header)
                have = min(stop, have + int(remote.bytes_per_s * TRANSFER_STEP_S))
                file.seek(0)
                file.write(SPOILT if is_spoilt else header)
                file.truncate(max(have, len(header)))
                await asyncio.sleep(TRANSFER_STEP_S)
        finally:
            here.remove(file)
            if not here:
                del writers[inode]
    if stop < end:
        await world.streams.err(f"curl: (18) transfer closed with {end - stop} bytes remaining to read\n".encode())
        return CURL_PARTIAL
    await world.streams.out(b"200")
    return 0


def _opened(path: Path) -> BinaryIO:
    """Unbuffered: whoever looks at the file sees what was written."""
    return cast(BinaryIO, path.open("r+b" if path.exists() else "w+b", buffering=0))


def is_known(argv: Sequence[str]) -> bool:
    return os.path.basename(argv[0]) in NAMES


def write_image(path: Path, image: Image, length: int | None = None) -> None:
    """As far as it got; all of it when no length is given."""
    header = msgspec.json.encode(image)
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(header)
        file.truncate(max(len(header), image.size_bytes if length is None else length))


def read_image(path: Path) -> Image | None:
    """None for a file that is no whole image."""
    try:
        found = msgspec.json.decode(_header(path), type=Image)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if path.stat().st_size == max(found.size_bytes, len(msgspec.json.encode(found))) else None


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(LONGEST_HEADER_BYTES).partition(b"\0")[0]


def _configured_url(config: Path) -> str:
    found = re.fullmatch(r'url = "([^"\\\n]*)"\n', config.read_text())
    return found[1] if found else ""


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _create(target: Path) -> None:
    if os.path.lexists(target):
        raise Refused(1, "hdiutil: create failed - File exists")
    write_image(target, Image())


def _copy_tree(source: Path, target: Path) -> None:
    """Sparse files stay sparse."""
    for path in [source, *source.rglob("*")]:
        there = target / path.relative_to(source)
        if path.is_dir():
            there.mkdir(parents=True, exist_ok=True)
        else:
            with there.open("wb") as file:
                file.truncate(path.stat().st_size)


async def _clone(source: Path, target: Path) -> None:
    header, length = _header(source), _length(source)
    with target.open("wb") as file:
        file.write(header)
        file.truncate(max(len(header), length // 2))
        file.flush()
        await asyncio.sleep(COPY_S)
        file.truncate(length)
