"""The programs that a simulated guest can run: enough of a shell, of `cat` and of `tar` for what people do with exec and cp.

A program reads its stdin as it comes and writes as fast as it is read. Its result is its exit code.
"""

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from typing import Protocol

from applecart.sim.guest import Guest

END_OF_INPUT, INTERRUPT = b"\x04", b"\x03"  # Ctrl-D and Ctrl-C at a terminal
INTERRUPTED = 130
NOT_FOUND = 127
BLOCK = b"x" * (32 << 10)  # what `flood` writes at once, the size of a client's own buffer


class Terminal(Protocol):
    """The streams of one command."""

    async def read(self) -> bytes:
        """The next piece of stdin; empty at its end."""

    async def out(self, data: bytes) -> None: ...
    async def err(self, data: bytes) -> None: ...

    async def size(self) -> tuple[int, int]:
        """The next width and height of the window."""


Program = Callable[[Guest, list[str], Terminal], Awaitable[int]]


async def run(guest: Guest, command: list[str], terminal: Terminal) -> int:
    program = PROGRAMS.get(command[0]) if command else None
    if program is None:
        await terminal.err(f"sh: {command[0] if command else ''}: not found\n".encode())
        return NOT_FOUND
    return await program(guest, command[1:], terminal)


async def attach(guest: Guest, terminal: Terminal) -> int:
    """The main process: it echoes what it is told, until its stdin ends."""
    await terminal.out(b"attached\n")
    while typed := await terminal.read():
        guest.stdin += typed
        await terminal.out(typed)
    return 0


async def _echo(_: Guest, words: list[str], terminal: Terminal) -> int:
    await terminal.out(" ".join(words).encode() + b"\n")
    return 0


async def _cat(guest: Guest, names: list[str], terminal: Terminal) -> int:
    for name in names:
        if name not in guest.files:
            await terminal.err(f"cat: {name}: No such file or directory\n".encode())
            return 1
        await terminal.out(guest.files[name])
    is_tty = getattr(terminal, "is_tty", False)
    while not names and (piece := await terminal.read()):
        if is_tty and INTERRUPT in piece:
            return INTERRUPTED
        await terminal.out(piece.partition(END_OF_INPUT)[0] if is_tty else piece)
        if is_tty and END_OF_INPUT in piece:
            break
    return 0


async def _shell(guest: Guest, words: list[str], terminal: Terminal) -> int:
    """`sh -c "echo hello >&2; exit 3"`: commands one after the other."""
    code = 0
    for line in (words[1] if words[:1] == ["-c"] and len(words) > 1 else "").split(";"):
        command = line.split()
        if not command:
            continue
        if command[0] == "exit":
            return int(command[1]) % 256 if len(command) > 1 and command[1].isdecimal() else code
        if command[-1] == ">&2":
            await terminal.err(" ".join(command[1:-1]).encode() + b"\n")
        else:
            code = await run(guest, command, terminal)
    return code


async def _flood(__: Guest, words: list[str], terminal: Terminal) -> int:
    """`flood N` writes N blocks as fast as they are taken."""
    for _ in range(int(words[0])):
        await terminal.out(BLOCK)
    return 0


async def _window(__: Guest, words: list[str], terminal: Terminal) -> int:
    """`window N` says the next N sizes of the window."""
    for _ in range(int(words[0])):
        width, height = await terminal.size()
        await terminal.out(f"{width}x{height}\n".encode())
    return 0


async def _hang(_: Guest, __: list[str], terminal: Terminal) -> int:
    await terminal.out(b"hanging\n")
    await asyncio.Event().wait()
    return 0


async def _test(guest: Guest, words: list[str], _: Terminal) -> int:
    """`test -d PATH`: is it a folder."""
    folder = words[-1].rstrip("/") + "/"
    return 0 if words[:1] == ["-d"] and any(name.startswith(folder) for name in guest.files) else 1


async def _tar(guest: Guest, words: list[str], terminal: Terminal) -> int:
    if words[:1] == ["cf"]:
        await terminal.out(_packed(guest, words[-1]))
        return 0
    folder = words[words.index("-C") + 1] if "-C" in words else "/"
    packed = bytearray()
    while piece := await terminal.read():
        packed += piece
        if packed.endswith(bytes(2 * tarfile.BLOCKSIZE)):
            break  # two empty blocks end an archive; an older client cannot close stdin
    with tarfile.open(fileobj=io.BytesIO(bytes(packed))) as archive:
        for member in archive.getmembers():
            if content := archive.extractfile(member):
                guest.files[f"{folder.rstrip('/')}/{member.name}"] = content.read()
    return 0


def _packed(guest: Guest, path: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in guest.files.items():
            if name == path or name.startswith(path.rstrip("/") + "/"):
                member = tarfile.TarInfo(name.lstrip("/"))
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


PROGRAMS: dict[str, Program] = {
    "cat": _cat,
    "echo": _echo,
    "flood": _flood,
    "hang": _hang,
    "sh": _shell,
    "tar": _tar,
    "test": _test,
    "window": _window,
}
