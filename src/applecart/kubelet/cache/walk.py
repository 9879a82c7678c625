"""Going through what a guest left in its image, which may have been made to keep us busy.

A walk is bounded in everything a guest can multiply: entries of every kind, bytes that are remembered, and time. It happens in
a thread, which ends with the patience of whoever waits for it (I13). It follows no link and opens no file.
"""

import os
import stat
from asyncio import timeout, to_thread
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TypeVar

from applecart.errors import Permanent

T = TypeVar("T")

DEADLINE_S = 120.0  # a full cache takes seconds
MOST_ENTRIES = 2_000_000  # a full cache has tens of thousands; more is a guest that wants us busy
MOST_BYTES = 32 << 20  # of what is remembered, ten times what a full cache needs; the whole agent is meant to fit into 60 MB
EACH_BYTES = 64  # what Python adds to every name that is remembered


class TooMuchToMeasure(Permanent):
    """An image holds more than any cache."""


class Walk:
    """One walk. Not for several threads."""

    def __init__(self, is_given_up: Callable[[], bool] = lambda: False) -> None:
        self._is_given_up = is_given_up
        self._entries = 0
        self._bytes = 0

    def entries(self, folder: bytes) -> Iterator["os.DirEntry[bytes]"]:
        """None when there is no such folder, or a link in its place."""
        self._go_on()  # a folder may be one of a million empty ones
        if not _is_folder(folder):
            return
        with os.scandir(folder) as found:
            for entry in found:
                self._go_on()
                self._entries += 1
                if self._entries > MOST_ENTRIES:
                    raise TooMuchToMeasure(f"a cache image holds more than {MOST_ENTRIES} entries and is not measured")
                yield entry

    def remember(self, name: bytes) -> bytes:
        """For whatever is kept until the walk ends."""
        self._bytes += len(name) + EACH_BYTES
        if self._bytes > MOST_BYTES:
            raise TooMuchToMeasure(f"the names in a cache image take more than {MOST_BYTES >> 20} MiB and are not measured")
        return name

    def _go_on(self) -> None:
        if self._is_given_up():
            raise TooMuchToMeasure("a cache image could not be measured in time")


async def walked(what: Callable[[Path, Walk], T], mount: Path) -> T:
    """Raises TimeoutError at the deadline. Nothing goes on for long after this returned, raised or was cancelled."""
    given_up = Event()
    try:
        async with timeout(DEADLINE_S):
            return await to_thread(what, mount, Walk(given_up.is_set))
    finally:
        given_up.set()


def _is_folder(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
