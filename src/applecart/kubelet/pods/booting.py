"""Starting a VM, once; and finding one again that an earlier agent started.

A run folder is taken in the journal before the VM starts and is used once, ever: the supervisor refuses to start anything in
a folder that is taken. So an agent that died in between either finds its VM or makes sure that it never starts (I4).
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from applecart.api.pods import Pod
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError
from applecart.kubelet.entry import JournalEntry, Stage
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.pods.host import Host
from applecart.tart.mac import Detached, Process, RunEnd
from applecart.tart.run_options import RunOptions, Share
from applecart.tart.running import running_vms

STRAY_POLL_S = 5.0  # of a VM whose run folder is lost; listing processes costs a fork


@dataclass(frozen=True, slots=True)
class Booting:
    host: Host

    async def start(self, pod: Pod, entry: JournalEntry) -> tuple[JournalEntry, Detached]:
        """The VM of a CLONED entry, started."""
        host = self.host
        await host.gui.ensure()
        self._rotate_log(entry)
        entry = host.journal.write(
            msgspec.structs.replace(entry, stage=Stage.BOOTING, run=entry.run + 1, started_at=host.clock.now())
        )
        folder = host.journal.run_folder(entry)
        host.files.make_folder(folder)
        options = RunOptions(shares=await self._shares(pod, entry), is_vnc=host.has_screen(pod))
        detached = await host.tart.run(entry.vm, options, folder=folder, log=host.logs / f"{entry.vm}.log")
        # The way here may have been long: a false start is known by how soon it ended.
        return self._note(msgspec.structs.replace(entry, stage=Stage.RUNNING, started_at=host.clock.now())), detached

    async def _shares(self, pod: Pod, entry: JournalEntry) -> tuple[Share, ...]:
        share = GuestShare(self.host.userdata, entry.vm, self.host.files)
        if self.host.caches is None:
            return share.shares()
        skipped = reasons.CACHE_VOLUME_SKIPPED

        def tell(sentence: str) -> None:
            self.host.events.event(pod, skipped.type, skipped.name, sentence)

        return (*share.shares(), *await self.host.caches.attach(entry, share, on_skipped=tell))

    async def find(self, entry: JournalEntry) -> tuple[JournalEntry, Detached | None]:
        """What became of a VM that was being started. Without a Detached it never was, and the entry is CLONED again."""
        detached = await self.detached(entry)
        if detached is not None:
            return self._note(msgspec.structs.replace(entry, stage=Stage.RUNNING)), detached
        drop_run(self.host, entry)
        return self.host.journal.write(msgspec.structs.replace(entry, stage=Stage.CLONED, started_at=None)), None

    def _note(self, entry: JournalEntry) -> JournalEntry:
        """That a VM runs. On a full disk BOOTING is enough to find it again, and only who watches it can see it end."""
        with suppress(OSError):
            self.host.journal.write(entry)
        return entry

    async def detached(self, entry: JournalEntry) -> Detached | None:
        """The program that runs, or ran, the VM. None when it was never started, and then it never will be."""
        if entry.run:
            folder = self.host.journal.run_folder(entry)
            self.host.files.make_folder(folder)  # the agent may have died before it did
            found = await self.host.mac.adopt(folder)
            if found is not None or entry.stage is not Stage.RUNNING:
                return found
        if not entry.is_marked:
            return None  # whatever runs under our name is not ours (I3)
        running = running_vms(await self.host.mac.processes(), self.host.tart.binary).get(entry.vm)
        return StrayVm(self.host, entry.vm, running.pid if running else None)

    def _rotate_log(self, entry: JournalEntry) -> None:
        """A log speaks of one start, which is judged by its words; the one before it is kept."""
        log = self.host.logs / f"{entry.vm}.log"
        if log.exists():
            self.host.files.move(log, log.with_suffix(".log.1"))


def drop_run(host: Host, entry: JournalEntry) -> None:
    """The folder of a start that came to nothing; its number is never given again, so nothing can start in it later."""
    with suppress(OSError):  # it goes with the Pod at the latest
        host.files.remove(host.journal.run_folder(entry))


@dataclass(frozen=True, slots=True)
class StrayVm:
    """A VM that was started and whose run folder, or whole journal, is lost: all that can be seen of it is its process."""

    host: Host
    vm: str
    pid: int | None = None

    async def wait(self) -> RunEnd:
        while True:
            if not await self._runs():
                return RunEnd(None, None)
            await asyncio.sleep(STRAY_POLL_S)

    async def signal(self, number: int) -> bool:
        found = (await self._running()).get(self.vm)
        return found is not None and self.host.mac.signal(found.pid, number)

    async def _running(self) -> dict[str, Process]:
        return running_vms(await self.host.mac.processes(), self.host.tart.binary)

    async def _runs(self) -> bool:
        try:
            return self.vm in await self._running()
        except ApplecartError:
            return True  # not seen is not gone
