"""A simulated guest: what a container of a simulated node has written, holds and uses.

State and nothing else; `guest_programs.py` runs commands in it and `node_agent.py` serves it. A guest's log is followed by
whoever reads it, and ends when the guest does.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from applecart.clock import Clock


@dataclass(frozen=True, slots=True)
class LogLine:
    at: datetime
    text: bytes  # with its end of line

    def shown(self, *, timestamps: bool) -> bytes:
        return self.at.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ").encode() + self.text if timestamps else self.text


@dataclass(frozen=True, slots=True)
class LogRequest:
    """What a reader asks of a log."""

    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


@dataclass(slots=True)
class Guest:
    """One container."""

    clock: Clock
    waiting: str = ""  # why it has not started yet
    is_running: bool = True
    previous: list[LogLine] | None = None  # of the run before this one
    files: dict[str, bytes] = field(default_factory=dict)
    cpu_nanocores: int = 0
    memory_bytes: int = 0
    lines: list[LogLine] = field(default_factory=list)
    stdin: bytearray = field(default_factory=bytearray)  # what was typed at the main process
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, *texts: str, ago: timedelta = timedelta()) -> None:
        at = self.clock.now() - ago
        self.lines += [LogLine(at, f"{text}\n".encode()) for text in texts]
        self._wake()

    def end(self) -> None:
        self.is_running = False
        self._wake()

    def restart(self) -> None:
        self.previous, self.lines = self.lines, []
        self._wake()

    async def read(self, asked: LogRequest, *, is_previous: bool = False) -> AsyncIterator[bytes]:
        """The lines asked for; with `follow` those to come as well, until the guest ends."""
        lines = (self.previous or []) if is_previous else self.lines
        left = asked.limit_bytes
        position = len(lines)
        for line in _chosen(lines, asked):
            text = line.shown(timestamps=asked.timestamps)[:left]
            left = None if left is None else left - len(text)
            yield text
            if left == 0:
                return
        while asked.follow and not is_previous:
            if position < len(lines):
                yield lines[position].shown(timestamps=asked.timestamps)
                position += 1
            elif not self.is_running:
                return
            else:
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _chosen(lines: list[LogLine], asked: LogRequest) -> list[LogLine]:
    since = asked.since
    chosen = [line for line in lines if since is None or line.at >= since]
    return chosen if asked.tail_lines is None else chosen[max(0, len(chosen) - asked.tail_lines) :]
