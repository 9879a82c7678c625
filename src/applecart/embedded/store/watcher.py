"""One watcher's queue of changes.

The publisher never waits: it appends references and wakes the reader once per batch. A reader that falls too far behind is
closed, and its client lists again; nobody else notices.
"""

import asyncio
from collections import deque

from applecart.embedded.store.record import Change

MOST_EVENTS = 1000  # waiting for one reader
MOST_BYTES = 8 << 20  # likewise; large objects reach it first


class Scope:
    """Which part of a resource a watcher wants, as far as an index can tell; selectors decide the rest."""

    __slots__ = ("name", "namespace", "node")

    def __init__(self, namespace: str | None = None, name: str | None = None, node: str | None = None) -> None:
        self.namespace = namespace
        self.name = name
        self.node = node  # spec.nodeName, which every node's agent asks for


class Watcher:
    """Changes that wait for one reader."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.is_closed = False  # by the store: the reader was too slow, or the kind is gone
        self._waiting: deque[Change] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()

    def offer(self, change: Change) -> None:
        if self.is_closed:
            return
        self._waiting.append(change)
        self._bytes += len(change.record.value)
        if len(self._waiting) > MOST_EVENTS or self._bytes > MOST_BYTES:
            self.close()

    def flush(self) -> None:
        """Wake the reader; called once per batch."""
        self._wake.set()

    def close(self) -> None:
        self.is_closed = True
        self._waiting.clear()
        self._wake.set()

    def take(self) -> list[Change]:
        """What waits, without waiting."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        self._wake.clear()
        return taken

    async def wait(self) -> None:
        """Until something waits or the watcher is closed."""
        if not self._waiting and not self.is_closed:
            await self._wake.wait()
