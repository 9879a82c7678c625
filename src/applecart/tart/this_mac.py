"""The Mac we run on: the verbs of `mac.py` carried out for real, on macOS and, for tests and demos, on Linux.

Nothing else in the agent starts a process, opens a connection to a guest or asks for disk space. How each is done stands in
`programs.py` (to the end), `detached.py` (outliving us), `sessions.py` (streams in hand) and `guest_connection.py`.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from applecart.errors import Transient
from applecart.tart.detached import DetachedRun, adopt, run_recorded, start_detached
from applecart.tart.guest_connection import connect_guest
from applecart.tart.known_processes import PS_DEADLINE_S, KnownProcesses, send
from applecart.tart.mac import Disk, Ended, Process, Session
from applecart.tart.programs import run_program
from applecart.tart.ps import PS_ARGV, PS_ENV, parse_processes
from applecart.tart.sessions import open_pipes, open_terminal
from applecart.tart.stream_connection import StreamConnection

PS_KEPT_BYTES = 16 << 20  # a process that is cut off the list would read as one that has ended
IFCONFIG_DEADLINE_S = 5.0


class ThisMac:
    def __init__(self, *, binds_to_interface: bool = sys.platform == "darwin") -> None:
        self._binds_to_interface = binds_to_interface
        self._known = KnownProcesses()

    async def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float | None,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        folder: Path | None = None,
    ) -> Ended:
        if folder is not None:
            return await run_recorded(argv, folder, deadline_s=deadline_s, env=env, on_output=on_output)
        return await run_program(argv, deadline_s=deadline_s, env=env, on_output=on_output)

    async def start(self, argv: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> DetachedRun:
        return await start_detached(argv, folder, log, env, self._known)

    async def adopt(self, folder: Path) -> DetachedRun | None:
        return await adopt(folder, self._known)

    async def open(self, argv: Sequence[str], *, tty: bool = False, env: Mapping[str, str] | None = None) -> Session:
        return await open_terminal(argv, env) if tty else await open_pipes(argv, env)

    async def processes(self) -> list[Process]:
        return parse_processes(await self._ask(PS_ARGV))

    def signal(self, pid: int, number: int) -> bool:
        return send(pid, number)

    def disk(self, path: Path) -> Disk:
        stat = os.statvfs(path)
        return Disk(stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize)

    async def connect(self, address: str, port: int, *, deadline_s: float) -> StreamConnection:
        return await connect_guest(address, port, deadline_s, self._ifconfig if self._binds_to_interface else None)

    async def _ifconfig(self) -> str:
        answer = await run_program(["/sbin/ifconfig"], deadline_s=IFCONFIG_DEADLINE_S)
        return answer.out.decode("utf-8", "replace")

    async def _ask(self, argv: Sequence[str]) -> str:
        answer = await run_program(argv, deadline_s=PS_DEADLINE_S, env=PS_ENV, kept_out_bytes=PS_KEPT_BYTES)
        if answer.code:
            raise Transient(f"{argv[0]} ended with code {answer.code}: {answer.err[-200:].decode('utf-8', 'replace').strip()}")
        return answer.out.decode("utf-8", "replace")
