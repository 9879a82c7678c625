"""Ending a branch: its image becomes the account's master, or goes.

The decision is durable before anything moves, so an agent that was killed anywhere carries out what was decided and decides
nothing twice. A promoted image is never copied: it is moved out of the guest's reach, looked at there, and moved to its place,
so there is no half of one, and no link that a guest left is ever followed.
"""

import msgspec

from applecart.api.metric_names.label_values import CacheOutcome
from applecart.errors import ApplecartError
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.promotion import loses_cas
from applecart.kubelet.cache.records import Branch, Records, Step, image_id
from applecart.observe.logs import logger
from applecart.tart.files import Files

log = logger(__name__)


class Finishing:
    """Only for branches whose VM does not run any more."""

    def __init__(
        self, layout: Layout, records: Records, masters: Masters, images: Images, files: Files, *, is_cas_on: bool
    ) -> None:
        self._layout = layout
        self._records = records
        self._masters = masters
        self._images = images
        self._files = files
        self._is_cas_on = is_cas_on

    def decide(self, branch: Branch, because: str, generation: int) -> Branch:
        """`because` is the reason to discard it; empty: promote it as this generation."""
        step = Step.DISCARDING if because else Step.PROMOTING
        log.info("a cache volume ends", uid=branch.uid, vm=branch.vm, account=branch.account, step=step, why=because)
        return self._records.write(msgspec.structs.replace(branch, step=step, generation=0 if because else generation))

    async def carry_out(self, branch: Branch) -> CacheOutcome:
        """Nothing of the branch is left when this returns. Harmless to repeat."""
        promoted = branch.step is Step.PROMOTING and await self._promote(branch)
        await self._remove(branch)
        return CacheOutcome.PROMOTED if promoted else CacheOutcome.DISCARDED

    async def _remove(self, branch: Branch) -> None:
        """The record last: until then a new agent knows that there is something to remove."""
        for path in (self._layout.staged, self._layout.set_aside, self._layout.branch):
            await self._files.remove_aside(path(branch.uid))
        self._records.remove(branch)

    async def _promote(self, branch: Branch) -> bool:
        if branch.image is None:
            looked_at = await self._look(branch)  # without the lock: the account's next job must not wait for it
            if looked_at is None:
                return False
            branch = looked_at
        async with self._masters.lock(branch.account):
            staged = self._layout.staged(branch.uid)
            if staged.exists():
                return not self._loses_cas(branch) and self._masters.install(
                    branch.account, staged, branch.generation, branch.has_cas
                )
            if image_id(self._layout.master(branch.account)) == branch.image:
                # An earlier agent died after the image and before its generation.
                self._masters.complete(branch.account, branch.generation, branch.has_cas)
                return True
            return False

    def _loses_cas(self, branch: Branch) -> bool:
        had_cas = self._masters.has_cas(branch.account)
        if branch.has_cas is None or not loses_cas(is_cas_on=self._is_cas_on, had_cas=had_cas, has_cas=branch.has_cas):
            return False
        log.warning("a cache that lost its compiler results is not promoted", uid=branch.uid, account=branch.account)
        return True

    async def _look(self, branch: Branch) -> Branch | None:
        """The record with its image, which is out of the guest's reach; None when it must not become a master."""
        staged = self._layout.staged(branch.uid)
        if not staged.is_symlink() and not staged.exists():
            try:
                self._files.move(self._layout.branch_image(branch.uid), staged)
            except FileNotFoundError:
                return None
        about = log.bind(uid=branch.uid, vm=branch.vm, account=branch.account)
        if image_id(staged) is None:
            about.error("a guest left something else in place of its cache; it is not promoted")
            return None
        has_cas: bool | None = None
        if self._is_cas_on:
            try:
                has_cas = (await self._images.measure(staged)).has_cas
            except ApplecartError as error:
                about.warning("a cache that cannot be looked into is not promoted", exc_info=error)
                return None
        return self._records.write(msgspec.structs.replace(branch, image=image_id(staged), has_cas=has_cas))
