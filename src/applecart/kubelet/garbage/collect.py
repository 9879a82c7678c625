"""The collector: looks, plans, and removes one thing at a time, each looked at once more right before.

A pass runs at the start and every five minutes, one at a time. When something it needs to know cannot be read, it does nothing
and says so. Below the floor of free space, or when a pull found no room, it goes on step by step (`pressure.py`). A host with
`--disable-vm-gc` has no collector at all: there image builds own the local VMs.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from applecart.errors import ApplecartError
from applecart.kubelet.entry import Stage
from applecart.kubelet.garbage.leftovers import Leftover, RotateLog, plan_leftovers
from applecart.kubelet.garbage.log_rotation import rotate
from applecart.kubelet.garbage.look import Look
from applecart.kubelet.garbage.plan import DeleteImage, DeleteVm, Kind, Plan, plan_pass
from applecart.kubelet.garbage.pressure import is_short, needed_downloads, next_step
from applecart.kubelet.goldens import Goldens
from applecart.kubelet.journal import Journal
from applecart.observe.logs import logger
from applecart.tart.driver import Tart
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.marks import GoldenMark, PodMark

EVERY_S = 300.0  # an orphan costs disk, not correctness; a look costs a list of Pods

log = logger(__name__)


class Collector:
    def __init__(
        self,
        *,
        look: Look,
        tart: Tart,
        home: Home,
        files: Files,
        journal: Journal,
        goldens: Goldens,
        userdata: Path,
        on_deleted: Callable[[Kind], None] = lambda _: None,
    ) -> None:
        self.last = "no pass has ended yet"  # a sentence for people
        self.deleted: Counter[Kind] = Counter()
        self._look = look
        self._tart = tart
        self._home = home
        self._files = files
        self._journal = journal
        self._goldens = goldens
        self._userdata = userdata
        self._on_deleted = on_deleted
        self._tombstones = goldens.tombstones
        self._one_at_a_time = asyncio.Lock()
        goldens.reclaim = self.reclaim

    async def run(self) -> None:
        while True:
            try:
                await self.collect()
            except Exception as error:  # whatever it met, the host's Pods need the agent; the next pass looks anew
                self.last = f"the last pass was given up: {str(error) or type(error).__name__}"
                log.error("garbage collection ran into something unforeseen; it is tried again", exc_info=error)
            await asyncio.sleep(EVERY_S)

    async def collect(self) -> None:
        await self._pass(is_starved=False)

    async def reclaim(self, reason: str) -> None:
        """Make room at once for something that found none."""
        log.warning("making room on the disk", reason=reason)
        await self._pass(is_starved=True)

    async def _pass(self, *, is_starved: bool) -> None:
        async with self._one_at_a_time:
            before = self.deleted.copy()
            try:
                await self._mend()
                is_disk_short = await self._regular()
                if is_starved or is_disk_short:
                    await self._relieve(is_starved=is_starved)
            except (ApplecartError, OSError) as error:
                self.last = f"the last pass was given up: {error}"
                log.error("garbage collection was given up; it is tried again", exc_info=error)
            else:
                done = self.deleted - before
                self.last = "the last pass removed " + (", ".join(f"{done[kind]} {kind}" for kind in sorted(done)) or "nothing")

    async def _mend(self) -> None:
        """Finish what a dead agent or a killed Tart left in the middle: first what frees the disk, then what is written to it.
        Its trouble, a full disk above all, stops no pass."""
        for work in (self._remove_rests, self._goldens.settle):
            try:
                await work()
            except (ApplecartError, OSError) as error:
                log.warning("what was left half done stays so for now", why=str(error))

    async def _remove_rests(self) -> None:
        named = await self._look.names_in_use()
        for vm in self._tombstones.half_deleted():
            is_used = named is None or vm in named or vm in self._goldens.busy.vms
            if not is_used and (rest := self._home.vm(vm)) is not None:
                self._files.remove(rest.path)
                self._tombstones.lift(vm)
                log.info("the rest of a deleted VM was removed", vm=vm)

    async def _regular(self) -> bool:
        """What goes whatever the disk says. True when the disk was short before."""
        scene = await self._look.scene()
        plan = plan_pass(scene)
        for notice in plan.notices:
            log.warning("an orphan runs", notice=notice)
        for step in plan.deletions:
            await self._carry_out(step)
        for leftover in plan_leftovers(scene):
            await self._tidy(leftover)
        self._note(plan)
        return is_short(scene)

    def _note(self, plan: Plan) -> None:
        """What is only worth writing down; a disk that is too full for it must not keep us from emptying it."""
        try:
            self._goldens.ledger.forget_gone()
            for touch in plan.touches:
                self._goldens.touch(touch.vm)
        except (ApplecartError, OSError) as error:
            log.warning("the use of goldens could not be written down", why=str(error))

    async def _relieve(self, *, is_starved: bool) -> None:
        """One step, then a new look: the second golden of a stale list could be the last one left."""
        await self._drop_downloads()
        tried: set[str] = set()
        while (step := next_step(await self._look.scene(), frozenset(tried), is_starved=is_starved)) is not None:
            tried.add(step.vm.name if isinstance(step, DeleteVm) else step.name)
            await self._carry_out(step)

    async def _drop_downloads(self) -> None:
        """What was half fetched and nobody wants any more costs no Pod anything, so it goes before all else."""
        wanted = needed_downloads(await self._look.scene()) | {ref.pull_name for ref in self._goldens.busy.images}
        try:
            await self._tart.drop_partials(wanted)
        except (ApplecartError, OSError) as error:
            log.warning("half-fetched images could not be removed; it is tried again", why=str(error))

    async def _carry_out(self, step: DeleteVm | DeleteImage) -> None:
        name = step.vm.name if isinstance(step, DeleteVm) else step.name
        named = await self._look.names_in_use()
        if named is None or name in named:
            return
        try:
            is_done = await (self._delete_vm(step) if isinstance(step, DeleteVm) else self._goldens.remove_image(step.name))
        except (ApplecartError, OSError) as error:
            log.warning("garbage could not be removed; it is tried again", what=name, why=str(error))
        else:
            if is_done:
                self._count(step.kind, name, step.because)

    async def _delete_vm(self, step: DeleteVm) -> bool:
        """False when it changed since it was judged."""
        vm = step.vm.name
        found = self._home.vm(vm)
        if found is None or found.mark != step.mark or found.is_whole != step.vm.is_whole:
            return False
        if isinstance(step.mark, PodMark) and (entry := self._journal.get(step.mark.uid)) and entry.may_have_vm:
            return False
        if isinstance(step.mark, GoldenMark):
            return await self._goldens.remove(vm, step.mark)
        if self._has_entry(vm):
            return False  # a newer Pod of the name: its own worker makes way for it, and must not meet half a VM
        with self._goldens.busy.going(vm) as may_go:
            if may_go:
                await self._tombstones.delete(self._tart, vm)
        if may_go and isinstance(step.mark, PodMark) and not self._has_entry(vm):
            await self._files.remove_aside(self._userdata / vm)
        return may_go

    def _has_entry(self, vm: str) -> bool:
        """A Pod of this name may have files or a VM on the host by now, whatever there was when the pass began."""
        return any(entry.vm == vm and entry.stage is not Stage.REMOVED for entry in self._journal)

    async def _tidy(self, step: Leftover) -> None:
        try:
            if isinstance(step, RotateLog):
                rotate(step.path, step.older, self._files)
                return
            if self._has_entry(step.vm):
                return
            await self._files.remove_aside(step.path)
        except OSError as error:
            log.warning("a leftover could not be removed; it is tried again", path=str(step.path), why=str(error))
        else:
            self._count(step.kind, str(step.path), step.because)

    def _count(self, kind: Kind, what: str, because: str) -> None:
        log.info("garbage removed", what=what, garbage=kind, because=because)
        self.deleted[kind] += 1
        self._on_deleted(kind)
