"""Fetching an account's newer cache from the fleet, while its job runs: the next job on this host begins with it.

Never on a job's way: it has its own task, one per account, holds no lock while it downloads, and outlives the VM whose guest
told of the cache. An image is installed only when it holds what its digest says. Each reason to do nothing is told, because
doing nothing in silence once looked like working.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from applecart.errors import ApplecartError
from applecart.kubelet.cache.digest import Inventory
from applecart.kubelet.cache.download import Download
from applecart.kubelet.cache.head import ABSENT, Head, NoHead, read_head
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.promotion import loses_cas
from applecart.kubelet.cache.room import Room, converge_holder
from applecart.kubelet.metrics import CacheMetrics
from applecart.observe.logs import logger
from applecart.tart.files import Files

HEAD_TRIES = 15  # the guest writes the head right after it got its job
HEAD_PAUSE_S = 1.0

log = logger(__name__)


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
        self._is_cas_on = is_cas_on
        self._tasks: set[asyncio.Task[None]] = set()
        self._fetching: set[str] = set()  # accounts

    def begin(self, account: str, status: Path, tell_unverifiable: Callable[[str], None]) -> None:
        task = asyncio.create_task(self._guarded(account, status, tell_unverifiable), name=f"converge {account}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, account: str, status: Path, tell_unverifiable: Callable[[str], None]) -> None:
        try:
            why = await self._converge(account, status, tell_unverifiable)
        except Exception as error:
            log.warning("a cache was not fetched", account=account, exc_info=error)
        else:
            if why:
                log.info("a cache was not fetched", account=account, why=why)

    async def _converge(self, account: str, status: Path, tell_unverifiable: Callable[[str], None]) -> str:
        """Empty when the master is new, else why it is not."""
        head = await self._head(status)
        if isinstance(head, NoHead):
            return head.because
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
            return await self._install(account, head, image, tell_unverifiable)
        finally:
            self._fetching.discard(account)
            self._room.release(converge_holder(account))

    async def _head(self, status: Path) -> Head | NoHead:
        for _ in range(HEAD_TRIES):
            head = read_head(status)
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

    async def _install(self, account: str, head: Head, image: Path, tell_unverifiable: Callable[[str], None]) -> str:
        try:
            found = await self._images.measure(image)
        except ApplecartError as error:
            self._files.remove(image)  # what cannot be attached now was cut or damaged, and stays so
            return f"it cannot be verified: {error}"
        why = self._refusal(account, head, found)
        if why:
            self._files.remove(image)
            tell_unverifiable(head.digest)
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
