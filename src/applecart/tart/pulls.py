"""Pulls and pushes are judged by progress, not by total time: on a thin line 40 GB take hours, and are fine.

Progress is output, or bytes that grow in the store: a pull that waits for another one's lock lives as long as the other does.
`progress_of` reads Tart's lines; `StallWatch` decides; `driver.py` kills. Never raises on what Tart prints.
"""

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from applecart.tart.home import bytes_in

LOOK_EVERY_S = 5.0  # a look reads a few dozen folder entries
LONGEST_LINE_BYTES = 4096  # of what is kept until its end comes
_ESCAPES = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_PERCENT = re.compile(r"(\d{1,3})%")


class PullProgress(msgspec.Struct, frozen=True):
    line: str  # Tart's last words
    percent: int | None  # of the disk; None while it does something else


class ProgressReader:
    """Turns pieces of output into progress, whatever way they are cut."""

    def __init__(self, on_progress: Callable[[PullProgress], None] | None = None) -> None:
        self._on_progress = on_progress
        self._rest = b""
        self.output_bytes = 0

    def feed(self, data: bytes) -> None:
        self.output_bytes += len(data)
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + data)
        self._rest = self._rest[-LONGEST_LINE_BYTES:]
        for line in lines:
            if self._on_progress and (progress := progress_of(line)):
                self._on_progress(progress)


def progress_of(line: bytes) -> PullProgress | None:
    text = " ".join(_ESCAPES.sub(b"", line).decode("utf-8", "replace").split())
    if not text:
        return None
    found = _PERCENT.fullmatch(text)
    return PullProgress(text, min(100, int(found[1])) if found else None)


class StallWatch:
    """Knows since when nothing moved."""

    def __init__(self, stall_s: float, now_s: float) -> None:
        self._stall_s = stall_s
        self._moved_at_s = now_s
        self._last: tuple[int, int] | None = None

    def is_stalled(self, output_bytes: int, store_bytes: int, now_s: float) -> bool:
        if self._last is None or output_bytes > self._last[0] or store_bytes > self._last[1]:
            self._moved_at_s = now_s
        # Bytes that went away (another command cleaned up) must not hide the next ones that come.
        self._last = (output_bytes, store_bytes)
        return now_s - self._moved_at_s >= self._stall_s


def store_bytes(home: Path) -> int:
    """What downloads occupy: `tmp` and `cache`. Shrinks when somebody cleans up."""
    return sum(bytes_in(home / part) for part in ("tmp", "cache"))
