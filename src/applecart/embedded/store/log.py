"""Where committed writes live: the seam below the store.

A log takes entries in order and tells when they are durable, in the same order. `SqliteLog` keeps them on disk; tests have one
in memory, without thread and file, so that a whole fleet runs on virtual time.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from applecart.api.meta import Key
from applecart.embedded.store.record import LogEntry
from applecart.errors import ControlPlaneFault

BOOT_JUMP = 1000  # revisions skipped at each start: should the disk ever lose a commit, no revision is given out twice

Row = tuple[Key, int, bytes]  # key, revision, value


class StoreFailed(ControlPlaneFault):
    """The log cannot be written any more; the sentence says why. What was acknowledged before is safe."""


class Compacted(Exception):
    """The revision is older than what the log remembers."""


class Log(Protocol):
    def current(self, label: str | None = None) -> Iterable[tuple[str, Row]]:
        """Every object that exists, with its resource; of one resource when it is named."""

    @property
    def revision(self) -> int:
        """The newest revision that was ever given out, the jump at this start included."""

    @property
    def compacted(self) -> int:
        """History before this revision is forgotten."""

    def start(self, published: Callable[[Sequence[LogEntry]], None], failed: Callable[[StoreFailed], None]) -> None:
        """From now on `submit` may be called; both callbacks run on the event loop."""

    def submit(self, entry: LogEntry) -> None:
        """Take a write; `published` is called with it when it is durable."""

    async def history(self, label: str, namespace: str | None, revision: int) -> list[Row]:
        """The objects of a resource as they were, by key. Raises Compacted."""

    async def compact(self, revision: int) -> None:
        """Forget what was overwritten up to a revision."""

    async def aclose(self) -> None:
        """Make everything durable and let go."""
