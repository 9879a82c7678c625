"""Ending a VM and taking it off the host.

Stopping asks the guest first, for as long as the Pod's grace period, then cuts its power, then kills the process that runs it:
the last one cannot hang, so a VM always ends (I5). Removing deletes only what is ours by mark, by the journal while it was
being cloned, or by the tombstone of a deletion that was cut short (I3), and is harmless to repeat.
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from applecart.errors import ApplecartError, Transient
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.booting import Booting
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.vm_name import holder
from applecart.observe.logs import logger
from applecart.tart.home import LocalVm
from applecart.tart.mac import Detached, RunEnd
from applecart.tart.marks import PodMark
from applecart.tart.running import running_vms
from applecart.tart.strays import end_strays

POWER_OFF_S = 30  # Tart kills the VM itself after this long
POWER_BUTTON = signal.SIGUSR2  # to `tart run`: the guest sees its power button pressed
FIRST_LOOK_S = 0.01  # one that had ended before says so at once
IMPATIENCE_S = 2.0  # between looks whether the grace period is still granted
GONE_AFTER_KILL_S = 10.0  # a killed process is gone at once unless the kernel is in trouble

NEVER_STARTED = (Stage.ACCEPTED, Stage.CLONING, Stage.CLONED, Stage.REMOVED)

log = logger(__name__)


class VmWillNotEnd(Transient):
    """A VM's process outlived being killed."""


@dataclass(frozen=True, slots=True)
class Stopping:
    host: Host

    async def stop(
        self, entry: JournalEntry, grace_s: float, is_cut_short: Callable[[], bool] = lambda: False
    ) -> RunEnd | None:
        """The VM does not run when this returns; how it ended, None when it was never started. `is_cut_short` is asked while
        its guest has the grace period: somebody may lose patience."""
        if entry.stage in NEVER_STARTED or (detached := await Booting(self.host).detached(entry)) is None:
            return None
        ended = asyncio.ensure_future(detached.wait())
        try:
            await asyncio.wait([ended], timeout=FIRST_LOOK_S)
            if not ended.done() and grace_s > 0 and await self._is_asked(detached):
                await self._grant(ended, grace_s, is_cut_short)
            return await self._end(entry, detached, ended)
        finally:
            ended.cancel()

    async def _grant(self, ended: "asyncio.Future[RunEnd]", grace_s: float, is_cut_short: Callable[[], bool]) -> None:
        until_s = self.host.clock.monotonic() + grace_s
        while not ended.done() and (left_s := until_s - self.host.clock.monotonic()) > 0 and not is_cut_short():
            await asyncio.wait([ended], timeout=min(left_s, IMPATIENCE_S))

    async def _end(self, entry: JournalEntry, detached: Detached, ended: "asyncio.Future[RunEnd]") -> RunEnd:
        if not ended.done():
            with suppress(ApplecartError):  # hung, or just ended: what comes next is sure
                await self.host.tart.stop(entry.vm, grace_s=POWER_OFF_S)
            await asyncio.wait([ended], timeout=GONE_AFTER_KILL_S)
        if not ended.done():
            log.warning("a VM did not stop when asked and is killed", vm=entry.vm, pid=detached.pid)
            await detached.signal(signal.SIGKILL)
            await asyncio.wait([ended], timeout=GONE_AFTER_KILL_S)
        if not ended.done():
            raise VmWillNotEnd(f"VM {entry.vm} (process {detached.pid}) still runs after it was killed")
        return ended.result()

    async def _is_asked(self, detached: Detached) -> bool:
        try:
            return await detached.signal(POWER_BUTTON)
        except ApplecartError as error:  # nobody can say whose process it is; `tart stop` knows its VM by name
            log.warning("a guest cannot be asked to shut down", pid=detached.pid, why=str(error))
            return False

    async def remove(self, entry: JournalEntry) -> JournalEntry:
        """Nothing of the VM is left when this returns. Call it only once the VM has ended."""
        host = self.host
        share = GuestShare(host.userdata, entry.vm, host.files)
        if host.caches is not None:
            await host.caches.finish(entry, entry.exit, share.status_folder)
        if holder(entry, host.journal) is not None:
            return self._removed(entry)  # it never had the name, so the VM and the files of that name are another Pod's (I3)
        if entry.is_half_made or host.goldens.tombstones.is_rest(entry.vm):
            # A clone that ends late would leave a VM behind, a delete would remove the next one of this name.
            await end_strays(host.mac, host.clock, host.tart.binary, entry.vm)
        found = host.home.vm(entry.vm)
        if found is not None and entry.may_have_vm and self._is_ours(found, entry):
            await host.goldens.tombstones.delete(host.tart, entry.vm)
        elif found is not None and found.name in running_vms(await host.mac.processes(), host.tart.binary):
            return self._removed(entry)  # somebody else's, and so are the files it is given (I7)
        await share.remove()
        return self._removed(entry)

    def _removed(self, entry: JournalEntry) -> JournalEntry:
        return self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.REMOVED))

    def _is_ours(self, found: LocalVm, entry: JournalEntry) -> bool:
        if isinstance(found.mark, PodMark):
            return found.mark.uid == entry.uid
        return found.mark is None and (entry.is_half_made or self.host.goldens.tombstones.is_rest(entry.vm))
