"""One watcher's queue of changes.

The publisher never waits: it appends references and wakes the reader once per batch. A reader that falls too far behind is
closed, and its client lists again; nobody else notices.
"""

import asyncio
import math
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
        self._reader: asyncio.Future[None] | None = None  # sleeps until it is woken
        self._alarm: asyncio.TimerHandle | None = None

    def offer(self, change: Change) -> None:
        if self.is_closed:
            return
        self._waiting.append(change)
        self._bytes += len(change.record.value)
        if len(self._waiting) > MOST_EVENTS or self._bytes > MOST_BYTES:
            self.close()

    def flush(self) -> None:
        """Wake the reader; called once per batch."""
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def close(self) -> None:
        self.is_closed = True
        self._waiting.clear()
        self.flush()

    def take(self) -> list[Change]:
        """What waits, without waiting."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return taken

    async def wait(self, until: float = math.inf) -> bool:
        """Sleep until something waits or the watcher is closed; False when `until`, by the loop's clock, came first."""
        loop = asyncio.get_running_loop()
        while not self._waiting and not self.is_closed:
            if loop.time() >= until:
                return False
            self._set_alarm(loop, until)
            self._reader = loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return True

    def stop_alarm(self) -> None:
        """The reader has gone and needs no waking."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _set_alarm(self, loop: asyncio.AbstractEventLoop, until: float) -> None:
        # One timer outlives many events: a reader asks for the same instant each time, and a timer for each event costs more
        # than the event.
        if self._alarm is not None and self._alarm.when() == until and not self._alarm.cancelled():
            return
        self.stop_alarm()
        if until != math.inf:
            self._alarm = loop.call_at(until, self.flush)
