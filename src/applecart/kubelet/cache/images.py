"""Cache images through the programs of macOS: made, cloned and looked into, each with a deadline (I13).

An image is made where no guest reaches and moved to its place when it is whole, so whatever is found under its own name is a
whole one. Looking into one attaches it read-only and always detaches it again, also when attaching seemed to fail; what could
not be detached then is tried again later.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

from applecart.errors import ApplecartError, DeadlineExceeded, Transient
from applecart.kubelet.cache.digest import Inventory, inventory
from applecart.kubelet.cache.walk import Walk, walked
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.mac import Mac

HELPER_DEADLINE_S = 120.0  # of cp, hdiutil create and attach; each takes a second on a healthy disk
DETACH_DEADLINE_S = 60.0
COPY_DEADLINE_S = 1200.0  # of a whole cache, file by file
QUICK_DEADLINE_S = 30.0  # of programs that touch one inode
VOLUME_NAME = "TuistCache"
GUEST_MODE = "0666"  # the guest's user is another one than ours

BUSY = ("resource busy", "resource temporarily unavailable")  # what hdiutil says of images that may well be whole

T = TypeVar("T")

log = logger(__name__)


class ImageFailed(Transient):
    """A program that works on images ended with an error."""


class ImageBusy(ImageFailed):
    """It ended with an error that says nothing about the image."""


class Images:
    def __init__(self, mac: Mac, files: Files, mounts: Path) -> None:
        self._mac = mac
        self._files = files
        self._mounts = mounts
        self._in_use: set[Path] = set()  # mounts

    async def copy(self, source: Path, target: Path) -> None:
        """One that shares its blocks: as quick for 20 GiB as for one."""
        self._files.remove(target)
        await self._run("/bin/cp", "-c", str(source), str(target))

    async def clone(self, source: Path, target: Path) -> None:
        """A copy for a guest."""
        await self.copy(source, target)
        await self._open_to_guests(target)

    async def create(self, target: Path, cap_gib: int) -> None:
        self._files.remove(target)
        words = ("-size", f"{cap_gib}g", "-type", "SPARSE", "-fs", "APFS", "-volname", VOLUME_NAME, str(target))
        await self._run("/usr/bin/hdiutil", "create", *words)
        await self._open_to_guests(target)

    async def measure(self, image: Path) -> Inventory:
        async with self.attached(image) as mount:
            return await self.walk(inventory, mount)

    async def walk(self, what: Callable[[Path, Walk], T], mount: Path) -> T:
        """Something about the contents of an attached image."""
        try:
            return await walked(what, mount)
        except TimeoutError:
            raise DeadlineExceeded(f"what {mount.name} holds could not be read in time") from None
        except OSError as error:
            raise ImageFailed(f"what {mount.name} holds cannot be read: {error.strerror or error}") from None

    async def copy_tree(self, source: Path, target: Path) -> None:
        await self._run("/usr/bin/ditto", str(source), str(target), deadline_s=COPY_DEADLINE_S)

    @asynccontextmanager
    async def attached(self, image: Path, *, is_read_only: bool = True) -> AsyncIterator[Path]:
        """Its contents, as long as the block runs."""
        if not self._mounts.is_dir():  # never made here: on the boot disk it would stand where the disk is to be mounted
            raise ImageFailed(f"{image.name} cannot be attached: the disk for caches is gone")
        mount = next(path for number in count() if not (path := self._mounts / f"{image.stem}-{number}").exists())
        self._files.make_folder(mount)
        self._in_use.add(mount)
        # Not quiet: that closes its stderr too, and why it failed is what tells a busy host from a broken image.
        options = ("-owners", "off", "-nobrowse", "-noverify", "-mountpoint", str(mount))
        try:
            await self._run("/usr/bin/hdiutil", "attach", *(["-readonly"] if is_read_only else []), *options, str(image))
            yield mount
        finally:
            try:
                await self._detach(mount)
            finally:
                self._in_use.discard(mount)

    async def detach_left(self) -> None:
        """What an agent before us left attached, and what could not be detached in its time: it keeps the room of its image."""
        with suppress(FileNotFoundError):
            left = [mount for mount in sorted(self._mounts.iterdir()) if mount not in self._in_use]
            await asyncio.gather(*map(self._detach, left))

    async def _detach(self, mount: Path) -> None:
        """Nothing is attached there when this returns, as far as we can tell."""
        with suppress(ApplecartError):
            await self._run("/usr/bin/hdiutil", "detach", str(mount), "-force", deadline_s=DETACH_DEADLINE_S)
        try:
            with os.scandir(mount) as inside:
                why = "it still holds something" if next(inside, None) else ""
            if not why:
                self._files.remove(mount)
        except OSError as error:
            why = str(error.strerror)
        if why:  # what is in an attached image is a copy: nothing is lost here, and removing it could take for ever
            log.warning("an image stays attached", mount=str(mount), why=why)

    async def _open_to_guests(self, image: Path) -> None:
        await self._run("/bin/chmod", GUEST_MODE, str(image), deadline_s=QUICK_DEADLINE_S)

    async def _run(self, *argv: str, deadline_s: float = HELPER_DEADLINE_S) -> None:
        ended = await self._mac.run(argv, deadline_s=deadline_s)
        if ended.code:
            said = ended.err[-300:].decode("utf-8", "replace").strip()
            kind = ImageBusy if any(word in said.lower() for word in BUSY) else ImageFailed
            raise kind(f"{' '.join(argv[:2])} ended with code {ended.code}: {said}")
