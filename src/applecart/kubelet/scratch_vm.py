"""Whether this host can boot a VM, found out by booting one: a clone of a golden, without shares, until it has an address.

Optional, and only while the host is idle: it makes way as soon as a Pod needs the host. An intent is written before the clone
and goes after the VM has, so that whatever an agent left that was killed in between is known to be ours and is deleted by the
next one. A VM of the scratch name that is neither intended nor marked is somebody else's and is never touched (I3).
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.observe.logs import logger
from applecart.tart.classify import start_failure
from applecart.tart.driver import Tart
from applecart.tart.failures import TartFailed, VmMissing
from applecart.tart.files import Files
from applecart.tart.home import Home
from applecart.tart.mac import Detached, Mac
from applecart.tart.marks import ScratchMark
from applecart.tart.run_options import RunOptions
from applecart.tart.running import running_vms

ADDRESS_DEADLINE_S = 600.0  # a first boot takes 3 to 5 minutes on a busy host
LOOK_EVERY_S = 2.0
STOP_GRACE_S = 10  # nobody works in it
ENDS_WITHIN_S = 30.0  # after it was told to stop
LOG_TAIL_BYTES = 4096
VM_PREFIX = "applecart-scratch-"
LONGEST_VM_NAME = 63  # as for the VMs of Pods; a host has one node, so what is cut off tells nothing apart

log = logger(__name__)


class ScratchVm:
    def __init__(
        self,
        mac: Mac,
        tart: Tart,
        home: Home,
        files: Files,
        clock: Clock,
        *,
        node: str,
        state: Path,
        before_run: Callable[[], Awaitable[None]],
        is_idle: Callable[[], bool],
    ) -> None:
        """`before_run` is what every start of a VM needs (the GUI session); `is_idle`: no Pod has a VM or waits for one."""
        self.vm = f"{VM_PREFIX}{node}"[:LONGEST_VM_NAME]
        self._mac = mac
        self._tart = tart
        self._home = home
        self._files = files
        self._clock = clock
        self._intent = state / "scratch" / "intent.json"
        self._run_folder = state / "scratch" / "run"
        self._before_run = before_run
        self._is_idle = is_idle

    async def check(self, golden: str) -> str | None:
        """Why no VM boots here. None when one did, or when this was no time to find out."""
        try:
            await self.clean_up()
            if not self._is_idle() or running_vms(await self._mac.processes(), self._tart.binary):
                return None
            sentence = await self._boot(golden)
        except VmMissing:
            sentence = None  # the golden was just collected
        except (ApplecartError, OSError) as error:
            sentence = f"a scratch VM cannot be started on this host: {error}"
        left_behind = await self._cleaned_up()
        return sentence or left_behind

    async def clean_up(self) -> None:
        """No scratch VM is left when this returns, whoever began it. Also for the start of the agent."""
        found = self._home.vm(self.vm)
        if not self._intent.exists():
            if found is None:
                return
            if not isinstance(found.mark, ScratchMark):
                raise TartFailed(f"a VM named {self.vm} is on this host and is not ours; rename or delete it")
        detached = await self._mac.adopt(self._run_folder) if self._run_folder.exists() else None
        if found is not None:
            with suppress(ApplecartError):  # most often it does not run; whether it ended is looked at next
                await self._tart.stop(self.vm, grace_s=STOP_GRACE_S)
        if detached is not None:
            await self._until_ended(detached)
        await self._tart.delete(self.vm)
        self._files.remove(self._run_folder)
        self._files.remove(self._intent)

    async def _boot(self, golden: str) -> str | None:
        self._files.make_folder(self._intent.parent)
        self._files.write(self._intent, b"{}")
        await self._tart.clone(golden, self.vm)
        self._home.write_mark(self.vm, ScratchMark(self._clock.now()), self._files)
        await self._before_run()
        self._files.make_folder(self._run_folder)
        log_file = self._run_folder / "log"
        detached = await self._tart.run(self.vm, RunOptions(), folder=self._run_folder, log=log_file)
        return await self._until_address(detached, log_file)

    async def _until_address(self, detached: Detached, log_file: Path) -> str | None:
        ended = asyncio.ensure_future(detached.wait())
        until_s = self._clock.monotonic() + ADDRESS_DEADLINE_S
        try:
            while self._clock.monotonic() < until_s:
                if not self._is_idle():
                    log.info("a scratch VM makes way for a Pod", vm=self.vm)
                    return None
                if await self._address():
                    return None
                await asyncio.wait([ended], timeout=LOOK_EVERY_S)
                if ended.done():
                    why = start_failure(_tail(log_file), ended.result().code, self.vm)
                    return f"a scratch VM ended before it had an address: {why}"
            return f"a scratch VM had no address {ADDRESS_DEADLINE_S / 60:.0f} minutes after its start"
        finally:
            ended.cancel()

    async def _address(self) -> str | None:
        try:
            return await self._tart.ip(self.vm)
        except ApplecartError:
            return None  # it has not locked its files yet, or has ended: its process says which

    async def _until_ended(self, detached: Detached) -> None:
        ended = asyncio.ensure_future(detached.wait())
        try:
            await asyncio.wait([ended], timeout=ENDS_WITHIN_S)
            if not ended.done() and detached.pid is not None:
                self._mac.signal(detached.pid, signal.SIGKILL)
                await asyncio.wait([ended], timeout=ENDS_WITHIN_S)
            if not ended.done():
                raise TartFailed(f"the scratch VM {self.vm} (process {detached.pid}) still runs after it was killed")
        finally:
            ended.cancel()

    async def _cleaned_up(self) -> str | None:
        try:
            await self.clean_up()
        except (ApplecartError, OSError) as error:
            return f"a scratch VM cannot be removed again: {error}"
        return None


def _tail(file: Path) -> str:
    try:
        return file.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
    except OSError:
        return ""
