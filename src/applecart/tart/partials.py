"""Keeps a pull that did not finish, so that the next one goes on where it stood.

Such a pull leaves `tmp/<md5 of its image>`. Every Tart command but pull and clone begins by deleting what nobody has locked in
`tmp`, so each of ours locks the partials itself for that moment; one that nobody works on is locked all the time, against other
people's commands too. Our locks are shared ones: a pull waits for them, a moment, and never starts from zero. Nothing here
deletes anything: a partial that nobody came back for, or that is in the way of another, is let go, and the next command cleans
it away.
"""

import asyncio
import fcntl
import hashlib
import math
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from applecart.clock import Clock

T = TypeVar("T")

CLEANS_WITHIN_S = 3.0  # a command cleans milliseconds after its start; then it needs no guard
HELD_S = 3600.0  # nobody retries a pull for longer, and another person's pull of the same image waits for our lock
KEPT_S = 24 * 3600.0  # from our own commands; what nobody wanted for a day is rubbish
_PARTIAL = re.compile(r"[0-9a-f]{32}")  # what else lies there is left to Tart's cleaning


def partial_name(image: str) -> str:
    """As Tart names it; a reference without tag or digest means `latest`."""
    is_whole = "@" in image or ":" in image.rpartition("/")[2]
    return hashlib.md5((image if is_whole else f"{image}:latest").encode(), usedforsecurity=False).hexdigest()


async def killed(program: asyncio.Task[T]) -> None:
    """Cancelling the call of a program kills it and everything it started."""
    program.cancel()
    await asyncio.wait([program])


class _Lock:
    """A shared lock on a folder. Goes with the object: an agent that is dropped holds nothing."""

    def __init__(self, path: Path) -> None:
        """Raises OSError when a pull has it, or it is gone."""
        self._handle = -1
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise
        self._handle = handle

    def release(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    __del__ = release


class Partials:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._tmp = home / "tmp"
        self._clock = clock
        self._held: dict[str, _Lock] = {}
        self._seen_at: dict[str, float] = {}
        self._left_at: dict[str, float] = {}  # by a pull of ours
        self._dropped: set[str] = set()
        self._pulling: Counter[str] = Counter()
        self._guards: list[dict[str, _Lock]] = []  # one per command that may be cleaning right now
        self._dying = 0  # pulls of ours that are being killed
        self._changed = asyncio.Event()

    def keep(self) -> None:
        """Lock every partial that nobody works on, as long as somebody may come back for it."""
        names = {name for name in self._names() if not self._pulling[name]}
        self._dropped &= names
        self._seen_at = {name: self._seen_at.get(name, self._clock.monotonic()) for name in names}
        self._left_at = {name: at for name, at in self._left_at.items() if name in names}
        wanted = {name for name in names if self._age_s(name) < HELD_S}
        for name in self._held.keys() - wanted:
            self._held.pop(name).release()
        for name in wanted - self._held.keys():
            with suppress(OSError):
                self._held[name] = _Lock(self._tmp / name)

    def drop(self, wanted: Iterable[str]) -> bool:
        """Keep only those of these images from now on, until somebody pulls one of the others. False when none was dropped."""
        kept = {partial_name(image) for image in wanted}
        going = {name for name in self._names() if name not in kept and not self._pulling[name]}
        self._dropped |= going
        for locks in (self._held, *self._guards):
            for name in locks.keys() & going:
                locks.pop(name).release()
        return bool(going)

    def let_go(self) -> None:
        """Every lock, as a process that ends does."""
        for guard in self._guards:
            self._end(guard)
        while self._held:
            self._held.popitem()[1].release()

    @asynccontextmanager
    async def pulling(self, image: str, start: Callable[[], asyncio.Task[T]]) -> AsyncIterator[asyncio.Task[T]]:
        """Around a pull, which locks its partial itself; an error in the body kills it."""
        name = partial_name(image)
        self._pulling[name] += 1
        self._dropped.discard(name)
        if held := self._held.pop(name, None):
            held.release()
        pull = start()
        try:
            yield pull
        except BaseException:
            await self.kill(lambda: killed(pull))
            raise
        finally:
            self._pulling[name] -= 1
            self._left_at[name] = self._clock.monotonic()
            self.keep()
            self._tell()

    async def kill(self, end: Callable[[], Awaitable[None]]) -> None:
        """End a pull. Its lock dies with it, so nothing of ours cleans from then until we have locked what is left."""
        self._dying += 1
        try:
            while self._guards:
                await self._change()
        finally:  # also when we are cancelled once more while we wait
            try:
                await end()
            finally:
                self._dying -= 1
                self.keep()
                self._tell()

    @asynccontextmanager
    async def cleaning(self, *, goes_on: bool = False) -> AsyncIterator[None]:
        """Around a command that cleans. The guard ends with the command, or earlier, when it has surely cleaned.

        Around the start of one that `goes_on`: it cleans after its start has returned, so only time ends the guard.
        """
        while self._dying:
            await self._change()
        self.keep()  # also lets go of what is too old by now
        guard = self._lock_all()
        self._guards.append(guard)
        timer = asyncio.get_running_loop().call_later(CLEANS_WITHIN_S, self._end, guard)
        try:
            yield
        finally:
            if not goes_on:
                timer.cancel()
                self._end(guard)

    def _end(self, guard: dict[str, _Lock]) -> None:
        if any(it is guard for it in self._guards):
            self._guards = [it for it in self._guards if it is not guard]
            for lock in guard.values():
                lock.release()
            self._tell()

    def _lock_all(self) -> dict[str, _Lock]:
        locks: dict[str, _Lock] = {}
        for name in self._names():
            if self._age_s(name) < KEPT_S:
                with suppress(OSError):
                    locks[name] = _Lock(self._tmp / name)
        return locks

    def _age_s(self, name: str) -> float:
        """Since a pull of ours ended. Of those that others left, an earlier agent above all, since it last grew: an agent that
        is started every day must not find them new every day. A clock that was wrong then makes them no younger."""
        now_s = self._clock.monotonic()
        if name in self._dropped:
            return math.inf
        if name in self._left_at:
            return now_s - self._left_at[name]
        seen_s = now_s - self._seen_at.setdefault(name, now_s)
        return max(seen_s, self._clock.now().timestamp() - _grown_at(self._tmp / name))

    def _names(self) -> list[str]:
        with suppress(OSError):
            return [name for name in os.listdir(self._tmp) if _PARTIAL.fullmatch(name)]
        return []

    async def _change(self) -> None:
        changed = self._changed
        await changed.wait()

    def _tell(self) -> None:
        """Wake everybody who waits for a change, once."""
        self._changed.set()
        self._changed = asyncio.Event()


def _grown_at(partial: Path) -> float:
    """When anything in it was last written to, by the wall clock; infinitely late when that cannot be told."""
    try:
        with os.scandir(partial) as files:
            return max([partial.lstat().st_mtime, *(file.stat(follow_symlinks=False).st_mtime for file in files)])
    except OSError:
        return math.inf
