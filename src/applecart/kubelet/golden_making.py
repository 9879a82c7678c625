"""The two long steps to a golden: pull an image, clone it. Each can be killed anywhere and begun again.

Before a pull stands the ledger, before a clone the intent; `settle` finishes what an agent that died left half done. Whatever
bears neither our mark nor our intent nor a tombstone is in the way and stays there: a person must move it (I3).
"""

from datetime import timedelta

from applecart.api.names import golden_vm
from applecart.clock import Clock
from applecart.kubelet.garbage.ledger import Ledger
from applecart.kubelet.garbage.tombstones import Tombstones
from applecart.kubelet.golden_busy import Busy
from applecart.kubelet.golden_intents import Intent, Intents
from applecart.kubelet.golden_marks import golden_mark
from applecart.kubelet.golden_shelf import Shelf
from applecart.observe.logs import logger
from applecart.tart.driver import OnProgress, Tart
from applecart.tart.failures import TartFailed
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.images import ImageRef
from applecart.tart.registry_login import RegistryLogin
from applecart.tart.strays import end_strays

INTENT_KEPT = timedelta(hours=1)  # far longer than a clone may take; whatever it was, it comes to nothing

log = logger(__name__)


class VmInTheWay(TartFailed):
    """A VM that is not ours has the name of a golden; only a person may remove it."""


class Maker:
    def __init__(
        self,
        tart: Tart,
        home: Home,
        files: Files,
        clock: Clock,
        ledger: Ledger,
        intents: Intents,
        shelf: Shelf,
        tombstones: Tombstones,
    ) -> None:
        self._tart = tart
        self._home = home
        self._files = files
        self._clock = clock
        self._ledger = ledger
        self._intents = intents
        self._shelf = shelf
        self._tombstones = tombstones

    async def pull(self, image: ImageRef, login: RegistryLogin | None, on_progress: OnProgress | None) -> str:
        """The digest name it led to. Nothing is fetched when the store has what the tag leads to now."""
        self._ledger.begin(image)
        try:
            await self._tart.pull(image.pull_name, login=login, on_progress=on_progress)
        finally:
            self._ledger.end(image)
        digest = self._home.digest_of(image)
        if digest is None:
            raise TartFailed(f"tart pulled {image.pull_name}, but the store does not have it; it is pulled again")
        return digest

    async def make(self, digest: str, image: str) -> None:
        """Clone and mark. Harmless when the golden is there."""
        vm = golden_vm(digest)
        if self._shelf.find(digest) is not None:
            return
        if (earlier := self._intents.get(vm)) is not None and await self._finish(earlier):
            return
        await self._make_way(vm)
        self._intents.write(Intent(digest, image, self._clock.now()))
        try:
            await self._tart.clone(digest, vm)
        except Exception:
            if self._home.vm(vm) is None:
                self._intents.remove(vm)  # it ended and left nothing
            raise
        self._shelf.put(digest, image, self._clock.now())
        self._intents.remove(vm)

    async def settle(self, busy: Busy) -> None:
        """Finish or undo what a dead agent began."""
        for intent in self._intents.all():
            with busy.going(intent.vm) as is_ours_alone:
                if not is_ours_alone or await self._finish(intent):
                    continue
                if self._clock.now() - intent.began_at > INTENT_KEPT:
                    self._intents.remove(intent.vm)

    async def _finish(self, intent: Intent) -> bool:
        """True when the golden is complete now."""
        await end_strays(self._tart.mac, self._clock, self._tart.binary, intent.vm)
        found = self._home.vm(intent.vm)
        if found is None:
            return False
        if found.mark is None and found.is_whole:
            log.info("a golden that was cloned and not marked is marked", vm=intent.vm, digest=intent.digest)
            self._shelf.put(intent.digest, intent.image, intent.began_at)
        elif found.mark is None:
            self._files.remove(found.path)
        self._intents.remove(intent.vm)
        return self._shelf.find(intent.digest) is not None

    async def _make_way(self, vm: str) -> None:
        """Nothing has the golden's name when this returns."""
        found = self._home.vm(vm)
        if found is None:
            return
        if self._tombstones.is_rest(vm):
            await end_strays(self._tart.mac, self._clock, self._tart.binary, vm)  # a delete that outlived its agent
        elif found.is_whole or golden_mark(found) is None:
            raise VmInTheWay(
                f"VM {vm} is in the way of a golden: it bears no mark of this agent, so it is not replaced; "
                f"look at it and remove it with `tart delete {vm}`"
            )
        log.error("a golden lacks files and is removed", vm=vm)
        await self._tombstones.delete(self._tart, vm)
        self._shelf.changed()
