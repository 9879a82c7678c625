"""One Pod's VM from nothing to its end, in a task of its own: whatever it waits for delays no other Pod (I13).

It goes on from where the journal says, so a new agent continues what an old one began. A failure becomes trouble with a class,
a sentence and the time of the next attempt, all of it durable (I10); a class that waiting cannot cure ends the Pod. It never
speaks to the API about the Pod's status: it says `changed`, and the reconciler publishes.
"""

import asyncio
import re
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from applecart.api.pods import Pod
from applecart.api.reasons import EventType
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError
from applecart.kube.background import uncancelled
from applecart.kubelet.entry import JournalEntry, Stage, Trouble
from applecart.kubelet.journal import JournalFull
from applecart.kubelet.pods.booting import Booting
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.making import Making
from applecart.kubelet.pods.trouble import given_up, gives_up, next_trouble, wait_s
from applecart.kubelet.pods.watching import Watching
from applecart.kubelet.probes.runner import ProbeRunner
from applecart.observe.logs import logger
from applecart.tart.mac import Detached

JOURNAL_PAUSE_S = 10.0  # a full disk is cleared by the collector, or by a person

log = logger(__name__)


class Life:
    def __init__(self, host: Host, probes: ProbeRunner, pod: Pod, changed: Callable[[], None]) -> None:
        self.pod = pod
        self.watching: Watching | None = None
        self.doing = ""  # for people, while the VM is being made
        self._host = host
        self._probes = probes
        self._changed = changed
        self._clock_began = self._beginning_of_clock()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Idempotent: one task at a time, and none once the VM has ended."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live(), name=f"life of {self.pod.key}")

    def see(self, pod: Pod) -> None:
        """The Pod as the API shows it now."""
        self.pod = pod
        if self.watching is not None:
            self.watching.pod = pod

    async def stop(self) -> None:
        """Nothing of it runs in the agent when this returns; a VM that was started goes on."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])  # whoever is cut off while it waits here goes no further
            if not self._task.cancelled():
                self._task.result()

    async def _live(self) -> None:
        entry = self._entry()
        while entry.exit is None:
            try:
                await self._until_next_attempt(entry)
                entry = await uncancelled(self._advance(entry))
            except Exception as error:
                entry = await self._remembered(error)
            self._changed()

    async def _remembered(self, error: Exception) -> JournalEntry:
        """The entry with its new trouble. A journal that cannot be written is itself waited for: nothing may go on without."""
        failed = self._failed(self._entry(), error)
        said = str(error)
        with self._host.metrics.waiting("journal", self.pod.key):
            while True:
                try:
                    return self._host.journal.write(failed)
                except OSError as worse:
                    if str(worse) != said:
                        said = str(worse)
                        log.error("the journal cannot be written, so the Pod waits", object=self.pod, exc_info=worse)
                        self._tell_trouble(worse, said)
                await asyncio.sleep(JOURNAL_PAUSE_S)

    async def _advance(self, entry: JournalEntry) -> JournalEntry:
        """One stage further."""
        is_rebound = entry.stage in (Stage.BOOTING, Stage.RUNNING)
        detached: Detached | None = None
        if entry.stage in (Stage.ACCEPTED, Stage.CLONING):
            self._announce(entry)
            entry = await Making(self._host, self._tell).make(self.pod, self._entry())
            self._tell("starting the VM")
        elif entry.stage is Stage.CLONED:
            entry, detached = await Booting(self._host).start(self.pod, entry)
            self._changed()
        else:
            entry, detached = await Booting(self._host).find(entry)
            if detached is None:
                return self._judged(entry)
        if detached is None:
            return entry
        self.watching = Watching(self._host, self._probes, self.pod, self._changed, is_rebound)
        try:
            return await self.watching.until_ended(entry, detached)
        finally:
            self.watching = None

    def _announce(self, entry: JournalEntry) -> None:
        """Once per Pod: the gap between Scheduled and Running must be visible, and retries must not be counted again."""
        if entry.delay_observed:
            return
        host = self._host
        host.metrics.provision_started(self.pod)
        host.journal.write(msgspec.structs.replace(entry, delay_observed=True))
        creating = reasons.CREATING_VM
        host.events.event(
            self.pod, creating.type, creating.name, "making a Tart VM: cloned from a golden, pulled when it is new"
        )

    def _tell(self, doing: str) -> None:
        """Progress is worth a status every tenth of the way, not every percent."""
        if _tenths(doing) != _tenths(self.doing):
            self.doing = doing
            self._changed()

    async def _until_next_attempt(self, entry: JournalEntry) -> None:
        if entry.trouble is not None:
            await asyncio.sleep(wait_s(entry.trouble, self._host.clock.now()))

    def _failed(self, entry: JournalEntry, error: Exception) -> JournalEntry:
        """The entry after a failure that was told, to be written down."""
        host = self._host
        now = host.clock.now()
        trouble = next_trouble(self._moved_with_clock(entry.trouble), error, now, host.clock.random)
        is_made = entry.stage in (Stage.BOOTING, Stage.RUNNING)
        what = "a Pod's VM could not be followed to its end" if is_made else "a Pod's VM could not be made"
        about = log.bind(entry.key, vm=entry.vm, stage=entry.stage, failure=trouble.failure)
        if isinstance(error, ApplecartError):
            about.warning(what, exc_info=error)
        else:
            about.error(f"{what}, unexpectedly", exc_info=error)
        self._tell_trouble(error, trouble.sentence)
        if is_made or not gives_up(trouble, now):  # a VM that runs is not given up (I7)
            return msgspec.structs.replace(entry, trouble=trouble)
        return self._given_up(entry, trouble)

    def _judged(self, entry: JournalEntry) -> JournalEntry:
        """After a start that came to nothing: while its VM might have run it could not be given up."""
        trouble = self._moved_with_clock(entry.trouble)
        if trouble is not None and gives_up(trouble, self._host.clock.now()):
            return self._host.journal.write(self._given_up(entry, trouble))
        return self._host.journal.write(msgspec.structs.replace(entry, trouble=trouble))

    def _given_up(self, entry: JournalEntry, trouble: Trouble) -> JournalEntry:
        self._host.metrics.failed(self.pod, trouble.failure)
        exit = given_up(trouble, self._host.clock.now())
        return msgspec.structs.replace(entry, stage=Stage.ENDED, exit=exit, trouble=trouble)

    def _tell_trouble(self, error: Exception, sentence: str) -> None:
        reason = reasons.HOST_DISK_FULL if isinstance(error, JournalFull) else reasons.CREATE_FAILED
        self._host.events.event(self.pod, EventType.WARNING, reason.name, sentence)

    def _moved_with_clock(self, trouble: Trouble | None) -> Trouble | None:
        """Giving up needs time that passed: when the clock is set, the beginning of the trouble is set with it."""
        began, self._clock_began = self._clock_began, self._beginning_of_clock()
        return trouble and msgspec.structs.replace(trouble, since=trouble.since + (self._clock_began - began))

    def _beginning_of_clock(self) -> datetime:
        return self._host.clock.now() - timedelta(seconds=self._host.clock.monotonic())

    def _entry(self) -> JournalEntry:
        entry = self._host.journal.get(self.pod.uid)
        assert entry is not None  # the reconciler wrote it before it made this life
        return entry


def _tenths(doing: str) -> str:
    return re.sub(r"\d%$", "0%", doing)
