"""What a cache holds, as one SHA-1: the guest that publishes a cache and the host that fetches it must find the same.

The guest computes it with a shell pipeline, so every byte counts: names as raw bytes, sorted as bytes, one line each. Binaries
are named by their contents, so their names say it all; compiler results are told by path and size. Pure over a folder: it
reads names and sizes, follows no link, and opens no file, because the folder is whatever a guest left in its image.
"""

import os
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path

import msgspec

from applecart.kubelet.cache.walk import Walk

BINARY_FOLDERS = (b"Binaries", b"Manifests", b"ProjectDescriptionHelpers", b"Plugins")
CAS_FOLDER = b"CompilationCache.noindex"
CAS_PREFIX = b"~cas/"


class Inventory(msgspec.Struct, frozen=True):
    digest: str
    has_cas: bool  # it holds compiler results


def inventory(mount: Path, walk: Walk | None = None) -> Inventory:
    """Raises TooMuchToMeasure, and OSError for what cannot be read."""
    walk = walk or Walk()
    root = os.fsencode(mount)
    lines = list(_binaries(os.path.join(root, b"tuist"), walk))
    binaries = len(lines)
    lines.extend(_compiled(os.path.join(root, CAS_FOLDER), walk))
    has_cas = len(lines) > binaries
    lines.sort()
    found = sha1(usedforsecurity=False)
    for line in lines:
        found.update(line + b"\n")
    return Inventory(found.hexdigest(), has_cas)


def _binaries(tuist: bytes, walk: Walk) -> Iterator[bytes]:
    if not os.path.islink(tuist):
        for folder in BINARY_FOLDERS:
            for entry in walk.entries(os.path.join(tuist, folder)):
                if not entry.name.startswith(b"."):
                    yield walk.remember(folder + b"/" + entry.name)


def _compiled(top: bytes, walk: Walk) -> Iterator[bytes]:
    folders = [b""]
    while folders:
        inside = folders.pop()
        for entry in walk.entries(os.path.join(top, inside) if inside else top):
            path = os.path.join(inside, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append(walk.remember(path))
            elif entry.is_file(follow_symlinks=False) and not entry.name.startswith(b"."):
                size_bytes = entry.stat(follow_symlinks=False).st_size
                yield walk.remember(CAS_PREFIX + path + b"\t" + str(size_bytes).encode())
