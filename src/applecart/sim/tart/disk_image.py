"""A simulated disk: which blocks it is made of, so that clones share them as APFS does.

`disk.img` is a small file: a line that lists blocks by name and size, and padding that grows with a pull, so that whoever
watches the file sees it grow. The space used on the simulated host is the sum over distinct blocks: deleting one of two disks
that share a block frees nothing.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

HEADER_BYTES = 8192  # of the line at least: room for a few dozen blocks
LONGEST_HEADER_BYTES = 4 << 20  # of a line; a foreign file has none
PADDING_BYTES = 4096  # a block of the real file system per step, so that allocated space grows too
GB = 10**9  # Tart counts in decimal gigabytes


class DiskImage(msgspec.Struct):
    id: str = ""  # of this copy; every clone gets a new one
    image: str = ""  # the image it came from, as `repository@digest`
    nominal_bytes: int = 50 * GB  # how large the guest believes it is
    boots: int = 0  # how often it was started; a used disk must never be started again
    blocks: dict[str, int] = {}

    @property
    def allocated_bytes(self) -> int:
        return sum(self.blocks.values())


_decode = msgspec.json.Decoder(DiskImage).decode


def read(path: Path | str) -> DiskImage:
    """A torn or foreign file reads as an empty disk; a missing one raises."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a file object takes three times as long, and all disks are read often
    try:
        start = os.read(handle, HEADER_BYTES)
        if b"\n" not in start:
            start += os.read(handle, LONGEST_HEADER_BYTES - HEADER_BYTES)
    finally:
        os.close(handle)
    try:
        return _decode(start.partition(b"\n")[0])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return DiskImage()


def write(path: Path, image: DiskImage, *, grow: bool = False) -> None:
    """In place, as a hypervisor writes."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.pwrite(handle, msgspec.json.encode(image).ljust(HEADER_BYTES - 1) + b"\n", 0)
        if grow:
            os.pwrite(handle, b"." * PADDING_BYTES, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def used_bytes(disks: Iterable[Path | str]) -> int:
    blocks: dict[str, int] = {}
    for path in disks:
        try:
            found = read(path).blocks
        except OSError:
            continue  # deleted while we looked
        for name, size in found.items():
            blocks[name] = max(size, blocks.get(name, 0))
    return sum(blocks.values())
