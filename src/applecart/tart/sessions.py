"""Programs with their streams in our hands: over pipes, or over a terminal.

Reading is paced by whoever reads, so a program that prints faster than its reader takes waits in the kernel. `kill` ends the
whole process group and closes our ends, so nothing it started can hold us (I13).
"""

import asyncio
import fcntl
import os
import struct
import termios
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress

from applecart.errors import Transient
from applecart.tart.programs import Exits, end, environment, exit_code, expect_program, spawn

PIECE_BYTES = 32 << 10
BUFFERED_BYTES = 64 << 10
END_OF_INPUT = b"\x04"  # what a person types to end the input of a terminal

# A terminal tells its size to the session it controls, and becomes that of a session by being opened in it.
_IN_TERMINAL = 'tty=$1; shift; exec "$@" <>"$tty" >&0 2>&1'


class _Streams(SubprocessStreamProtocol, Exits):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=BUFFERED_BYTES, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


async def _spawn(
    argv: Sequence[str], env: Mapping[str, str] | None, stream: int
) -> tuple[asyncio.SubprocessTransport, _Streams]:
    streams = _Streams(asyncio.get_running_loop())
    return await spawn(streams, argv, env, stdin=stream, output=stream), streams


class PipeSession:
    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        self._transport = transport
        self._streams = streams

    async def read_out(self) -> bytes:
        return await _piece(self._streams.stdout)

    async def read_err(self) -> bytes:
        return await _piece(self._streams.stderr)

    async def write(self, data: bytes) -> None:
        await _hand_over(self._streams.stdin, data)

    async def close_stdin(self) -> None:
        if self._streams.stdin:
            self._streams.stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        """Pipes have no size."""

    async def wait(self) -> int:
        await self._streams.exited.wait()
        return exit_code(self._transport)

    async def kill(self) -> None:
        _drop(self._streams.stdin)
        await end(self._transport, self._streams.exited)


class TerminalSession:
    def __init__(
        self,
        transport: asyncio.SubprocessTransport,
        streams: _Streams,
        source: asyncio.ReadTransport,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._transport = transport
        self._streams = streams
        self._source = source
        self._reader = reader
        self._writer = writer

    async def read_out(self) -> bytes:
        return await _piece(self._reader)

    async def read_err(self) -> bytes:
        return b""

    async def write(self, data: bytes) -> None:
        await _hand_over(self._writer, data)

    async def close_stdin(self) -> None:
        await _hand_over(self._writer, END_OF_INPUT)

    def resize(self, columns: int, rows: int) -> None:
        pipe = self._writer.get_extra_info("pipe")
        with suppress(OSError, ValueError, struct.error):  # closed, or no size a terminal can have
            fcntl.ioctl(pipe.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        await self._streams.exited.wait()
        return exit_code(self._transport)

    async def kill(self) -> None:
        try:
            await end(self._transport, self._streams.exited)
        finally:
            self._source.close()
            _drop(self._writer)
            self._reader.feed_eof()


async def open_pipes(argv: Sequence[str], env: Mapping[str, str] | None) -> PipeSession:
    return PipeSession(*await _spawn(argv, env, asyncio.subprocess.PIPE))


async def open_terminal(argv: Sequence[str], env: Mapping[str, str] | None) -> TerminalSession:
    expect_program(argv, environment(env))
    try:
        return await _open_terminal(argv, env)
    except OSError as error:  # a host has a few hundred terminals, and a process not many more handles
        raise Transient(f"no terminal for {argv[0]}: {error.strerror or error}") from None


async def _open_terminal(argv: Sequence[str], env: Mapping[str, str] | None) -> TerminalSession:
    ours, theirs = os.openpty()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as undo:  # cancelled at any moment, nothing is left
        to_program = undo.enter_context(os.fdopen(ours, "wb", 0))
        with os.fdopen(theirs, "rb", 0):
            from_program = undo.enter_context(os.fdopen(os.dup(ours), "rb", 0))
            words = ["/bin/sh", "-c", _IN_TERMINAL, "terminal", os.ttyname(theirs), *argv]
            transport, streams = await _spawn(words, env, theirs)
        undo.push_async_callback(end, transport, streams.exited)
        reader = asyncio.StreamReader(BUFFERED_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        source, _ = await loop.connect_read_pipe(lambda: protocol, from_program)
        undo.callback(source.close)
        flow = asyncio.streams.FlowControlMixin(loop)
        sink, _ = await loop.connect_write_pipe(lambda: flow, to_program)
        undo.pop_all()
    return TerminalSession(transport, streams, source, reader, asyncio.StreamWriter(sink, flow, None, loop))


async def _piece(stream: asyncio.StreamReader | None) -> bytes:
    # Linux says EIO where a terminal that everybody left should say that it ended.
    with suppress(OSError):
        return await stream.read(PIECE_BYTES) if stream else b""
    return b""


async def _hand_over(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    with suppress(OSError, RuntimeError):  # nobody reads any longer
        if stream and not stream.is_closing():
            stream.write(data)
            await stream.drain()


def _drop(stream: asyncio.StreamWriter | None) -> None:
    if stream and stream.transport.get_write_buffer_size():
        stream.transport.abort()  # closing would wait until somebody has read the rest
    elif stream:
        stream.close()
