"""Room on the disk for caches: who may take how much, and what goes first when there is too little.

Every branch and every download is promised a whole volume's cap, because a sparse image grows to it while nobody looks. To
keep the promises, unfinished downloads go first, then masters, the one used longest ago first; free space is measured again
after each. Nothing goes when all of it together would not be enough. Nothing here waits, so two that ask at once cannot be
promised the same bytes.
"""

from contextlib import suppress
from pathlib import Path

from applecart.kubelet.cache.layout import Layout
from applecart.kubelet.cache.masters import Masters
from applecart.observe.logs import logger
from applecart.tart.files import Files
from applecart.tart.mac import Mac

WATERMARK = 1.2  # times the cap: the next job finds room without having to evict first

log = logger(__name__)


class Room:
    def __init__(self, layout: Layout, masters: Masters, mac: Mac, files: Files, cap_bytes: int) -> None:
        self._layout = layout
        self._masters = masters
        self._mac = mac
        self._files = files
        self._cap_bytes = cap_bytes
        self._holders: set[str] = set()

    def reserve(self, holder: str, *, sparing: str = "", evicts: bool = True) -> bool:
        """Promise the holder a cap; False when that cannot be kept, and then nothing is promised."""
        wanted_bytes = self._cap_bytes * (len(self._holders - {holder}) + 1)
        if not (self._make(wanted_bytes, sparing) if evicts else self.free_bytes() >= wanted_bytes):
            return False
        self._holders.add(holder)
        return True

    def hold(self, holder: str) -> None:
        """Promised by an earlier agent."""
        self._holders.add(holder)

    def release(self, holder: str) -> None:
        self._holders.discard(holder)

    def keep_watermark(self) -> bool:
        return self._make(int(WATERMARK * self._cap_bytes), "")

    def free_bytes(self) -> int:
        """0 when it cannot be told: then nothing is promised."""
        try:
            return self._mac.disk(self._layout.root).free_bytes
        except OSError as error:
            log.warning("free space for caches cannot be measured", root=str(self._layout.root), why=str(error))
            return 0

    def _make(self, wanted_bytes: int, sparing: str) -> bool:
        free_bytes = self.free_bytes()
        if free_bytes >= wanted_bytes:
            return True
        partials, accounts = self._idle_partials(), self._evictable(sparing)
        images = [file for partial in partials for file in partial.rglob("*")] + [*map(self._layout.master, accounts)]
        if free_bytes + sum(map(_size_bytes, images)) < wanted_bytes:
            return False
        for partial in partials:
            self._files.remove(partial)
            if self.free_bytes() >= wanted_bytes:
                return True
        for account in accounts:
            self._masters.evict(account)
            if self.free_bytes() >= wanted_bytes:
                return True
        return False

    def _evictable(self, sparing: str) -> list[str]:
        """Not one that is being cloned or replaced right now: it is the last one anybody wants gone."""
        accounts = self._masters.by_last_use()
        return [account for account in accounts if account != sparing and not self._masters.lock(account).locked()]

    def _idle_partials(self) -> list[Path]:
        try:
            found = sorted(path for path in self._layout.all_partials.iterdir())
        except OSError:
            return []
        return [path for path in found if converge_holder(path.name) not in self._holders]


def _size_bytes(image: Path) -> int:
    """What its removal gives back at most: it may share blocks with others."""
    with suppress(OSError):
        return image.lstat().st_size
    return 0


def converge_holder(account: str) -> str:
    """Who holds the room of a download; never the uid of a Pod."""
    return f"converge/{account}"
