"""Runs a program of this machine to its end, in a process group of its own.

It never waits longer than it was told: at the deadline, and when the caller is cancelled, the group is killed and our ends of
the pipes are closed, so a grandchild that left the group or holds a pipe cannot hold us (I13). Output is bounded: only the end
of each stream is kept. `this_mac.py` is the one that calls it.
"""

import asyncio
import errno
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from applecart.errors import ApplecartError, BadInput, DeadlineExceeded, Transient
from applecart.tart.mac import Ended

KEPT_OUT_BYTES = 1 << 20  # a listing that lost its head is no listing; 1 MiB holds thousands of images
KEPT_ERR_BYTES = 64 << 10  # the last words are what tells a failure
PIPES_OUTLIVE_S = 1.0  # a program has ended although a child of it still holds a pipe
DYING_S = 2.0  # SIGKILL works at once, except on a process that waits for a dead disk
NEVER_STARTS = {
    errno.ENOENT,
    errno.EACCES,
    errno.ENOTDIR,
    errno.ENOEXEC,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.E2BIG,
}
STDOUT, STDERR = 1, 2


class Tail:
    """The end of a stream."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * self._limit_bytes:  # cutting each time would copy the whole for every line
            del self._kept[: -self._limit_bytes]

    def __bytes__(self) -> bytes:
        return bytes(self._kept[-self._limit_bytes :])


class Exits(asyncio.SubprocessProtocol):
    """Knows when its program has exited."""

    exited: asyncio.Event


class _Collected(Exits):
    def __init__(self, kept_out_bytes: int, on_output: Callable[[bytes], None] | None) -> None:
        self.exited = asyncio.Event()
        self.tails = {STDOUT: Tail(kept_out_bytes), STDERR: Tail(KEPT_ERR_BYTES)}
        self.drained = asyncio.Event()
        self._open = {STDOUT, STDERR}
        self._on_output = on_output

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        self.tails[fd].add(data)
        if fd == STDOUT and self._on_output:
            self._on_output(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.exited.set()


async def spawn(
    protocol: Exits, argv: Sequence[str], env: Mapping[str, str] | None, *, stdin: int, output: int = PIPE
) -> asyncio.SubprocessTransport:
    """In a session of its own. Whoever is cancelled here leaves nothing behind either."""
    start = asyncio.get_running_loop().subprocess_exec(
        lambda: protocol, *argv, stdin=stdin, stdout=output, stderr=output, env=environment(env), start_new_session=True
    )
    spawning = asyncio.ensure_future(start)
    try:
        transport, _ = await asyncio.shield(spawning)
    except (OSError, ValueError) as error:
        raise cannot_start(argv, error) from None
    except asyncio.CancelledError:
        # asyncio itself would lose the pipes that it has not connected yet.
        with suppress(OSError, ValueError):
            await end((await spawning)[0], protocol.exited)
        raise
    return transport


async def run_program(
    argv: Sequence[str],
    *,
    deadline_s: float | None,
    env: Mapping[str, str] | None = None,
    on_output: Callable[[bytes], None] | None = None,
    kept_out_bytes: int = KEPT_OUT_BYTES,
) -> Ended:
    watched = _Collected(kept_out_bytes, on_output)
    transport = await spawn(watched, argv, env, stdin=DEVNULL)
    try:
        async with asyncio.timeout(deadline_s):
            await watched.exited.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(PIPES_OUTLIVE_S):
                await watched.drained.wait()
        return Ended(exit_code(transport), bytes(watched.tails[STDOUT]), bytes(watched.tails[STDERR]))
    except TimeoutError:
        raise DeadlineExceeded(f"{argv[0]} did not end within {deadline_s:g} s and was killed") from None
    finally:
        await end(transport, watched.exited)


def environment(more: Mapping[str, str] | None) -> dict[str, str]:
    return {**os.environ, **(more or {})}


def expect_program(argv: Sequence[str], environ: Mapping[str, str]) -> None:
    """For one that a shell will start: its own refusal would come too late, and as text."""
    if shutil.which(argv[0], path=environ.get("PATH")) is None:
        raise BadInput(f"{argv[0]} cannot be started: no such program; install it or name another program")


def exit_code(transport: asyncio.SubprocessTransport) -> int:
    """As shells say it: 128 + N for signal N."""
    code = transport.get_returncode()
    assert code is not None
    return code if code >= 0 else 128 - code


def cannot_start(argv: Sequence[str], error: OSError | ValueError) -> ApplecartError:
    if isinstance(error, ValueError):  # a NUL in a word
        return BadInput(f"{argv[0]!r} cannot be started: {error}")
    sentence = f"{argv[0]} cannot be started: {os.strerror(error.errno) if error.errno else error}"
    if error.errno in NEVER_STARTS:
        return BadInput(f"{sentence}; install it or name another program")
    return Transient(sentence)


async def end(transport: asyncio.SubprocessTransport, exited: asyncio.Event) -> None:
    """The group is dead and the pipes are closed, or the kernel does not let it die; we go on either way."""
    try:
        if not exited.is_set():
            kill_group(transport.get_pid())
            # Its locks are free only when it is really gone, and whoever killed it may count on that. Closing first would let
            # asyncio collect the dead child before its own watcher does, and its code would be lost.
            with suppress(TimeoutError):
                async with asyncio.timeout(DYING_S):
                    await exited.wait()
    finally:
        transport.close()


def kill_group(pid: int) -> None:
    # macOS answers EPERM for a group of zombies, and for one that belongs to root.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
