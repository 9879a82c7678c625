"""A VM that was started, until it ends: its address, its probes, its token, its deadlines.

The process that runs the VM says whether it lives; an address alone proves nothing, because Tart still knows the last one of a
VM that halted. A VM without an address after its boot deadline, one whose liveness probe failed and one that ran longer than
its Pod allows are ended by us, and the Pod's status says why, also when the agent does not live to see the end.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from applecart.api.pods import Pod
from applecart.api.reasons import EventType
from applecart.api.reasons import kubelet as reasons
from applecart.errors import ApplecartError, only_one
from applecart.kube.background import uncancelled
from applecart.kubelet.entry import Exit, JournalEntry
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.guest.token import TokenKeeper, wants_token
from applecart.kubelet.pods.ending import Ending
from applecart.kubelet.pods.host import Host
from applecart.kubelet.pods.stopping import Stopping
from applecart.kubelet.pods.trouble import classify, ended_by_us
from applecart.kubelet.probes.runner import ProbeRunner
from applecart.observe.logs import logger
from applecart.tart.failures import VmNotRunning
from applecart.tart.mac import Detached

ADDRESS_WAIT_S = 5  # how long one look waits for an address
ADDRESS_PAUSE_S = 1.0  # between looks that failed
ADDRESS_REFRESH_S = 60.0  # a lease may change under a VM that runs for days
SECONDS_BELOW_S = 120.0  # a shorter time is told in seconds
GRACE_DEFAULT_S = 30  # the API's own default

log = logger(__name__)


@dataclass(slots=True)
class Watching:
    """One VM. `pod` is always the latest the API showed; `changed` is called when its status may have changed."""

    host: Host
    probes: ProbeRunner
    pod: Pod
    changed: Callable[[], None]
    is_rebound: bool  # started by an earlier agent: its boot is not measured
    _killed: asyncio.Event = field(default_factory=asyncio.Event)
    _because: Exit | None = None
    _given_grace_s: float | None = None
    _noted: JournalEntry | None = None  # with its address; a full disk may know less

    async def until_ended(self, entry: JournalEntry, detached: Detached) -> JournalEntry:
        """The entry with its exit. Raises when the VM never began."""
        share = GuestShare(self.host.userdata, entry.vm, self.host.files)
        with share.masked(entry.secret_names):  # probes quote the guest
            return await self._until_ended(entry, detached, share)

    async def _until_ended(self, entry: JournalEntry, detached: Detached, share: GuestShare) -> JournalEntry:
        if entry.because is not None:  # an earlier agent was about to end it
            self._end(entry.because)
        ended = asyncio.ensure_future(detached.wait())
        killed = asyncio.create_task(self._killed.wait())
        helpers = [
            asyncio.create_task(uncancelled(work)) for work in (self._follow(entry, share), self._enforce_deadline(entry))
        ]
        try:
            await asyncio.wait([ended, killed, *helpers], return_when=asyncio.FIRST_COMPLETED)
            end = ended.result() if ended.done() else None
        finally:
            for task in (ended, killed, *helpers):
                task.cancel()
            found = await asyncio.gather(killed, *helpers, return_exceptions=True)
            await self.probes.stop(entry.uid)
        if end is None and not self._killed.is_set():  # a helper failed: its error says what to do next
            raise only_one(next(error for error in found if isinstance(error, Exception)))
        entry = self._noted or entry
        if end is not None and self._because is None:
            Ending(self.host).refuse_false_start(self.pod, entry, end)
            return await Ending(self.host).record(entry, end)
        entry = msgspec.structs.replace(entry, because=self._because)
        with suppress(OSError):  # a full disk: the VM is ended all the same
            self.host.journal.write(entry)
        stopped = await Stopping(self.host).stop(entry, self._grace_s())
        return await Ending(self.host).record(entry, stopped)

    def end(self, reason: str, sentence: str, grace_s: float | None = None, since: datetime | None = None) -> None:
        """End the VM for a reason of ours, which may have been there before anybody looked."""
        if self._because is None:
            self._given_grace_s = grace_s
        self._end(ended_by_us(reason, sentence, since or self.host.clock.now()))

    def _end(self, because: Exit) -> None:
        self._because = self._because or because
        self._killed.set()

    async def _follow(self, entry: JournalEntry, share: GuestShare) -> None:
        entry = await self._until_booted(entry)
        async with asyncio.TaskGroup() as group:
            group.create_task(uncancelled(self._refresh_address(entry)))
            if wants_token(self.pod):
                # Of a VM that an earlier agent started, the token may be another by now, and so may the clock.
                lifetime = None if self.is_rebound else entry.token
                keeping = TokenKeeper(self.host.client, self.host.clock).keep(self.pod, share, lifetime)
                group.create_task(uncancelled(keeping))

    async def _until_booted(self, entry: JournalEntry) -> JournalEntry:
        give_up_s = self.host.clock.monotonic() + self._boot_left_s(entry)  # the wall clock may be set meanwhile
        with self.host.metrics.waiting("boot", entry.key):
            while not (address := await self._look(entry)):
                if self.host.clock.monotonic() >= give_up_s and entry.booted_at is None:
                    self.host.metrics.boot_timed_out(self.pod)
                    waited = _spoken(self.host.boot_deadline_s)
                    self.end(
                        reasons.BOOT_TIMED_OUT.name,
                        f"VM {entry.vm} had no address {waited} after its start; the guest does not boot, or the host has no "
                        "address left to give",
                    )
                await asyncio.sleep(ADDRESS_PAUSE_S)
        return self._note(entry, address)

    def _boot_left_s(self, entry: JournalEntry) -> float:
        """Only the wall clock knows since when a VM boots that an earlier agent started."""
        now = self.host.clock.now()
        boots_s = max(0.0, (now - (entry.started_at or now)).total_seconds())
        return max(0.0, self.host.boot_deadline_s - boots_s)

    async def _look(self, entry: JournalEntry) -> str:
        try:
            return await self.host.tart.ip(entry.vm, wait_s=ADDRESS_WAIT_S) or ""
        except VmNotRunning:
            return ""  # it has not locked its files yet, or has just ended
        except ApplecartError as error:
            log.warning("a VM's address cannot be asked for", object=entry.key, vm=entry.vm, exc_info=error)
            return ""

    def _note(self, entry: JournalEntry, address: str) -> JournalEntry:
        host = self.host
        now = host.clock.now()
        if entry.booted_at is None and not self.is_rebound:
            took_s = (now - (entry.started_at or now)).total_seconds()
            host.metrics.booted(self.pod, took_s)
            started = reasons.STARTED
            host.events.event(self.pod, started.type, started.name, f"VM {entry.vm} is up at {address} after {took_s:.0f} s")
        if entry.address != address or entry.booted_at is None:
            entry = msgspec.structs.replace(entry, address=address, booted_at=entry.booted_at or now, trouble=None)
        self._noted = entry
        try:
            host.journal.write(entry)
        except OSError as error:  # a full disk: the VM is watched all the same, because its end is what makes room
            log.warning("where a VM is reached cannot be written down", object=entry.key, vm=entry.vm, why=str(error))
            host.events.event(self.pod, EventType.WARNING, classify(error).reason.name, str(error))
        self.probes.start(self.pod, entry.vm, address, entry.started_at or now)
        self.changed()
        return entry

    async def _refresh_address(self, entry: JournalEntry) -> None:
        while True:
            await asyncio.sleep(ADDRESS_REFRESH_S)
            address = await self._look(entry)
            if address and address != entry.address:  # one failed look changes nothing
                entry = self._note(entry, address)
            with suppress(OSError):  # for what a full disk did not take before; it is there as a rule
                self.host.journal.write(entry)

    async def _enforce_deadline(self, entry: JournalEntry) -> None:
        """`activeDeadlineSeconds` of the Pod. Only its beginning is read off the wall clock, which may be set meanwhile."""
        active = self.host.clock.now() - (self.pod.status.start_time or entry.accepted_at)
        began_s = self.host.clock.monotonic() - active.total_seconds()
        while True:
            limit_s = self.pod.spec.active_deadline_seconds  # it may be set, or made shorter, while the Pod runs
            left_s = ADDRESS_REFRESH_S if limit_s is None else limit_s - (self.host.clock.monotonic() - began_s)
            if limit_s is not None and left_s <= 0:
                sentence = f"the Pod was active longer than its activeDeadlineSeconds of {limit_s}"
                self.end(reasons.DEADLINE_EXCEEDED.name, sentence, since=self.host.clock.now() + timedelta(seconds=left_s))
                return
            await asyncio.sleep(min(left_s, ADDRESS_REFRESH_S))

    def _grace_s(self) -> float:
        if self._given_grace_s is not None:
            return self._given_grace_s
        grace = self.pod.spec.termination_grace_period_seconds
        return GRACE_DEFAULT_S if grace is None else grace


def _spoken(seconds: float) -> str:
    is_short = seconds < SECONDS_BELOW_S or seconds % 60
    return f"{seconds:g} seconds" if is_short else f"{seconds / 60:g} minutes"
