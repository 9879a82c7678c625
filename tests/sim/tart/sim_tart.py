"""One simulated Tart, two ways in: inside this process on virtual time, and as a real executable on the real loop.

A test file that takes the `tart` fixture of the one is run again with that of the other.
"""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from applecart.clock import Clock
from applecart.sim.mac import SimulatedMac
from applecart.sim.tart.guest_life import read_running
from applecart.sim.tart.json_file import save
from applecart.sim.tart.store import Store
from applecart.tart.mac import Detached, Ended, Mac, Session
from applecart.tart.this_mac import ThisMac

EXECUTABLE = (sys.executable, "-m", "applecart.sim.tart.executable")
DEADLINE_S = 3600.0  # virtual; a real command takes a fraction of a second, and pytest ends a hung one
IMAGE = "ghcr.io/acme/macos:15"


class SimTart:
    def __init__(self, mac: Mac, program: tuple[str, ...], home: Path, step: int = 1) -> None:
        self.step = step  # through long tables: a process per row is slow
        self.mac = mac
        self.home = home
        self._program = program
        self._runs = 0

    async def run(self, *argv: str, env: Mapping[str, str] | None = None, deadline_s: float = DEADLINE_S) -> Ended:
        return await self.mac.run([*self._program, *argv], deadline_s=deadline_s, env={**self._env, **(env or {})})

    async def out(self, *argv: str) -> str:
        """Of a command that must work."""
        ended = await self.run(*argv)
        assert ended.code == 0, ended
        return ended.out.decode()

    async def start(self, vm: str, *options: str) -> tuple[Detached, Path]:
        """The running VM and its log."""
        self._runs += 1
        log = self.home.parent / f"{vm}-{self._runs}.log"
        folder = self.home.parent / f"run-{self._runs}"
        words = [*self._program, "run", vm, "--no-graphics", *options]
        return await self.mac.start(words, folder=folder, log=log, env=self._env), log

    async def boot(self, vm: str, *options: str) -> tuple[Detached, Path, str]:
        """Started, and answering at its address."""
        run, log = await self.start(vm, *options)
        address = await self.out("ip", vm, "--wait", "60")
        return run, log, address.strip()

    async def session(self, *argv: str, tty: bool = False) -> Session:
        return await self.mac.open([*self._program, *argv], tty=tty, env=self._env)

    def rules(self, *rules: dict[str, object]) -> None:
        save(self.home / "sim" / "guests.json", list(rules))

    def faults(self, *faults: dict[str, object]) -> None:
        save(self.home / "faults.json", {"faults": list(faults)})

    async def rows(self) -> list[dict[str, object]]:
        return msgspec.json.decode(await self.out("list", "--format", "json"), type=list[dict[str, object]])

    @property
    def _env(self) -> dict[str, str]:
        return {"TART_HOME": str(self.home), "CI": "1"}


def in_process(tmp_path: Path, clock: Clock) -> SimTart:
    return SimTart(SimulatedMac(tmp_path / "tart", clock), ("/usr/local/bin/tart",), tmp_path / "tart")


def executable(tmp_path: Path) -> SimTart:
    return SimTart(ThisMac(), EXECUTABLE, tmp_path / "tart", step=4)


def end_vms(tart: SimTart) -> None:
    """Real processes outlive their test otherwise."""
    store = Store(tart.home)
    for vm in store.running_names():
        if running := read_running(store, vm):
            tart.mac.signal(running.pid, signal.SIGKILL)
