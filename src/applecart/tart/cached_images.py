"""The images in Tart's cache: `cache/OCIs/<host>/<repository>/`, in it a folder per digest and a link per tag.

`tart list` shows an image that was pulled by tag twice, once by tag and once by digest; here it is one, so nobody deletes it
twice. A link that leads anywhere but to a digest beside it is no tag.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.tart.images import DEFAULT_TAG, ImageRef, is_digest

EXPLICIT_FILE = ".explicitly-pulled"  # Tart's own: pulled by digest, so it stays without a tag
DEEPEST = 16  # parts of a repository's name; a registry allows 255 characters, nobody nests like that


class CachedImage(msgspec.Struct, frozen=True):
    name: str  # repository@sha256:...
    tags: tuple[str, ...]
    size_bytes: int
    used_at: datetime
    is_explicit: bool

    @property
    def repository(self) -> str:
        return self.name.partition("@")[0]


def cached_images(root: Path, size_of: Callable[[Path], int]) -> list[CachedImage]:
    found = [
        image
        for folder in _repositories(root, DEEPEST)
        for image in _in_repository(folder, folder.relative_to(root).as_posix(), size_of)
    ]
    return sorted(found, key=lambda image: image.name)


def digest_linked(root: Path, image: ImageRef) -> str | None:
    folder = root / image.host / image.repository
    digest = image.digest or _digest_of_tag(folder / (image.tag or DEFAULT_TAG))
    if digest is None or not _is_folder(folder / digest):
        return None
    return f"{image.repository_name}@{digest}"


def _repositories(folder: Path, depth: int) -> Iterator[Path]:
    """Every folder below that holds a digest."""
    children = [name for name in _names(folder) if _is_folder(folder / name)]
    if any(is_digest(name) for name in children):
        yield folder
    for name in children if depth else ():
        if not is_digest(name):
            yield from _repositories(folder / name, depth - 1)


def _in_repository(folder: Path, repository: str, size_of: Callable[[Path], int]) -> Iterator[CachedImage]:
    names = _names(folder)
    tags: dict[str, list[str]] = {}
    for name in names:
        if digest := _digest_of_tag(folder / name):
            tags.setdefault(digest, []).append(name)
    for name in names:
        if is_digest(name) and _is_folder(path := folder / name):
            with suppress(OSError):
                about = path.stat()
                used_at = datetime.fromtimestamp(max(about.st_atime, about.st_mtime), UTC)
                is_explicit = (path / EXPLICIT_FILE).exists()
                yield CachedImage(f"{repository}@{name}", tuple(tags.get(name, ())), size_of(path), used_at, is_explicit)


def _digest_of_tag(link: Path) -> str | None:
    try:
        target = Path(os.readlink(link))
    except (OSError, ValueError):
        return None
    # Tart links by full path. Only the name is taken from the link; the folder it is looked up in is the link's own.
    is_beside = target.parent in (Path("."), link.parent) or _same_folder(target.parent, link.parent)
    return target.name if is_digest(target.name) and is_beside else None


def _same_folder(one: Path, other: Path) -> bool:
    """macOS has two spellings of many a path (/var and /private/var)."""
    try:
        return one.is_absolute() and one.samefile(other)
    except OSError:
        return False


def _names(folder: Path) -> list[str]:
    """Anything but absence raises: an image that cannot be seen must not count as gone."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
