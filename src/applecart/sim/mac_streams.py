"""The streams of a simulated program: collected, written to a log, or in somebody's hands.

When the agent is gone, so is its end of a pipe: the next write ends the program as SIGPIPE does. A log file stays.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

KEPT_BYTES = 1 << 20  # of each stream; as much as a real run keeps
BUFFERED_BYTES = 64 << 10  # of a pipe


class Collected:
    """Output that the agent waits for; no input."""

    def __init__(self, on_output: Callable[[bytes], None] | None) -> None:
        self._on_output = on_output
        self._out = bytearray()
        self._err = bytearray()
        self._is_broken = False

    def break_off(self) -> None:
        self._is_broken = True

    @property
    def seen_out(self) -> bytes:
        return bytes(self._out[-KEPT_BYTES:])

    @property
    def seen_err(self) -> bytes:
        return bytes(self._err[-KEPT_BYTES:])

    async def read(self) -> bytes:
        return b""

    async def out(self, data: bytes) -> None:
        self._check()
        _keep(self._out, data)
        if self._on_output:
            self._on_output(data)

    async def err(self, data: bytes) -> None:
        self._check()
        _keep(self._err, data)

    async def size(self) -> tuple[int, int]:
        return await _never()

    def _check(self) -> None:
        if self._is_broken:
            raise BrokenPipeError


def _keep(kept: bytearray, data: bytes) -> None:
    kept += data
    if len(kept) > 2 * KEPT_BYTES:
        del kept[:-KEPT_BYTES]


class Logged:
    """Output appended to a file that outlives everybody."""

    def __init__(self, log: Path) -> None:
        self._log = log

    async def read(self) -> bytes:
        return b""

    async def out(self, data: bytes) -> None:
        handle = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)

    async def err(self, data: bytes) -> None:
        await self.out(data)

    async def size(self) -> tuple[int, int]:
        return await _never()


async def _never() -> tuple[int, int]:
    """What has no window has no new size of it either."""
    await asyncio.Event().wait()
    return 0, 0


class Pipe:
    """Bytes from one side to the other, with as much room as a pipe has."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_ended = False  # nobody writes any more
        self._is_broken = False  # nobody reads any more
        self._moved = asyncio.Event()

    async def write(self, data: bytes) -> None:
        while len(self._held) >= BUFFERED_BYTES and not self._is_broken:
            await self._wait()
        if self._is_broken:
            raise BrokenPipeError
        self._held += data
        self._wake()

    async def read(self) -> bytes:
        while not self._held and not self._is_ended and not self._is_broken:
            await self._wait()
        data = bytes(self._held[:BUFFERED_BYTES])
        del self._held[:BUFFERED_BYTES]
        self._wake()
        return data

    def end(self) -> None:
        self._is_ended = True
        self._wake()

    def break_off(self) -> None:
        self._is_broken = True
        self._wake()

    async def _wait(self) -> None:
        await self._moved.wait()

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


class Held:
    """All streams in somebody's hands; with a terminal, errors come out with everything else."""

    def __init__(self, *, is_tty: bool) -> None:
        self.stdin = Pipe()
        self.stdout = Pipe()
        self.stderr = Pipe()
        self.sizes: asyncio.Queue[tuple[int, int]] = asyncio.Queue()
        self.is_tty = is_tty

    async def read(self) -> bytes:
        return await self.stdin.read()

    async def out(self, data: bytes) -> None:
        await self.stdout.write(data.replace(b"\n", b"\r\n") if self.is_tty else data)

    async def err(self, data: bytes) -> None:
        await (self.out(data) if self.is_tty else self.stderr.write(data))

    async def size(self) -> tuple[int, int]:
        return await self.sizes.get()

    def end(self) -> None:
        """The program is gone."""
        self.stdout.end()
        self.stderr.end()
        self.stdin.break_off()

    def break_off(self) -> None:
        """Whoever held them is gone."""
        self.stdin.end()
        self.stdout.break_off()
        self.stderr.break_off()
