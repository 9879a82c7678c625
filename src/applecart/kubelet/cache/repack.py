"""Making masters small again: a sparse image keeps what its files once took, so an old one costs its cap whatever it holds.

The files of a copy are moved to a fresh image, which takes the master's place only if it holds the same, by its digest, and if
the master is still the one that was copied. Nothing waits for it: it holds the account's lock only to copy and to swap. macOS's
own `hdiutil compact` gives almost nothing back. What the image holds is a guest's making, so how long it may take is bounded.
"""

import asyncio
import os
from pathlib import Path

from applecart.kubelet.cache.budget import GIB
from applecart.kubelet.cache.images import ImageFailed, Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.records import image_id
from applecart.kubelet.cache.room import Room
from applecart.kubelet.cache.walk import Walk
from applecart.observe.logs import logger
from applecart.tart.files import Files

WORTH_LOOKING_AT = 0.5  # of the cap: a smaller image costs little
WORTH_DOING = 0.7  # a master that would keep more than this part of its size is left alone
DEADLINE_S = 1800.0  # of everything together; a full cache is copied in minutes

log = logger(__name__)


class Repack:
    def __init__(self, layout: Layout, masters: Masters, images: Images, room: Room, files: Files, cap_gib: int) -> None:
        self._layout = layout
        self._masters = masters
        self._images = images
        self._room = room
        self._files = files
        self._cap_gib = cap_gib
        self._looked_at: dict[str, int] = {}  # generation of each account's master that was looked at

    async def repack_one(self) -> str:
        """The account whose master became smaller; empty when none did. One at a time, because it reads and writes it all."""
        for account in self._masters.accounts:
            generation = self._masters.generation(account)
            if self._looked_at.get(account) == generation or self._size_bytes(account) < WORTH_LOOKING_AT * self._cap_gib * GIB:
                continue
            if not self._room.reserve(f"repack/{account}", evicts=False):
                return ""  # it needs room before it gives any back
            try:
                self._looked_at[account] = generation
                async with asyncio.timeout(DEADLINE_S):
                    return account if await self._repack(account) else ""
            except Exception as error:
                log.warning("a cache could not be repacked", account=account, exc_info=error)
                return ""
            finally:
                self._room.release(f"repack/{account}")
                for path in self._work_files(account):
                    self._files.remove(path)
        return ""

    async def _repack(self, account: str) -> bool:
        copy, fresh = self._work_files(account)
        async with self._masters.lock(account):
            before = image_id(self._layout.master(account))
            await self._images.copy(self._layout.master(account), copy)
        if before is None:
            return False
        found = await self._images.measure(copy)
        async with self._images.attached(copy) as source:
            names, used_bytes = await self._images.walk(_contents, source)
            if used_bytes > WORTH_DOING * before.size_bytes:
                return False
            await self._images.create(fresh, self._cap_gib)
            async with self._images.attached(fresh, is_read_only=False) as target:
                for name in names:
                    await self._images.copy_tree(source / name, target / name)
        if await self._images.measure(fresh) != found:
            raise ImageFailed("a repacked image holds something else than the one it was made from")
        async with self._masters.lock(account):
            if image_id(self._layout.master(account)) != before:
                return False  # replaced or evicted meanwhile
            self._masters.keep_age(account)
            self._files.move(fresh, self._layout.master(account))
        log.info("a cache was repacked", account=account, was_bytes=before.size_bytes, is_bytes=self._size_bytes(account))
        return True

    def _work_files(self, account: str) -> tuple[Path, Path]:
        """A uid never holds a dot, so these are no branch's."""
        return (
            self._layout.staging / f"repack.{account}.old.sparseimage",
            self._layout.staging / f"repack.{account}.sparseimage",
        )

    def _size_bytes(self, account: str) -> int:
        found = image_id(self._layout.master(account))
        return found.size_bytes if found else 0


def _contents(mount: Path, walk: Walk) -> tuple[list[str], int]:
    """What lies at the top and is the cache's own, and how much there is in all of it."""
    top = os.fsencode(mount)
    names: list[str] = []
    used_bytes, folders = 0, [top]
    while folders:
        folder = folders.pop()
        for entry in walk.entries(folder):
            is_folder = entry.is_dir(follow_symlinks=False)
            if folder == top:
                if entry.name.startswith(b".") or not (is_folder or entry.is_file(follow_symlinks=False)):
                    continue  # the file system's own notes, and links, which lead elsewhere
                names.append(os.fsdecode(walk.remember(entry.name)))
            if is_folder:
                folders.append(walk.remember(entry.path))
            else:
                used_bytes += entry.stat(follow_symlinks=False).st_size
    return sorted(names), used_bytes
