"""What the agent may do to the Mac it runs on: a few verbs, so that a simulated Mac can stand in for a real one.

`this_mac.py` carries them out for real; `applecart.sim.mac` simulates them, also on virtual time. Every verb is an external
call: the agent may be killed before and after each, and must find its way on again (D10). Nothing here knows Tart.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec


class Ended(msgspec.Struct, frozen=True):
    """How a program ended. A signal N reads as code 128 + N, as shells say it."""

    code: int
    out: bytes = b""
    err: bytes = b""


class Process(msgspec.Struct, frozen=True):
    """A process that is alive. Its `began` differs from that of any other process that ever had its pid."""

    pid: int
    began: str
    command: str  # argv joined by spaces, as `ps` shows it


class RunEnd(msgspec.Struct, frozen=True):
    """How a detached program ended, also when nobody was looking: code None means that nobody recorded it."""

    code: int | None
    at: datetime | None


class Disk(msgspec.Struct, frozen=True):
    total_bytes: int
    free_bytes: int

    @property
    def free_percent(self) -> float:
        """A disk of unknown size counts as free: pressure is only claimed when it was measured."""
        return 100.0 * self.free_bytes / self.total_bytes if self.total_bytes else 100.0


class Detached(Protocol):
    """A program that outlives the agent."""

    @property
    def pid(self) -> int | None:
        """Of the program itself; None when it is not known (any more)."""

    async def wait(self) -> RunEnd:
        """Returns once it has ended; at once when it had ended before. A look that fails is no end."""

    async def signal(self, number: int) -> bool:
        """False when it has ended: whoever has its pid by then is never signalled. Raises when that cannot be seen."""


class Session(Protocol):
    """A program with its streams in our hands. `kill` ends it and everything it started."""

    async def read_out(self) -> bytes:
        """The next piece of stdout; empty at its end."""

    async def read_err(self) -> bytes:
        """The next piece of stderr; empty at its end. A terminal has none."""

    async def write(self, data: bytes) -> None:
        """To stdin; returns when there is room for more. Harmless when nobody reads any longer."""

    async def close_stdin(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def wait(self) -> int: ...

    async def kill(self) -> None: ...


class Connection(Protocol):
    """A TCP connection to a guest."""

    async def read(self) -> bytes:
        """The next piece; empty at the end."""

    async def write(self, data: bytes) -> None: ...

    async def aclose(self) -> None: ...


class Mac(Protocol):
    async def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float | None,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        folder: Path | None = None,
    ) -> Ended:
        """Run a program to its end, in a process group of its own.

        At the deadline, and when the caller is cancelled, the whole group is killed and its pipes are closed, so that no
        grandchild can hold us (I13); the deadline raises `applecart.errors.DeadlineExceeded`. `env` is added to ours and may
        hold secrets; argv never does. `on_output` sees stdout as it comes. A program that does not exist raises `BadInput`.
        An agent that is killed meanwhile leaves it running; with a `folder`, which is made new and gone at the end, the next
        one can `adopt` it there.
        """

    async def start(self, argv: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> Detached:
        """Start a program that outlives us, in a session of its own; its output is appended to `log`.

        It starts at most once per folder, ever: `folder/started` is taken before the program, `folder/pid` names it, and
        `folder/exit` holds its code once it has ended, with the time as the file's own. Raises `AlreadyStarted` when the folder
        is taken.
        """

    async def adopt(self, folder: Path) -> Detached | None:
        """What was started in the folder, by whichever agent; None when nothing was, and from then on nothing can be."""

    async def open(self, argv: Sequence[str], *, tty: bool = False, env: Mapping[str, str] | None = None) -> Session:
        """Start a program and hold its streams."""

    async def processes(self) -> list[Process]:
        """Everything that runs."""

    def signal(self, pid: int, number: int) -> bool:
        """Send a signal; False when there is no such process."""

    def disk(self, path: Path) -> Disk:
        """The file system that holds the path. Raises OSError."""

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        """Raises `applecart.errors.Unreachable` or `DeadlineExceeded`."""
