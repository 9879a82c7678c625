"""Fetching an account's newer cache from the fleet, while its job runs: the next job on this host begins with it.

Never on a job's way: it has its own task, one per account, holds no lock while it downloads, and outlives the VM whose guest
told of the cache. An image is installed only when it holds what its digest says. Each reason to do nothing is told, because
doing nothing in silence once looked like working.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from applecart.errors import ApplecartError, DeadlineExceeded
from applecart.kubelet.cache.digest import Inventory
from applecart.kubelet.cache.download import Download
from applecart.kubelet.cache.head import ABSENT, Head, NoHead, read_head
from applecart.kubelet.cache.images import ImageBusy, Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.promotion import loses_cas
from applecart.kubelet.cache.room import Room, converge_holder
from applecart.kubelet.metrics import CacheMetrics
from applecart.observe.logs import logger
from applecart.tart.files import Files

HEAD_TRIES = 15  # the guest writes the head right after it got its job
HEAD_PAUSE_S = 1.0

GONE = NoHead("its VM is gone before it left a volume head")

log = logger(__name__)


class Guest(msgspec.Struct, frozen=True):
    """The one who tells of a cache."""

    account: str
    status: Path
    is_there: Callable[[], bool]  # in a VM that works for this account; later the folder may be another Pod's
    tell_unverifiable: Callable[[str], None]


class Converge:
    def __init__(
        self,
        layout: Layout,
        masters: Masters,
        images: Images,
        room: Room,
        download: Download,
        files: Files,
        metrics: CacheMetrics,
        is_ready: Callable[[], Awaitable[bool]],
        *,
        is_cas_on: bool,
    ) -> None:
        self._layout = layout
        self._masters = masters
        self._images = images
        self._room = room
        self._download = download
        self._files = files
        self._metrics = metrics
        self._is_ready = is_ready
        self._is_cas_on = is_cas_on
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetching: set[str] = set()  # accounts

    def begin(self, guest: Guest) -> None:
        task = asyncio.create_task(self._guarded(guest), name=f"converge {guest.account}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, guest: Guest) -> None:
        try:
            why = await self._converge(guest)
        except Exception as error:
            log.warning("a cache was not fetched", account=guest.account, exc_info=error)
        else:
            if why:
                log.info("a cache was not fetched", account=guest.account, why=why)

    async def _converge(self, guest: Guest) -> str:
        """Empty when the master is new, else why it is not."""
        account = guest.account
        head = await self._head(guest)
        if isinstance(head, NoHead):
            return head.because
        if not await self._is_ready():
            return "the disk for it is not there any more"
        local = self._masters.generation(account)
        if local >= head.generation:
            return f"generation {local} is here and the newest is {head.generation}"
        if account in self._fetching:
            return "it is being fetched already"
        if not self._room.reserve(converge_holder(account), sparing=account):
            return "there is no room for it"
        self._fetching.add(account)
        try:
            image = await self._fetched(account, head)
            return await self._install(guest, head, image)
        finally:
            self._fetching.discard(account)
            self._room.release(converge_holder(account))

    async def _head(self, guest: Guest) -> Head | NoHead:
        for _ in range(HEAD_TRIES):
            if not guest.is_there():
                return GONE
            head = read_head(guest.status)
            if head != ABSENT:
                return head
            await asyncio.sleep(HEAD_PAUSE_S)
        return ABSENT

    async def _fetched(self, account: str, head: Head) -> Path:
        folder = self._layout.partials(account)
        self._files.make_folder(folder)
        whole, partial = folder / f"{head.digest}.sparseimage", folder / f"{head.digest}.part"
        for other in sorted(folder.iterdir()):
            if other not in (whole, partial):
                self._files.remove(other)  # of a head that was overtaken
        if not whole.exists():
            if partial.exists():
                await self._take_over(account, partial)
            await self._download.fetch(head.url, partial, self._layout.converging / f"{account}.curl")
            self._files.move(partial, whole)
        return whole

    async def _take_over(self, account: str, partial: Path) -> None:
        """A curl of an agent that was killed may still write to the old file; two writers would make one that is wrong."""
        ours = partial.with_suffix(".resumed")
        try:
            await self._images.copy(partial, ours)
            self._files.move(ours, partial)
        except (ApplecartError, OSError) as error:
            log.warning("a download of a cache begins anew", account=account, exc_info=error)
            self._files.remove(partial)
        else:
            log.info("a download of a cache is resumed", account=account, file=partial.name)

    async def _install(self, guest: Guest, head: Head, image: Path) -> str:
        account = guest.account
        try:
            found = await self._images.measure(image)
        except (DeadlineExceeded, ImageBusy) as error:  # of a busy host; the image is whole for all we know
            return f"it cannot be verified now: {error}"
        except ApplecartError as error:
            self._files.remove(image)  # what cannot be attached now was cut or damaged, and stays so
            return f"it cannot be verified: {error}"
        why = self._refusal(account, head, found)
        if why:
            self._files.remove(image)
            if guest.is_there():
                guest.tell_unverifiable(head.digest)
            return why
        async with self._masters.lock(account):
            if not self._masters.install(account, image, head.generation, found.has_cas):
                self._files.remove(image)
                return "a newer one was installed meanwhile"
        self._metrics.converged()
        log.info("a newer cache was fetched", account=account, generation=head.generation)
        return ""

    def _refusal(self, account: str, head: Head, found: Inventory) -> str:
        """Reasons that allow the guest to publish its own in place of the head."""
        if found.digest != head.digest:
            return f"it holds {found.digest} and not {head.digest}, as the account's head says"
        if loses_cas(is_cas_on=self._is_cas_on, had_cas=self._masters.has_cas(account), has_cas=found.has_cas):
            return "it has lost the compiler results that the local one holds"
        return ""
