"""Looks at the host, each thing in a task of its own, and keeps what was found last.

A check that hangs is given up at its deadline and counts as failed; it delays no other check, no status and no heartbeat
(I13). One that could not look changes nothing of what is known (I11). What follows from the findings is decided in
`conditions.py`. Never repairs anything.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from applecart.api.nodes import Node, NodeCondition
from applecart.api.reasons import ConditionReason
from applecart.api.reasons import kubelet as reasons
from applecart.clock import Clock
from applecart.kube.background import uncancelled
from applecart.kubelet.node.conditions import CheckState, Findings, node_conditions
from applecart.kubelet.node.host_busy import TART, busy_with, runs
from applecart.observe.logs import logger
from applecart.secrets import redact
from applecart.tart.mac import Disk, Mac

EVERY_S = 30.0
SCRATCH_EVERY_S = 3600.0  # a boot takes a minute of the host
SCRATCH_RETRY_S = 300.0  # so that the second failure, which counts, is not an hour away
DEADLINE_S = 30.0
START_GRACE_S = 60.0
LONGEST_FAULT_CHARS = 300
ROOT = Path("/")

Look = Callable[[], Awaitable[object]]  # not well: raises, or gives back a sentence
log = logger(__name__)


class NothingFoundOut(Exception):
    """This was no time to look, or what the look needs cannot be had: it speaks neither for the host nor against it."""


class Check(msgspec.Struct, frozen=True):
    """Something without which the host can start no VM."""

    name: str
    look: Look
    reason: ConditionReason
    fix: str
    deadline_s: float | None = DEADLINE_S  # None: the look keeps its own
    every_s: float = EVERY_S
    retry_s: float = EVERY_S  # after a fault, and after a look that found nothing out
    is_awaited: bool = True  # Ready waits for its first word after a start
    only_when_idle: bool = False


def tart_answers(look: Look) -> Check:
    return Check("tart", look, reasons.TART_NOT_ANSWERING, "run `tart list` on the host as the agent's user")


def gui_session_exists(look: Look) -> Check:
    fix = "check that automatic login works and nobody logged out; a reboot brings it back"
    return Check("gui-session", look, reasons.NO_GUI_SESSION, fix)


def scratch_vm_boots(look: Look) -> Check:
    """Only while nothing else runs: the host has room for two guests. Its image may take hours to come, which is not the
    host's fault, and its VM must be removed whatever happens; so the deadline is around the boot alone."""
    return Check(
        "scratch-vm",
        look,
        reasons.SCRATCH_VM_FAILED,
        "see the agent's log and start a VM on the host by hand",
        deadline_s=None,
        every_s=SCRATCH_EVERY_S,
        retry_s=SCRATCH_RETRY_S,
        is_awaited=False,
        only_when_idle=True,
    )


class Health:
    def __init__(
        self,
        mac: Mac,
        clock: Clock,
        checks: Iterable[Check],
        *,
        tart_name: str = TART,
        guest_disks: Callable[[], Awaitable[Mapping[str, int]]] | None = None,
        on_guest_disks: Callable[[Mapping[str, int]], None] = lambda used: None,
        our_vms: Callable[[], Iterable[str]] = tuple,
        scratch_vms: Callable[[], Collection[str]] = tuple,
        write_state: Callable[[], None] = lambda: None,
    ) -> None:
        """`our_vms` are those that the agent itself has started for Pods: they keep the host busy before a look finds them.
        `scratch_vms` never do: nobody works in them, and one that was left must not keep itself from being looked into.
        `write_state` raises OSError when the agent cannot write down what it does."""
        self.on_report: Callable[[], None] = lambda: None  # something was found out: the Node may have to say so
        self._mac = mac
        self._clock = clock
        self._checks = tuple(checks)
        self._tart_name = tart_name
        self._guest_disks = guest_disks
        self._on_guest_disks = on_guest_disks
        self._our_vms = our_vms
        self._scratch_vms = scratch_vms
        self._write_state = write_state
        self._started_s = clock.monotonic()
        self._outcomes = {
            check.name: CheckState(check.name, check.reason, check.fix, check.is_awaited) for check in self._checks
        }
        self._disk: Disk | None = None
        self._state_fault = ""
        self._guests: Mapping[str, int] = {}
        self._works_on: list[str] | None = None

    @property
    def outcomes(self) -> tuple[CheckState, ...]:
        return tuple(self._outcomes.values())

    @property
    def is_idle(self) -> bool:
        """Nothing runs on the host; False also when nobody knows."""
        return self._works_on is not None and not self._works_on and not any(True for _ in self._our_vms())

    def conditions(self, node: Node | None) -> tuple[NodeCondition, ...]:
        """What the Node must say now, given what it says."""
        found = Findings(
            outcomes=self.outcomes,
            is_start_over=self._clock.monotonic() - self._started_s >= START_GRACE_S,
            disk=self._disk,
            state_fault=self._state_fault,
            guests=self._guests,
            works_on=None if self._works_on is None else sorted({*self._works_on, *map(runs, self._our_vms())}),
        )
        return node_conditions(found, node)

    async def run(self) -> None:
        """Look until cancelled."""
        async with asyncio.TaskGroup() as group:
            for check in self._checks:
                group.create_task(uncancelled(self._keep_checking(check)), name=f"check-{check.name}")
            group.create_task(uncancelled(self._keep_looking("disk", self._look_at_disk)))
            group.create_task(uncancelled(self._keep_looking("processes", self._look_at_processes)))
            group.create_task(uncancelled(self._keep_looking("disks of guests", self._look_at_guests)))

    async def _keep_checking(self, check: Check) -> None:
        while True:
            if check.only_when_idle and not self.is_idle:
                await asyncio.sleep(EVERY_S)
                continue
            try:
                fault = await self._fault_of(check)
            except NothingFoundOut as why:
                log.warning("a check of the host found nothing out", check=check.name, because=redact(str(why)))
                await asyncio.sleep(check.retry_s)
                continue
            known = self._outcomes[check.name]
            outcome = self._outcomes[check.name] = known.after(fault, self._clock.now())
            if outcome.has_failed and not known.has_failed:
                log.error("the host cannot start VMs", check=check.name, because=outcome.told())
            elif known.has_failed and not outcome.has_failed:
                log.info("the host can start VMs again", check=check.name)
            self.on_report()
            await asyncio.sleep(check.retry_s if fault else check.every_s)

    async def _fault_of(self, check: Check) -> str:
        deadline = asyncio.timeout(check.deadline_s)
        try:
            async with deadline:
                said = await check.look()
        except NothingFoundOut:
            raise
        except Exception as error:
            gave_up = f"no answer within {check.deadline_s:g} s" if deadline.expired() else ""
            said = gave_up or str(error) or type(error).__name__
        return redact(said)[:LONGEST_FAULT_CHARS] if isinstance(said, str) else ""

    async def _keep_looking(self, what: str, look: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await look()
            except Exception as error:
                log.warning("a look at the host failed", what=what, exc_info=error)
            self.on_report()
            await asyncio.sleep(EVERY_S)

    async def _look_at_disk(self) -> None:
        try:
            self._write_state()
            self._state_fault = ""
        except OSError as error:
            self._state_fault = redact(str(error))[:LONGEST_FAULT_CHARS]
        self._disk = self._mac.disk(ROOT)

    async def _look_at_processes(self) -> None:
        try:
            scratch_vms = self._scratch_vms()  # before: one that ends meanwhile is not known to be ours any more
            self._works_on = busy_with(await self._mac.processes(), self._tart_name, disregarding=scratch_vms)
        except BaseException:
            self._works_on = None  # unknown is not idle (I7)
            raise

    async def _look_at_guests(self) -> None:
        if self._guest_disks is not None:
            self._guests = await self._guest_disks()
            self._on_guest_disks(self._guests)
