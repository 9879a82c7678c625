"""What a cache holds, as one SHA-1: the guest that publishes a cache and the host that fetches it must find the same.

The guest computes it with a shell pipeline, so every byte counts: names as raw bytes, sorted as bytes, one line each. Binaries
are named by their contents, so their names say it all; compiler results are told by path and size. Pure over a folder: it
reads names and sizes, follows no link, and opens no file, because the folder is whatever a guest left in its image.
"""

import os
import stat
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import msgspec

from applecart.errors import Permanent

BINARY_FOLDERS = (b"Binaries", b"Manifests", b"ProjectDescriptionHelpers", b"Plugins")
CAS_FOLDER = b"CompilationCache.noindex"
CAS_PREFIX = b"~cas/"
MOST_ENTRIES = 2_000_000  # a full cache has tens of thousands; more is a guest that wants us busy
EMPTY_DIGEST = "da39a3ee5e6b4b0d3255bfef95601890afd80709"


class TooMuchToMeasure(Permanent):
    """An image holds more files than any cache."""


class Inventory(msgspec.Struct, frozen=True):
    digest: str
    has_cas: bool  # it holds compiler results


def inventory(mount: Path) -> Inventory:
    root = os.fsencode(mount)
    binaries = list(_bounded(_binaries(os.path.join(root, b"tuist"))))
    compiled = list(_bounded(_compiled(os.path.join(root, CAS_FOLDER))))
    found = sha1(usedforsecurity=False)
    for line in sorted([*binaries, *compiled]):
        found.update(line + b"\n")
    return Inventory(found.hexdigest(), bool(compiled))


def _binaries(tuist: bytes) -> Iterator[bytes]:
    if _is_folder(tuist):
        for folder in BINARY_FOLDERS:
            for entry in _entries(os.path.join(tuist, folder)):
                if not entry.name.startswith(b"."):
                    yield folder + b"/" + entry.name


def _compiled(top: bytes) -> Iterator[bytes]:
    folders = [b""]
    while folders:
        inside = folders.pop()
        for entry in _entries(os.path.join(top, inside) if inside else top):
            path = os.path.join(inside, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(path)
            elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(b"."):
                size_bytes = entry.stat(follow_symlinks=False).st_size
                yield CAS_PREFIX + path + b"\t" + str(size_bytes).encode()


def _entries(folder: bytes) -> Iterator["os.DirEntry[bytes]"]:
    if _is_folder(folder):
        with os.scandir(folder) as found:
            yield from found


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _bounded(lines: Iterator[bytes]) -> Iterator[bytes]:
    for count, line in enumerate(lines):
        if count >= MOST_ENTRIES:
            raise TooMuchToMeasure(f"a cache image holds more than {MOST_ENTRIES} files and is not measured")
        yield line
