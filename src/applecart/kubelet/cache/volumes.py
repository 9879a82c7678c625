"""Per-account cache volumes: each VM gets a copy of its account's cache, and a job that did well may leave a newer one.

Which account a VM works for is known only once its job is committed, so a VM boots with an empty folder and the copy is put
there when the Pod is labelled. Everything here is a help and never a hindrance: no failure of it fails a Pod or holds up a
heartbeat, and a boot or a teardown waits for it no longer than a deadline. Copies of strangers' jobs begin empty and end as
nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from applecart.api import labels, names
from applecart.api.metric_names.label_values import CacheOutcome
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.errors import BadInput, Transient
from applecart.kubelet.cache.budget import GIB, split
from applecart.kubelet.cache.converge import Converge, Guest
from applecart.kubelet.cache.download import Download
from applecart.kubelet.cache.finishing import Finishing
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout, is_plain_file
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.materialize import Materialize
from applecart.kubelet.cache.mount import wait_for_mount
from applecart.kubelet.cache.promotion import read_offer, reason_to_discard
from applecart.kubelet.cache.ready import Ready
from applecart.kubelet.cache.records import Branch, Records, Step
from applecart.kubelet.cache.repack import Repack
from applecart.kubelet.cache.room import Room
from applecart.kubelet.cache.sweep import end_left, sweep
from applecart.kubelet.cache.tasks import Tasks, end
from applecart.kubelet.cache.trust import trusted_account
from applecart.kubelet.entry import Exit, JournalEntry, Stage
from applecart.kubelet.guest.share import STATUS_MODE, GuestShare
from applecart.kubelet.metrics import CacheMetrics
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.mac import Mac
from applecart.tart.run_options import Share

WATERMARK_EVERY_S = 300.0
ATTACH_DEADLINE_S = 45.0  # longer than a look whether the disk is there; a boot without a cache beats one that waits
FINISH_DEADLINE_S = 240.0  # a healthy end takes seconds; a Pod's teardown has 15 minutes for everything
LARGEST_DOWNLOAD = 1.01  # times the cap: an image that once used every block is a little larger than what it holds
SHARE_NAME = "cache"
MAX_BYTES_FILE = "cache-max-bytes"

log = logger(__name__)


class CacheSkipped(Transient):
    """A VM does without a cache, and why."""


class CacheVolumes:
    """`entries` are those of the journal: what an agent before us attached is kept as long as its Pod's entry says so."""

    def __init__(
        self,
        root: Path,
        mac: Mac,
        files: Files,
        clock: Clock,
        metrics: CacheMetrics,
        *,
        cap_gib: int,
        cas_gib: int,
        entries: Callable[[], Iterable[JournalEntry]],
    ) -> None:
        if any(word in str(root) for word in ":,"):  # they end a path in Tart's `--dir`
            raise BadInput(f"--runner-cache-root {root} cannot be shared with guests: use a path without ':' and ','")
        self._root = root
        self._mac = mac
        self._files = files
        self._metrics = metrics
        self._entries = entries
        self._budget = split(cap_gib, cas_gib)
        cas_bytes = self._budget.cas_bytes
        self._layout = layout = Layout(root)
        self._images = Images(mac, files, layout.mounts)
        self._records = Records(layout, files)
        self._masters = Masters(layout, self._images, files, clock)
        self._room = Room(layout, self._masters, mac, files, cap_gib * GIB)
        self._repack = Repack(layout, self._masters, self._images, self._room, files, cap_gib)
        self._finishing = Finishing(layout, self._records, self._masters, self._images, files, is_cas_on=cas_bytes > 0)
        download = Download(mac, files, clock, int(LARGEST_DOWNLOAD * cap_gib * GIB))
        self._converge = Converge(
            layout, self._masters, self._images, self._room, download, files, metrics, self._is_ready, is_cas_on=cas_bytes > 0
        )
        self._materialize = Materialize(
            layout, self._masters, self._images, self._records, files, metrics, cap_gib=cap_gib, cas_bytes=cas_bytes
        )
        self._branches: dict[str, Branch] = {}
        self._trusted: dict[str, str] = {}  # the account each Pod was last seen to work for
        self._skipped: set[str] = set()  # whose VMs have no share for a cache, whatever a start before this one left
        self._told: set[str] = set()  # whose guests this agent has told that the cache is ready
        self._tasks = Tasks()
        self._ready = Ready(layout, mac, files, self._settle)
        self._repacking: asyncio.Task[None] | None = None
        metrics.root(is_enabled=True, is_mounted=False, resident=0, free_bytes=0)

    # Before the VM boots

    async def attach(
        self, entry: JournalEntry, share: GuestShare, on_skipped: Callable[[str], None] = lambda sentence: None
    ) -> tuple[Share, ...]:
        """What the VM is given beside its own shares; nothing, and a sentence, when it must do without. Never raises."""
        try:
            async with asyncio.timeout(ATTACH_DEADLINE_S):
                await self._tasks.stop(entry.uid)
                return await self._attach(entry, share)
        except Exception as error:
            self._forget(entry.uid)
            self._skipped.add(entry.uid)
            log.warning("a VM starts without a cache volume", object=entry.key, vm=entry.vm, exc_info=error)
            why = str(error) or f"it was not ready within {ATTACH_DEADLINE_S:.0f} s"  # what a timeout raises has no words
            on_skipped(f"cache volume not attached: {why}")
            return ()

    async def _attach(self, entry: JournalEntry, share: GuestShare) -> tuple[Share, ...]:
        if not await self._is_ready():
            raise CacheSkipped(f"the disk for caches is not mounted at {self._root}")
        if not self._room.reserve(entry.uid):
            self._metrics.declined()
            raise CacheSkipped("there is no room for another cache volume")
        self._branches[entry.uid] = self._records.write(Branch(entry.uid, entry.vm))
        folder = self._layout.branch(entry.uid)
        await self._files.remove_aside(folder)
        self._files.make_folder(folder, STATUS_MODE)
        share.tell(MAX_BYTES_FILE, str(self._budget.binary_bytes).encode())
        self._told.discard(entry.uid)
        return (Share(SHARE_NAME, folder, read_only=False),)

    # While it runs

    def see(self, pod: Pod, entry: JournalEntry, share: GuestShare) -> None:
        """At every look at a Pod whose VM runs. Does not wait: what it begins goes on beside the caller."""
        if entry.uid not in self._branches and self._ready.is_settled:
            return
        self._trusted[entry.uid] = trusted_account(pod)
        self._forfeit_if_changed(entry.uid)
        if pod.labels.get(labels.RUNNER_ACCOUNT) and entry.uid not in self._tasks and entry.uid not in self._told:
            self._tasks.begin(entry.uid, self._give(pod, entry, share), f"cache of {entry.vm}")

    async def _give(self, pod: Pod, entry: JournalEntry, share: GuestShare) -> None:
        try:
            if not await self._is_ready() or (branch := self._branches.get(entry.uid)) is None:
                return
            if branch.step is Step.ATTACHED:
                branch = await self._materialize.materialize(branch, trusted_account(pod))
                self._branches[entry.uid] = branch
            if branch.step is Step.MATERIALIZED:
                self._materialize.tell(branch, share)
                self._told.add(entry.uid)
                if branch.account:
                    self._converge.begin(self._guest(entry.uid, branch.account, share))
        except Exception as error:
            log.warning("a job gets no cache volume", object=entry.key, vm=entry.vm, exc_info=error)

    def _forfeit_if_changed(self, uid: str) -> None:
        """A cache that was given for one account never becomes another's."""
        branch = self._branches.get(uid)
        if branch is None or branch.step is not Step.MATERIALIZED:
            return
        if branch.account in ("", self._trusted.get(uid, branch.account)):
            return
        log.error("a Pod changed its account or lost its trust; its cache is nobody's", uid=uid, was=branch.account)
        self._branches[uid] = branch = msgspec.structs.replace(branch, account="")
        with suppress(OSError):
            self._records.write(branch)

    def _guest(self, uid: str, account: str, share: GuestShare) -> Guest:
        def is_there() -> bool:
            branch = self._branches.get(uid)
            return branch is not None and branch.account == account

        return Guest(account, share.status_folder, is_there, lambda digest: self._materialize.tell_unverifiable(share, digest))

    # When it has ended

    async def finish(self, entry: JournalEntry, exit: Exit | None, status: Path) -> CacheOutcome:
        """After the VM's end and before its files go; without an exit it never ran. Never raises: what it could not do is
        done at a later look."""
        outcome = CacheOutcome.NONE
        try:
            async with asyncio.timeout(FINISH_DEADLINE_S):
                await self._tasks.stop(entry.uid)
                self._forfeit_if_changed(entry.uid)
                if await self._is_ready() and (branch := self._branches.get(entry.uid)) is not None:
                    outcome = await self._finish(branch, exit, status)
        except Exception as error:
            log.warning("a cache volume could not be ended", object=entry.key, vm=entry.vm, exc_info=error)
        self._forget(entry.uid)
        self._metrics.finished(outcome)
        return outcome

    async def _finish(self, branch: Branch, exit: Exit | None, status: Path) -> CacheOutcome:
        if not branch.is_decided:
            offer = read_offer(status)
            if branch.step is Step.MATERIALIZED:
                if offer.result is not None:
                    self._metrics.offered(offer.result)
                if offer.upload_s is not None:
                    self._metrics.uploaded(offer.upload_s)
                if offer.fill_percent is not None:
                    self._metrics.filled(offer.fill_percent)
            has_image = is_plain_file(self._layout.branch_image(branch.uid))
            because = reason_to_discard(branch, exit, offer, has_image=has_image)
            branch = self._branches[branch.uid] = self._finishing.decide(branch, because, offer.generation)
        return await self._finishing.carry_out(branch)

    # All the time

    def labels(self) -> dict[str, str]:
        """Of the Node. What was last seen, so that a heartbeat waits for no disk."""
        return {names.cache_master_label(int(account)): "true" for account in self._masters.accounts}

    async def run(self) -> None:
        """Work until cancelled."""
        await wait_for_mount(self._mac, self._root)
        while True:
            try:
                await self.look()
            except Exception as error:
                log.warning("the disk for caches could not be looked after", root=str(self._root), exc_info=error)
            if self._repacking is None or self._repacking.done():
                self._repacking = asyncio.create_task(self.repack(), name="repack caches")
            await asyncio.sleep(WATERMARK_EVERY_S)

    async def look(self) -> None:
        """One look at the disk: settle what an earlier agent left, keep room, count."""
        is_ready = await self._is_ready()
        if is_ready:
            await self._images.detach_left()
            await self._end_strays()
            self._room.keep_watermark()
        free_bytes = self._room.free_bytes() if is_ready else 0
        self._metrics.root(is_enabled=True, is_mounted=is_ready, resident=len(self._masters.accounts), free_bytes=free_bytes)

    async def repack(self) -> None:
        """Make one master small again. It keeps the disk busy, so it begins only while no job runs; nothing waits for it."""
        try:
            if await self._is_ready() and not any(branch.step is Step.MATERIALIZED for branch in self._branches.values()):
                await self._repack.repack_one()
        except Exception as error:
            log.warning("no cache could be repacked", root=str(self._root), exc_info=error)

    async def _end_strays(self) -> None:
        """What could not be ended in its time."""
        for branch in [branch for branch in self._records.read_all() if self._is_stray(branch.uid)]:
            if self._is_stray(branch.uid):  # still: its VM may be started anew while another one's is ended
                self._forget(branch.uid)
                task = self._tasks.begin(branch.uid, end_left(self._finishing, branch), f"left cache of {branch.vm}")
                await asyncio.gather(task, return_exceptions=True)

    def _is_stray(self, uid: str) -> bool:
        """Nobody will end it; also when it was taken over from an earlier agent just after its Pod's VM was removed."""
        return uid not in self._branches or uid not in self._uids()

    def _uids(self) -> set[str]:
        """Of Pods whose end is still to come."""
        return {entry.uid for entry in self._entries() if entry.stage is not Stage.REMOVED}

    async def aclose(self) -> None:
        """Nothing of it runs in the agent when this returns."""
        await self._tasks.aclose()
        await self._converge.aclose()
        await self._ready.aclose()
        if self._repacking is not None:
            await end(self._repacking)

    async def _is_ready(self) -> bool:
        if not await self._ready.is_ready():
            self._masters.forget()
            return False
        self._masters.look()
        return True

    async def _settle(self) -> None:
        """What an earlier agent left is taken over or removed."""
        kept = self._uids() | self._branches.keys()
        for branch in await sweep(self._layout, self._records, self._finishing, self._images, self._files, kept):
            if branch.uid not in self._skipped:
                self._branches.setdefault(branch.uid, branch)
                self._room.hold(branch.uid)

    def _forget(self, uid: str) -> None:
        self._branches.pop(uid, None)
        self._trusted.pop(uid, None)
        self._told.discard(uid)
        self._skipped.discard(uid)
        self._room.release(uid)
