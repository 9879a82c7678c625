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
from applecart.kubelet.garbage.leftovers import Leftover, RotateLog, plan_leftovers
from applecart.kubelet.garbage.log_rotation import rotate
from applecart.kubelet.garbage.look import Look
from applecart.kubelet.garbage.plan import DeleteImage, DeleteVm, Kind, Plan, plan_pass
from applecart.kubelet.garbage.pressure import is_short, next_step
from applecart.kubelet.garbage.scene import Scene
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
            await self.collect()
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
                free_percent = await self._regular()
                if is_starved or free_percent is not None:
                    await self._relieve(is_starved=is_starved)
            except (ApplecartError, OSError) as error:
                self.last = f"the last pass was given up: {error}"
                log.error("garbage collection was given up; it is tried again", exc_info=error)
            else:
                done = self.deleted - before
                self.last = "the last pass removed " + (", ".join(f"{done[kind]} {kind}" for kind in sorted(done)) or "nothing")

    async def _mend(self) -> None:
        """Finish what a dead agent or a killed Tart left in the middle. Its trouble, a full disk above all, stops no pass."""
        try:
            await self._goldens.settle()
            named = await self._look.names_in_use()
            for vm in self._tombstones.half_deleted():
                if named is not None and vm not in named and (rest := self._home.vm(vm)) is not None:
                    self._files.remove(rest.path)
                    self._tombstones.lift(vm)
                    log.info("the rest of a deleted VM was removed", vm=vm)
        except (ApplecartError, OSError) as error:
            log.warning("what was left half done stays so for now", why=str(error))

    async def _regular(self) -> float | None:
        """What goes whatever the disk says. Gives the free space back when it is short."""
        scene = await self._look.scene()
        plan = plan_pass(scene)
        for notice in plan.notices:
            log.warning("an orphan runs", notice=notice)
        for step in plan.deletions:
            await self._carry_out(step)
        for leftover in plan_leftovers(scene):
            self._tidy(leftover)
        self._note(scene, plan)
        return scene.free_percent if is_short(scene) else None

    def _note(self, scene: Scene, plan: Plan) -> None:
        """What is only worth writing down; a disk that is too full for it must not keep us from emptying it."""
        try:
            self._goldens.ledger.keep_only(frozenset(image.name for image in scene.images))
            for touch in plan.touches:
                self._goldens.touch(touch.vm)
        except (ApplecartError, OSError) as error:
            log.warning("the use of goldens could not be written down", why=str(error))

    async def _relieve(self, *, is_starved: bool) -> None:
        """One step, then a new look: the second golden of a stale list could be the last one left."""
        tried: set[str] = set()
        while (step := next_step(await self._look.scene(), frozenset(tried), is_starved=is_starved)) is not None:
            tried.add(step.vm.name if isinstance(step, DeleteVm) else step.name)
            await self._carry_out(step)

    async def _carry_out(self, step: DeleteVm | DeleteImage) -> None:
        name = step.vm.name if isinstance(step, DeleteVm) else step.name
        named = await self._look.names_in_use()
        if named is None or name in named:
            return
        try:
            is_done = await (self._delete_vm(step) if isinstance(step, DeleteVm) else self._delete_image(step))
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
        if isinstance(step.mark, GoldenMark) and found.is_whole:
            return await self._goldens.remove(vm, step.mark)
        self._tombstones.put(vm)
        if found.is_whole:
            await self._tart.delete(vm)
        else:
            self._files.remove(found.path)  # Tart does not know it as a VM
        self._tombstones.lift(vm)
        if isinstance(step.mark, PodMark):
            self._files.remove(self._userdata / vm)
        return True

    async def _delete_image(self, step: DeleteImage) -> bool:
        if step.name in self._goldens.busy_digests() or step.name not in self._goldens.ledger.pulled():
            return False
        await self._tart.delete(step.name)
        return True

    def _tidy(self, step: Leftover) -> None:
        try:
            if isinstance(step, RotateLog):
                rotate(step.path, step.older, self._files)
                return
            self._files.remove(step.path)
        except OSError as error:
            log.warning("a leftover could not be removed; it is tried again", path=str(step.path), why=str(error))
        else:
            self._count(step.kind, str(step.path), step.because)

    def _count(self, kind: Kind, what: str, because: str) -> None:
        log.info("garbage removed", what=what, garbage=kind, because=because)
        self.deleted[kind] += 1
        self._on_deleted(kind)
