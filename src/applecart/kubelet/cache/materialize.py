"""Giving a job its cache: a clone of its account's master, or an empty image.

The image is made where the guest cannot reach and moved into its folder whole. Every way through here leaves an image, because
a job without one once failed; the guest is told that it is ready last, and waits a minute for that.
"""

import msgspec

from applecart.api.metric_names.label_values import CacheMaterialize
from applecart.errors import ApplecartError
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.kubelet.cache.records import Branch, Records, Step
from applecart.kubelet.guest.share import GuestShare
from applecart.kubelet.metrics import CacheMetrics
from applecart.observe.logs import logger
from applecart.tart.files import Files

READY_FILE = "cache-ready"
CAS_FILE = "cas-enabled"
BASE_GENERATION_FILE = "cache-base-generation"
UNVERIFIABLE_FILE = "volume-head-unverifiable"

log = logger(__name__)


class Materialize:
    def __init__(
        self,
        layout: Layout,
        masters: Masters,
        images: Images,
        records: Records,
        files: Files,
        metrics: CacheMetrics,
        *,
        cap_gib: int,
        cas_bytes: int,
    ) -> None:
        self._layout = layout
        self._masters = masters
        self._images = images
        self._records = records
        self._files = files
        self._metrics = metrics
        self._cap_gib = cap_gib
        self._cas_bytes = cas_bytes

    async def materialize(self, branch: Branch, account: str) -> Branch:
        """For this account; for nobody when it is empty. Raises only when not even an empty image can be made."""
        staged = self._layout.staged(branch.uid)
        generation = await self._clone(branch, account) if account else None
        if generation is None:
            await self._images.create(staged, self._cap_gib)
        target = self._layout.branch_image(branch.uid)
        if not target.is_symlink() and target.is_dir():
            # Only a guest made it, and nothing can be moved onto a folder. It goes with the branch: it may be a large one.
            self._files.move(target, self._layout.set_aside(branch.uid))
        self._files.move(staged, target)
        self._metrics.materialized(CacheMaterialize.COLD if generation is None else CacheMaterialize.WARM)
        log.info("a job gets its cache volume", uid=branch.uid, vm=branch.vm, account=account, generation=generation)
        given = msgspec.structs.replace(branch, step=Step.MATERIALIZED, account=account, base_generation=generation or 0)
        return self._records.write(given)

    def tell(self, branch: Branch, share: GuestShare) -> None:
        """Again when an earlier agent may have died before it did."""
        share.tell(BASE_GENERATION_FILE, str(branch.base_generation).encode())
        if self._cas_bytes:
            share.tell(CAS_FILE, str(self._cas_bytes).encode())
        share.tell(READY_FILE, b"1")

    def tell_unverifiable(self, share: GuestShare, digest: str) -> None:
        """The account's newest cache is not what it claims to be, so the guest may publish in its place."""
        try:
            share.tell(UNVERIFIABLE_FILE, digest.encode())
        except OSError as error:
            log.info("a guest cannot be told any more", folder=str(share.status_folder), why=str(error.strerror))

    async def _clone(self, branch: Branch, account: str) -> int | None:
        """The generation of the clone; None when the job must begin with an empty one."""
        try:
            return await self._masters.clone(account, self._layout.staged(branch.uid))
        except (ApplecartError, OSError) as error:
            log.warning(
                "an account's cache cannot be cloned; its job begins with an empty one", account=account, exc_info=error
            )
            return None
