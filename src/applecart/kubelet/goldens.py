"""Goldens: for every image content one VM that is never booted, only cloned, so that a Pod starts without a pull.

A golden is named after its digest: two tags of one content share it, and a tag that moved is noticed. A pull or clone that
several Pods need happens once, and ends when none of them waits any longer. `golden_making.py` does the long steps; here is
decided which are needed, and the collector is kept away from what is in use.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from applecart.api.names import golden_vm
from applecart.clock import Clock
from applecart.errors import BadInput
from applecart.kubelet.garbage.ledger import Ledger
from applecart.kubelet.garbage.tombstones import Tombstones
from applecart.kubelet.golden_busy import Busy
from applecart.kubelet.golden_intents import Intents
from applecart.kubelet.golden_making import Maker
from applecart.kubelet.golden_room import Reclaim, disk_errors, with_room
from applecart.kubelet.golden_sharing import Shared
from applecart.kubelet.golden_shelf import Shelf
from applecart.tart.driver import OnProgress, Tart
from applecart.tart.failures import ImageMissing, TartFailed
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.images import DEFAULT_TAG, ImageRef, parse
from applecart.tart.marks import GoldenMark
from applecart.tart.pulls import PullProgress
from applecart.tart.registry_login import RegistryLogin

T = TypeVar("T")

ALWAYS: Final = "Always"
IF_NOT_PRESENT: Final = "IfNotPresent"
NEVER: Final = "Never"


class Golden(msgspec.Struct, frozen=True):
    vm: str
    digest: str  # repository@sha256:...
    was_made: bool  # the caller waited while it was made; False when it was there


class Goldens:
    def __init__(self, tart: Tart, home: Home, files: Files, clock: Clock, state: Path) -> None:
        self.ledger = Ledger(state, home, files, clock)
        self.busy = Busy()
        self.reclaim: Reclaim | None = None  # set by whoever collects garbage; None while nobody does
        self.tombstones = Tombstones(state, home, files)
        self._tart = tart
        self._home = home
        self._shelf = Shelf(home, files, clock)
        self._maker = Maker(tart, home, files, clock, self.ledger, Intents(state, files), self._shelf, self.tombstones)
        self._pulls: Shared[str, PullProgress] = Shared()
        self._makings: Shared[None, None] = Shared()

    async def ensure(
        self,
        image: str,
        *,
        policy: str | None = None,
        login: RegistryLogin | None = None,
        on_progress: OnProgress | None = None,
    ) -> Golden:
        """The golden of an image, made if need be. `policy` is the container's imagePullPolicy."""
        ref = parse(image)
        policy = policy or default_policy(ref)
        if policy not in (ALWAYS, IF_NOT_PRESENT, NEVER):
            raise BadInput(f"imagePullPolicy {policy!r} of image {image} is not Always, IfNotPresent or Never")

        async def fetch() -> str:
            if policy == NEVER:
                raise ImageMissing(f"image {image} is not on this host, and imagePullPolicy Never forbids to pull it")
            return await self._pulls.join(ref.pull_name, lambda tell: self._pull(ref, login, tell), on_progress)

        with self.busy.image(ref):
            digest = ref.digest_name or (None if policy == ALWAYS else self._digest_here(image, ref)) or await fetch()
            with self.busy.image(parse(digest)):
                # An image that is being deleted is still to be seen. Tart would fetch it again for the clone: without a login,
                # and without anybody who notices when it stands still.
                await self.busy.settled(digest)
                if await self._take(digest, image):
                    return Golden(golden_vm(digest), digest, was_made=False)
                if self._home.digest_of(parse(digest)) is None:
                    digest = await fetch()
                return await self._from_store(digest, image)

    async def clone(self, golden: Golden, vm: str) -> None:
        """Make a VM from a golden. Whatever goes wrong, the golden stays; `ensure` replaces one that is broken."""
        await self.busy.settled(golden.vm)
        with self.busy.vm(golden.vm):
            await self.busy.settled(vm)  # a late removal of an older VM of this name would take the new one
            with self.busy.vm(vm):
                await self._with_room(f"the clone of VM {vm}", lambda: self._tart.clone(golden.vm, vm))

    async def remove(self, vm: str, judged: GoldenMark) -> bool:
        """Delete a golden unless somebody used it since it was judged."""
        with self.busy.going(vm) as may_go:
            if not may_go or self._home.mark(vm) != judged:
                return False
            await self.tombstones.delete(self._tart, vm)
            self._shelf.changed()
            return True

    async def remove_image(self, digest: str) -> bool:
        """Delete an image that this agent pulled, unless something is being made of it."""
        if digest in self.busy_digests() or digest not in self.ledger.pulled():
            return False
        with self.busy.going(digest) as may_go:
            if may_go:
                await self._tart.delete(digest)
            return may_go

    async def settle(self) -> None:
        """Finish or undo what an agent that died left half done; at the start and with every collection."""
        await self._maker.settle(self.busy)

    def touch(self, vm: str) -> None:
        """Some Pod wants it, though no VM is made of it now."""
        mark = self._home.mark(vm)
        if isinstance(mark, GoldenMark):
            self._shelf.use(mark)

    def busy_digests(self) -> frozenset[str]:
        """Images in the store that must stay for now: what is being made leads to them."""
        found = (self._home.digest_of(ref) for ref in self.busy.images)
        return frozenset(digest for digest in found if digest is not None)

    def images_here(self) -> frozenset[str]:
        return self._shelf.images_here()

    def labels(self) -> dict[str, str]:
        """For the Node: which images it can start without a pull."""
        return self._shelf.labels()

    def _digest_here(self, image: str, ref: ImageRef) -> str | None:
        return self._shelf.digest_of(image) or self._home.digest_of(ref)

    async def _take(self, digest: str, image: str) -> bool:
        await self.busy.settled(golden_vm(digest))
        mark = self._shelf.find(digest)
        if mark is not None:
            with disk_errors(f"the mark of golden {golden_vm(digest)}"):
                self._shelf.use(mark, image)
        return mark is not None

    async def _from_store(self, digest: str, image: str) -> Golden:
        vm = golden_vm(digest)
        if await self._take(digest, image):
            return Golden(vm, digest, was_made=False)
        await self._makings.join(digest, lambda _: self._make(digest, image))
        if not await self._take(digest, image):
            raise TartFailed(f"golden {vm} of {image} vanished while it was made; it is made again")
        return Golden(vm, digest, was_made=True)

    async def _pull(self, ref: ImageRef, login: RegistryLogin | None, on_progress: OnProgress) -> str:
        with self.busy.image(ref):
            return await self._with_room(f"the pull of {ref.pull_name}", lambda: self._maker.pull(ref, login, on_progress))

    async def _make(self, digest: str, image: str) -> None:
        await self.busy.settled(golden_vm(digest))
        with self.busy.image(parse(digest)), self.busy.vm(golden_vm(digest)):
            await self._with_room(f"the golden of {image}", lambda: self._maker.make(digest, image))

    async def _with_room(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        return await with_room(what, self.reclaim, work)


def default_policy(ref: ImageRef) -> str:
    """What the API server sets when the Pod says nothing."""
    is_latest = not ref.digest and (ref.tag or DEFAULT_TAG) == DEFAULT_TAG
    return ALWAYS if is_latest else IF_NOT_PRESENT
