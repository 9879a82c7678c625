"""Which pulls are ours, so that one that outlived its agent can be ended.

A pull holds Tart's lock on its whole registry. One that hangs when its agent is killed would hold it for ever: every later pull
waits for it, stands still and is ended in its stead. So each pull runs in a folder of its own that names its process, and the
first pull of a new agent ends what it finds there. A pull that stands in no folder is a person's and is never touched.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path

from applecart.tart.mac import Detached, Mac

ENDS_WITHIN_S = 10.0  # a killed process is gone at once, unless the disk below it hangs

Kill = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]  # does what it is given when nothing fetched is lost by it


class PullRecords:
    def __init__(self, mac: Mac, folder: Path, kill: Kill) -> None:
        self._mac = mac
        self._folder = folder
        self._kill = kill
        self._has_ended_left = False  # whatever is there later is ours
        self._taken: set[str] = set()
        self._choosing = asyncio.Lock()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Path]:
        """Where one pull of ours is written down; none of an earlier agent is under way when the body begins."""
        async with self._choosing:  # or a pull that just began would be taken for one that was left
            if not self._has_ended_left:
                await self._end_left()
                self._has_ended_left = True
            name = next(name for name in map(str, count()) if name not in self._taken)
            self._taken.add(name)
        try:
            yield self._folder / name
        finally:
            self._taken.discard(name)

    async def _end_left(self) -> None:
        for name in self._names():
            if (left := await self._mac.adopt(self._folder / name)) is not None:
                await self._kill(partial(self._end, name, left))

    async def _end(self, name: str, left: Detached) -> None:
        if await left.signal(signal.SIGKILL):
            try:
                async with asyncio.timeout(ENDS_WITHIN_S):
                    await left.wait()
            except TimeoutError:
                self._taken.add(name)  # the kernel does not let it go, so its record stays

    def _names(self) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(filter(str.isdecimal, os.listdir(self._folder)))  # Finder leaves files of its own everywhere
        return []
