"""The masters: per account one image that its jobs begin with, and the generation that the fleet knows it by.

A master only ever moves forward: a later generation replaces an earlier one whole, nothing is merged. The image is replaced
before its generation is written, so after a crash a master may be newer than it says, never older; and a generation without
its image counts for nothing. A lock per account keeps an image and its generation together while either is read or replaced.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from applecart.clock import Clock
from applecart.kubelet.cache.images import Images
from applecart.kubelet.cache.layout import Layout, is_plain_file, read_number
from applecart.observe.logs import logger
from applecart.tart.files import Files

GENERATION_FILE = "master.generation"
FACTS_FILE = "master.json"

log = logger(__name__)


class Facts(msgspec.Struct, frozen=True):
    """What the agent noted about a master. Counts only for the generation it names."""

    generation: int
    used_at: datetime
    has_cas: bool | None = None  # None: nobody looked


class Masters:
    def __init__(self, layout: Layout, images: Images, files: Files, clock: Clock) -> None:
        self.accounts: tuple[str, ...] = ()  # as of the last look; kept here because a heartbeat must not wait for a disk
        self._layout = layout
        self._images = images
        self._files = files
        self._clock = clock
        self._locks: dict[str, asyncio.Lock] = {}

    def lock(self, account: str) -> asyncio.Lock:
        return self._locks.setdefault(account, asyncio.Lock())

    def look(self) -> None:
        self.accounts = tuple(self._layout.accounts())

    def forget(self) -> None:
        """The disk is not there."""
        self.accounts = ()

    def generation(self, account: str) -> int:
        """0 without a master."""
        if not is_plain_file(self._layout.master(account)):
            return 0
        return read_number(self._layout.volume(account) / GENERATION_FILE)

    def has_cas(self, account: str) -> bool:
        facts = self._facts(account)
        return facts is not None and facts.has_cas is True

    async def clone(self, account: str, target: Path) -> int | None:
        """The account's master as it is now, and its generation; None when it has none. Raises when it cannot be cloned."""
        async with self.lock(account):
            if not is_plain_file(self._layout.master(account)):
                return None
            await self._images.clone(self._layout.master(account), target)
            generation = self.generation(account)
            facts = self._facts(account)
            self._note(account, generation, facts.has_cas if facts else None)
            return generation

    def install(self, account: str, image: Path, generation: int, has_cas: bool | None) -> bool:
        """Move an image in as the master; False, and nothing is done, unless it is of a later generation. Under the lock."""
        local = self.generation(account)
        if generation <= local:
            log.info("a cache was not installed: the local one is as new", account=account, local=local, offered=generation)
            return False
        self._files.make_folder(self._layout.volume(account))
        self._files.move(image, self._layout.master(account))
        self.complete(account, generation, has_cas)
        return True

    def complete(self, account: str, generation: int, has_cas: bool | None) -> None:
        """What follows the image; alone when an earlier agent died in between."""
        if generation > self.generation(account):
            self._files.write(self._layout.volume(account) / GENERATION_FILE, str(generation).encode())
            self._note(account, generation, has_cas)
        self.look()

    def keep_age(self, account: str) -> None:
        """A master that is about to become a new file is no younger for it."""
        if self._facts(account) is None:
            facts = Facts(self.generation(account), self.used_at(account))
            self._files.write(self._layout.volume(account) / FACTS_FILE, msgspec.json.encode(facts))

    def evict(self, account: str) -> None:
        """The image first: what is left without it counts for nothing."""
        log.info("a cache is evicted to make room", account=account, used_at=str(self.used_at(account)))
        self._files.remove(self._layout.master(account))
        self._files.remove(self._layout.root / account)
        self.look()

    def by_last_use(self) -> list[str]:
        self.look()
        return sorted(self.accounts, key=lambda account: (self.used_at(account), account))

    def used_at(self, account: str) -> datetime:
        facts = self._facts(account)
        if facts is not None:
            return facts.used_at
        with suppress(OSError, ValueError, OverflowError):
            return datetime.fromtimestamp(self._layout.master(account).stat().st_mtime, UTC)
        return datetime.min.replace(tzinfo=UTC)

    def _note(self, account: str, generation: int, has_cas: bool | None) -> None:
        facts = Facts(generation, self._clock.now(), has_cas)
        self._files.write(self._layout.volume(account) / FACTS_FILE, msgspec.json.encode(facts))

    def _facts(self, account: str) -> Facts | None:
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            facts = msgspec.json.decode((self._layout.volume(account) / FACTS_FILE).read_bytes(), type=Facts)
            if facts.generation == self.generation(account) and facts.used_at.tzinfo is not None:
                return facts
        return None
