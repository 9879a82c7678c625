"""A simulated Mac (`applecart.tart.mac.Mac`): simulated processes, disk, guests and Tart, on real or on virtual time.

What it runs survives the agent: a cancelled call kills its program, as on a real Mac, but a dead agent kills nothing. Tests
switch faults here and look at `calls`, `boots` and `vms()`; the state of Tart itself is in its home on disk, where the agent
finds it too.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded
from applecart.sim import cache_tools, mac_network
from applecart.sim.mac_programs import Host, is_known, run_on
from applecart.sim.mac_sessions import SimulatedDetached, SimulatedSession, record
from applecart.sim.mac_streams import Collected, Held, Logged
from applecart.sim.tart.guest_life import Boot, read_boots
from applecart.sim.tart.host_facts import DISK_BYTES, HostFacts, Pace
from applecart.sim.tart.interpreter import tart
from applecart.sim.tart.kernel import Kernel, Streams
from applecart.sim.tart.processes import FIRST_PID, ProcessTable, SimulatedProcess
from applecart.sim.tart.registry import Registry
from applecart.sim.tart.store import Store, stamp
from applecart.sim.tart.world import World
from applecart.tart.detached import adopt, renew
from applecart.tart.failures import AlreadyStarted
from applecart.tart.known_processes import KnownProcesses
from applecart.tart.mac import Connection, Detached, Disk, Ended, Process, Session

TART_NAMES = frozenset({"tart", "applecart-sim-tart"})
SHOWN_TART = "/usr/local/lib/tart.app/Contents/MacOS/tart"  # what the wrapper in /usr/local/bin becomes


class Call(msgspec.Struct, frozen=True):
    """One verb of the agent."""

    verb: str
    argv: tuple[str, ...] = ()

    @property
    def tart(self) -> str:
        """The command of Tart, if it is one."""
        return self.argv[1] if len(self.argv) > 1 and _is_tart(self.argv) else ""


Hook = Callable[[Call], Awaitable[None]]


class SimulatedMac:
    def __init__(
        self,
        home: Path,
        clock: Clock,
        *,
        name: str = "mac-1",
        disk_bytes: int = DISK_BYTES,
        pace: Pace | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.home = home
        self.store = Store(home)
        self.calls: list[Call] = []
        self.before_call: Hook | None = None
        self.after_call: Hook | None = None
        self.on_kill_agent: Callable[[], None] = lambda: None
        self.agent_is_dead = False
        self.table = ProcessTable(clock, self.kill_agent)
        self.host = Host(self.store, self.table)
        self.cache = cache_tools.CacheDisk()
        self._clock = clock
        self._pace = pace or Pace()
        self._env = {"HOME": "/Users/m1", **(env or {})}
        self._ours: dict[Collected | Held, None] = {}  # streams that end in the agent, in order
        facts = HostFacts.read(self.store.sim)
        facts.disk_bytes = disk_bytes
        facts.write(self.store.sim)

    # What a test looks at and switches.
    @property
    def registry(self) -> Registry:
        return Registry(self.store.sim, self._env)

    @property
    def boots(self) -> list[Boot]:
        """Every start of a guest, in order."""
        return read_boots(self.store)

    def vms(self) -> list[str]:
        return self.store.local_names()

    def running(self) -> list[str]:
        return self.store.running_names()

    def fill_disk(self, free_bytes: int) -> None:
        """Let something that is not Tart's take the rest."""
        facts = HostFacts.read(self.store.sim)
        facts.other_bytes += self.store.free_bytes() - free_bytes
        facts.write(self.store.sim)

    def lose_gui_session(self) -> None:
        self.host.set_gui_session(exists=False)

    @property
    def loginwindow_is_dead(self) -> bool:
        return self.host.loginwindow_is_dead

    @loginwindow_is_dead.setter
    def loginwindow_is_dead(self, value: bool) -> None:
        self.host.loginwindow_is_dead = value

    def seal_auto_login(self) -> None:
        """loginwindow comes back without logging anybody in."""
        self.host.auto_login_is_sealed = True

    async def reboot(self) -> None:
        """Everything that ran is gone, nobody recorded how, and pids are given out anew. The agent is the caller's to kill."""
        await self.table.kill_all()
        self.table.next_pid = FIRST_PID
        self.host.set_gui_session(exists=not self.host.auto_login_is_sealed)

    def kill_agent(self) -> None:
        """From here on the agent does nothing, whatever its tasks still try; its programs live on."""
        self.agent_is_dead = True
        for streams in self._ours:
            streams.break_off()
        self._ours.clear()
        self.on_kill_agent()

    def start_agent(self) -> None:
        self.agent_is_dead = False

    # The verbs.
    async def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float | None,
        env: Mapping[str, str] | None = None,
        on_output: Callable[[bytes], None] | None = None,
        folder: Path | None = None,
    ) -> Ended:
        call = await self._begin("run", argv)
        streams = Collected(on_output)
        self._check(argv)
        if folder is not None:
            renew(folder)
        process = self._spawn(argv, env, streams)
        self._ours[streams] = None
        if folder is not None:
            record(folder, process)
        try:
            async with asyncio.timeout(deadline_s):
                code = await process.wait()
        except TimeoutError:
            await self._if_alive()
            await self._end(process)
            raise DeadlineExceeded(f"{' '.join(argv[:2])} did not end within {deadline_s:g} s and was killed") from None
        except asyncio.CancelledError:
            if streams in self._ours:  # cancelled by a living agent
                await self._end(process)
            raise
        finally:
            if folder is not None and streams in self._ours:
                shutil.rmtree(folder, ignore_errors=True)
            self._ours.pop(streams, None)
        await self._finish(call)
        return Ended(code, streams.seen_out, streams.seen_err)

    async def start(self, argv: Sequence[str], *, folder: Path, log: Path, env: Mapping[str, str] | None = None) -> Detached:
        call = await self._begin("start", argv)
        self._check(argv)
        _take(folder)

        async def supervise(kernel: Kernel) -> int:
            kernel.catch(signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
            program = self._spawn(argv, env, Logged(log), group=kernel.pid)
            record(folder, program)
            code = await program.wait()
            (folder / ".exit").write_text(f"{code}\n")
            stamp(folder / ".exit", self._clock.now())
            (folder / ".exit").replace(folder / "exit")
            return 0

        words = ["/bin/sh", "-c", 'mkdir "$f/started" || exit; "$@"; echo $? >"$f/exit"', "supervise", str(folder), *argv]
        supervisor = self.table.spawn(words, supervise)
        (folder / "started" / "supervisor").write_text(f"{supervisor.pid}\n")
        await asyncio.sleep(0)  # lets it start the program and say its pid
        await self._finish(call)
        return SimulatedDetached(self.table, folder, self.signal)

    async def adopt(self, folder: Path) -> Detached | None:
        call = await self._begin("adopt", (str(folder),))
        found = await adopt(folder, KnownProcesses())
        await self._finish(call)
        return SimulatedDetached(self.table, folder, self.signal) if found else None

    async def open(self, argv: Sequence[str], *, tty: bool = False, env: Mapping[str, str] | None = None) -> Session:
        call = await self._begin("open", argv)
        streams = Held(is_tty=tty)
        process = self._spawn(argv, env, streams)
        self._ours[streams] = None
        await self._finish(call)
        return SimulatedSession(self.table, process, streams, lambda: self.agent_is_dead)

    async def processes(self) -> list[Process]:
        call = await self._begin("processes")
        found = [Process(1, "Thu Jan 01 00:00:00 1970", "/sbin/launchd"), *(process.shown() for process in self.table.all())]
        await self._finish(call)
        return found

    def signal(self, pid: int, number: int) -> bool:
        if self.agent_is_dead:
            return False
        self.calls.append(Call("signal", (str(pid), str(number))))
        return self.table.signal(pid, number)

    def disk(self, path: Path) -> Disk:
        if self.cache.holds(path):
            return self.cache.disk()
        return Disk(HostFacts.read(self.store.sim).disk_bytes, self.store.free_bytes())

    async def connect(self, address: str, port: int, *, deadline_s: float) -> Connection:
        call = await self._begin("connect", (address, str(port)))
        connection = await mac_network.connect(self.store, address, port, deadline_s)
        await self._finish(call)
        return connection

    async def _begin(self, verb: str, argv: Sequence[str] = ()) -> Call:
        await self._if_alive()
        call = Call(verb, tuple(argv))
        self.calls.append(call)
        if self.before_call:
            await self.before_call(call)
            await self._if_alive()
        return call

    async def _finish(self, call: Call) -> None:
        if self.after_call:
            await self.after_call(call)
        await self._if_alive()

    async def _if_alive(self) -> None:
        if self.agent_is_dead:
            await asyncio.Event().wait()  # whoever killed it cancels its tasks

    def _check(self, argv: Sequence[str]) -> None:
        if not argv or not (_is_tart(argv) or is_known(argv) or cache_tools.is_known(argv)):
            raise BadInput(f"{argv[0] if argv else 'nothing'} cannot be started: no such program; install it or name another")

    def _spawn(
        self, argv: Sequence[str], env: Mapping[str, str] | None, streams: Streams, group: int | None = None
    ) -> SimulatedProcess:
        self._check(argv)
        environ = {**self._env, **(env or {})}

        async def program(kernel: Kernel) -> int:
            if _is_tart(argv):
                home = Path(environ.get("TART_HOME") or self.home)
                return await tart(argv[1:], environ, streams, kernel, self._clock, self._pace, home)
            world = World(self.store, environ, streams, kernel, self._clock, self._pace)
            if cache_tools.is_known(argv):
                return await self.cache.run(argv, world)
            return await run_on(self.host, argv, world)

        def close_streams() -> None:
            if isinstance(streams, Held):
                streams.end()
                self._ours.pop(streams, None)

        shown = [SHOWN_TART, *argv[1:]] if _is_tart(argv) and argv[0] == "/usr/local/bin/tart" else argv
        return self.table.spawn(shown, program, group=group, on_end=close_streams)

    async def _end(self, process: SimulatedProcess) -> None:
        self.table.signal(-process.group, signal.SIGKILL)
        await process.wait()


def _take(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        (folder / "started").mkdir(mode=0o700)
    except FileExistsError:
        raise AlreadyStarted(f"something was started in {folder} before; a run folder is used once") from None


def _is_tart(argv: Sequence[str]) -> bool:
    return os.path.basename(argv[0]) in TART_NAMES
