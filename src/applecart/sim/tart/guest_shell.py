"""Programs inside a simulated macOS guest, for `tart exec`: those every simulated guest has, and what the agent asks of a Mac.

A program is known by the last part of its path. The shell runs commands one after the other and knows `;`, `&&` and `>&2`.
"""

import asyncio
from dataclasses import dataclass, field

from applecart.clock import Clock
from applecart.sim.guest import Guest
from applecart.sim.guest_programs import END_OF_INPUT, INTERRUPT, INTERRUPTED, NOT_FOUND, PROGRAMS, Terminal
from applecart.sim.tart.guest_rules import Behaviour

DISK_BLOCKS = 50_000_000  # of 1024 bytes
LONGEST_SLEEP_S = 10**6


@dataclass(slots=True)
class Inside:
    """What a program can know of its guest."""

    vm: str
    behaviour: Behaviour
    clock: Clock
    files: dict[str, bytes] = field(default_factory=dict)
    halts: bool = False  # a program asked for it

    def guest(self) -> Guest:
        return Guest(self.clock, files=self.files)


async def run_inside(inside: Inside, command: list[str], terminal: Terminal) -> int:
    name = command[0].rpartition("/")[2] if command else ""
    words = command[1:]
    match name:
        case "true":
            return 0
        case "false":
            return 1
        case "sh" | "bash" | "zsh":
            return await _shell(inside, words, terminal)
        case "sleep":
            return await _sleep(words, terminal)
        case "shutdown" | "halt":
            inside.halts = True
            return 0
    if text := _facts(inside, name, words):
        await terminal.out(text.encode())
        return 0
    program = PROGRAMS.get(name)
    if program is None:
        await terminal.err(f"{name}: command not found\n".encode(errors="replace"))
        return NOT_FOUND
    try:
        return await program(inside.guest(), words, terminal)
    except (ValueError, IndexError, EOFError) as error:
        await terminal.err(f"{name}: {error}\n".encode(errors="replace"))
        return 1


def _facts(inside: Inside, name: str, words: list[str]) -> str:
    used = DISK_BLOCKS * inside.behaviour.disk_used_percent // 100
    if name == "df":
        return (
            "Filesystem     1024-blocks      Used Available Capacity iused      ifree %iused  Mounted on\n"
            f"/dev/disk3s1s1 {DISK_BLOCKS:>11} {used:>9} {DISK_BLOCKS - used:>9} {inside.behaviour.disk_used_percent:>7}% "
            "404167 4293970400    3%   /\n"
        )
    if name == "ps":
        return "  0.0   9824\n 12.5 204800\n  1.0  51200\n"
    if name == "sw_vers":
        return "ProductName:\t\tmacOS\nProductVersion:\t\t15.5\nBuildVersion:\t\t24F74\n"
    if name == "uname":
        return "Darwin Kernel Version 24.5.0 arm64\n" if words else "Darwin\n"
    if name == "uptime":
        return "up 1 min, 1 user, load averages: 1.20 0.80 0.40\n"
    return {"hostname": f"{inside.vm}.local\n", "whoami": "admin\n", "id": "uid=501(admin) gid=20(staff)\n"}.get(name, "")


async def _shell(inside: Inside, words: list[str], terminal: Terminal) -> int:
    script = next((words[at + 1] for at, word in enumerate(words[:-1]) if word.startswith("-") and word.endswith("c")), None)
    if script is not None:
        return (await _run_script(inside, script, terminal))[0]
    return await _listen(inside, terminal)


async def _listen(inside: Inside, terminal: Terminal) -> int:
    """A shell without a script: line by line, with a prompt and an echo where somebody sits at a terminal."""
    is_tty = getattr(terminal, "is_tty", False)
    prompt = f"admin@{inside.vm} ~ % ".encode() if is_tty else b""
    code, line = 0, b""
    await terminal.out(prompt)
    while typed := await terminal.read():
        for character in (bytes((each,)) for each in typed):
            if character == END_OF_INPUT and not line:
                return code
            if character in (b"\r", b"\n"):
                await terminal.out(b"\n" if is_tty else b"")
                code, has_ended = await _run_script(inside, line.decode("utf-8", "replace"), terminal)
                if has_ended:
                    return code
                line = b""
                await terminal.out(prompt)
            elif character in (b"\x7f", b"\b"):
                await terminal.out(b"\b \b" if is_tty and line else b"")
                line = line[:-1]
            else:
                line += character
                await terminal.out(character if is_tty else b"")
    return (await _run_script(inside, line.decode("utf-8", "replace"), terminal))[0] if line else code


async def _run_script(inside: Inside, script: str, terminal: Terminal) -> tuple[int, bool]:
    """The last exit code, and whether `exit` was among the commands."""
    code = 0
    for line in script.replace("\n", ";").split(";"):
        for part in line.split("&&"):
            command = part.split()
            if not command:
                continue
            if command[0] == "exit":
                return int(command[1]) % 256 if len(command) > 1 and command[1].isdecimal() else code, True
            if command[-1] == ">&2":
                await terminal.err(" ".join(command[1:-1]).encode() + b"\n")
                code = 0
            else:
                code = await run_inside(inside, command, terminal)
            if code:
                break
    return code, False


async def _sleep(words: list[str], terminal: Terminal) -> int:
    try:
        seconds = float(words[0])
        if not 0 <= seconds <= LONGEST_SLEEP_S:
            raise ValueError
    except (ValueError, IndexError):
        await terminal.err(b"usage: sleep seconds\n")
        return 1
    sleeping = asyncio.create_task(asyncio.sleep(seconds))
    watching = asyncio.create_task(_until_interrupted(terminal))
    try:
        await asyncio.wait((sleeping, watching), return_when=asyncio.FIRST_COMPLETED)
        return 0 if sleeping.done() else INTERRUPTED
    finally:
        sleeping.cancel()
        watching.cancel()


async def _until_interrupted(terminal: Terminal) -> None:
    """Somebody at a terminal presses Ctrl-C. Without one nobody can."""
    while getattr(terminal, "is_tty", False) and (typed := await terminal.read()):
        if INTERRUPT in typed:
            return
    await asyncio.Event().wait()
