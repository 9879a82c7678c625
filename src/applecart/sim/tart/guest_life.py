"""The life of a guest: it boots, gets an address, works, and halts, crashes or is told to stop.

It runs inside its `tart run` process and ends with it. `sim/running/<vm>.json` is what others may know of it: its process, its
address, whether it answers. A guest writes its own disk, so its VM is a used one from the moment it boots.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec

from applecart.sim.tart import disk_image
from applecart.sim.tart.faults import Faults, read_faults
from applecart.sim.tart.guest_rules import Behaviour, behaviour, read_rules
from applecart.sim.tart.guest_shares import Share, StatusShare, environment
from applecart.sim.tart.json_file import load, save
from applecart.sim.tart.leases import read_leases, write_leases
from applecart.sim.tart.locks import Lock
from applecart.sim.tart.store import DISK, Store, read_config, remove
from applecart.sim.tart.world import World

ASKS_AGAIN_S = 15.0  # a guest without an address asks the DHCP server again


class Running(msgspec.Struct, frozen=True):
    """What others know of a VM that runs. It counts only while the VM's lock is held."""

    pid: int
    address: str = ""
    answers: bool = False  # the guest has booted and its agent listens
    behaviour: Behaviour | None = None


class Boot(msgspec.Struct, frozen=True):
    vm: str
    disk: str
    times: int  # how often this disk was started, this one included


def running_file(store: Store, vm: str) -> Path:
    return store.sim / "running" / f"{vm}.json"


def halt_file(store: Store, vm: str) -> Path:
    """There while the guest's own `shutdown` wants it to end."""
    return store.sim / "running" / f"{vm}.halt"


def guest_files(store: Store, vm: str) -> Path:
    """What was written inside the guest."""
    return store.sim / "files" / f"{vm}.json"


def forget_run(store: Store, vm: str) -> None:
    """Of a VM that does not run (any more): its pid may be somebody else's by now."""
    remove(running_file(store, vm))
    remove(halt_file(store, vm))


def move_run(store: Store, vm: str, new_name: str) -> None:
    """What others know of a VM goes where its folder goes, also while it runs."""
    for place in (running_file, halt_file, guest_files):
        remove(place(store, new_name))
        with suppress(FileNotFoundError):
            place(store, vm).replace(place(store, new_name))


def read_running(store: Store, vm: str) -> Running | None:
    return load(running_file(store, vm), Running)


def read_boots(store: Store) -> list[Boot]:
    path = store.sim / "boots.jsonl"
    return [msgspec.json.decode(line, type=Boot) for line in path.read_bytes().splitlines()] if path.exists() else []


class Guest:
    def __init__(self, world: World, vm: str, folder: Path, shares: dict[str, Share]) -> None:
        self._world = world
        self._known_as = vm
        self._mac_address = read_config(folder).mac_address
        self._folder = folder
        disk = disk_image.read(folder / DISK)
        rules = [*read_rules(world.store.sim), *(read_faults(world.store) or Faults()).guests]
        self.behaviour = behaviour(rules, world.pace, vm, disk.image, environment(shares))
        self._status = StatusShare(shares, self.behaviour.writes_hostile)
        self._halts = asyncio.Event()
        self._renew_at = world.now()

    @property
    def vm(self) -> str:
        """Its name now: a VM may be renamed while it runs."""
        store, pid = self._world.store, self._world.kernel.pid
        for name in (self._known_as, *store.local_names()):
            if (told := read_running(store, name)) and told.pid == pid:
                self._known_as = name
                break
        return self._known_as

    def power_on(self) -> None:
        """The disk is used from here on."""
        store, disk = self._world.store, disk_image.read(self._folder / DISK)
        disk.boots += 1
        if self.behaviour.writes_bytes:
            disk.blocks[disk.id] = min(disk.blocks.get(disk.id, 0) + self.behaviour.writes_bytes, disk.nominal_bytes)
        disk_image.write(self._folder / DISK, disk)
        with (store.sim / "boots.jsonl").open("ab") as file:
            file.write(msgspec.json.encode(Boot(self._known_as, disk.id, disk.boots)) + b"\n")
        self._tell(Running(self._world.kernel.pid, behaviour=self.behaviour))

    async def live(self) -> str:
        """Returns when the guest has halted: empty, or the error that stopped it."""
        crash_s = self.behaviour.crashes_after_s
        work = asyncio.ensure_future(self._work())
        try:
            done, _ = await asyncio.wait({work}, timeout=crash_s)
            if not done:
                return self.behaviour.crash_text
            work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        return ""

    def ask_to_shut_down(self) -> None:
        if not self.behaviour.ignores_shutdown:
            self.halt()

    def halt(self) -> None:
        """`shutdown -h now`."""
        self._halts.set()

    def powered_off(self) -> None:
        forget_run(self._world.store, self.vm)

    async def _work(self) -> None:
        rules = self.behaviour
        await self._sleep(rules.boot_s)
        address = "" if self._halts.is_set() else await self._address()
        if address:
            self._tell(Running(self._world.kernel.pid, address, not rules.no_agent, rules))
            self._log([f"{self.vm} is up at {address}", *rules.log])
            ends_by_itself = await self._run()
            self._log(["the work is done" if ends_by_itself else "asked to shut down"])
            if ends_by_itself:
                self._status.report(rules.exit_code, self._world.now())
        await asyncio.sleep(rules.shutdown_s)

    async def _run(self) -> bool:
        """True when the guest's own work ended it."""
        left_s = self.behaviour.runs_s
        while left_s is None or left_s > 0:
            pause_s = self.behaviour.log_every_s if left_s is None else min(left_s, self.behaviour.log_every_s)
            if await self._sleep(pause_s):
                return False
            left_s = None if left_s is None else left_s - pause_s
            if self._world.now() >= self._renew_at:
                await self._lease()
            if left_s is None or left_s > 0:
                self._log([f"{self._world.now():%H:%M:%S} still working"])
        return True

    async def _address(self) -> str:
        while True:
            if not self.behaviour.never_gets_ip and (address := await self._lease()):
                return address
            if await self._sleep(ASKS_AGAIN_S):
                return ""

    async def _lease(self) -> str | None:
        """Take an address, or keep it for longer; a guest renews at half time."""
        sim, now = self._world.store.sim, self._world.now()
        with Lock(sim) as lock:
            await lock.take()
            leases = read_leases(sim)
            address = leases.lease(self._mac_address, now)
            write_leases(sim, leases)
        self._renew_at = now + timedelta(seconds=leases.lease_s / 2)
        return address

    async def _sleep(self, seconds: float) -> bool:
        """True when the guest was told to halt meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._halts.wait()
        except TimeoutError:
            return False
        return True

    def _tell(self, running: Running) -> None:
        save(running_file(self._world.store, self.vm), running)

    def _log(self, lines: list[str]) -> None:
        self._status.log(lines, self._world.now())
