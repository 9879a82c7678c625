"""Whether this host can boot a VM, found out by booting one: a clone of a golden, without shares, until it has an address.

Optional, and only while the host is idle: it makes way as soon as a Pod needs the host. An intent is written before the clone
and goes after the VM has, so that whatever an agent left that was killed in between is known to be ours. `keep_tidy` deletes
it, whether or not there is ever another check: it takes one of the host's two places. A VM of the scratch name that is neither
intended nor marked, or bears another mark, is somebody else's and is never touched (I3).
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.backoff import Backoff
from applecart.kubelet.garbage.tombstones import Tombstones
from applecart.kubelet.goldens import Golden
from applecart.kubelet.node.health import NothingFoundOut
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
from applecart.tart.strays import end_strays

ADDRESS_DEADLINE_S = 600.0  # a first boot takes 3 to 5 minutes on a busy host
BOOT_DEADLINE_S = 900.0  # the address, after a clone of up to five minutes
LOOK_EVERY_S = 2.0
STOP_GRACE_S = 10  # nobody works in it
ENDS_WITHIN_S = 30.0  # after it was told to stop
LEAVES_WITHIN_S = 15.0  # launchd kills an agent that takes 20 s to end
TIDY_EVERY_S = 30.0  # costs a look at two files when nothing is left
TIDY_PACE = Backoff(first_s=30.0, longest_s=300.0)
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
        clone: Callable[[Golden, str], Awaitable[None]],
        before_run: Callable[[], Awaitable[None]],
        is_idle: Callable[[], bool],
    ) -> None:
        """`clone` and `before_run` (the GUI session) are those of Pods; `is_idle`: no Pod has a VM or waits for one."""
        self.vm = f"{VM_PREFIX}{node}"[:LONGEST_VM_NAME]
        self._mac = mac
        self._tart = tart
        self._home = home
        self._files = files
        self._clock = clock
        self._tombstones = Tombstones(state, home, files)
        self._intent = state / "scratch" / "intent.json"
        self._run_folder = state / "scratch" / "run"
        self._clone = clone
        self._before_run = before_run
        self._is_idle = is_idle
        self._in_hand = asyncio.Lock()  # held while a VM is booted, and while one is removed

    @property
    def ours(self) -> tuple[str, ...]:
        """The name of the VM, as long as one of that name would be ours: nobody works in it."""
        mark = self._home.mark(self.vm)
        is_known = self._intent.exists() or self._tombstones.is_rest(self.vm)
        is_ours = isinstance(mark, ScratchMark) or (mark is None and is_known)
        return (self.vm,) if is_ours else ()

    async def check(self, golden: Golden) -> str | None:
        """Why no VM boots here; None when one did. Raises `NothingFoundOut` when this was no time to find out."""
        async with self._in_hand:
            try:
                return await self._booted_and_removed(golden)
            except asyncio.CancelledError:
                await self._leave()
                raise

    async def keep_tidy(self) -> None:
        """Until cancelled: no scratch VM is left for long that no check needs, whoever began it."""
        failures, told = 0, ""
        while True:
            if not self._in_hand.locked():
                async with self._in_hand:
                    trouble = await self._cleaned_up() or ""
                failures = failures + 1 if trouble else 0
                if trouble and trouble != told:  # once, not at every attempt
                    log.warning("a scratch VM is still there", vm=self.vm, because=trouble)
                told = trouble
            await asyncio.sleep(TIDY_PACE.wait_s(failures, self._clock.random) if failures else TIDY_EVERY_S)

    async def clean_up(self) -> None:
        """No scratch VM is left when this returns."""
        has_intent = self._intent.exists()
        if has_intent:  # a clone of a dead agent that lands later would be nobody's
            await end_strays(self._mac, self._clock, self._tart.binary, self.vm)
        found = self._home.vm(self.vm)
        if found is None and not has_intent:
            return
        if found is not None and not self.ours:
            raise TartFailed(f"a VM named {self.vm} is on this host and is not ours; rename or delete it")
        detached = await self._mac.adopt(self._run_folder) if self._run_folder.exists() else None
        if found is not None:
            with suppress(ApplecartError):  # most often it does not run; whether it ended is looked at next
                await self._tart.stop(self.vm, grace_s=STOP_GRACE_S)
        if detached is not None:
            await self._until_ended(detached)
        await self._tombstones.delete(self._tart, self.vm)
        self._files.remove(self._run_folder)
        self._files.remove(self._intent)

    async def _booted_and_removed(self, golden: Golden) -> str | None:
        try:
            sentence = await self._why_none_boots(golden)
        except NothingFoundOut:
            await self._cleaned_up()
            raise
        left_behind = await self._cleaned_up()
        return sentence or left_behind

    async def _why_none_boots(self, golden: Golden) -> str | None:
        try:
            await self.clean_up()
            self._make_way()
            if running_vms(await self._mac.processes(), self._tart.binary):
                raise NothingFoundOut("other VMs run on this host")
            async with asyncio.timeout(BOOT_DEADLINE_S):
                return await self._boot(golden)
        except VmMissing as error:
            raise NothingFoundOut(f"the golden was just collected: {error}") from None
        except TimeoutError:
            return f"a scratch VM did not come up within {BOOT_DEADLINE_S / 60:.0f} minutes"
        except (ApplecartError, OSError) as error:
            return f"a scratch VM cannot be started on this host: {error}"

    async def _boot(self, golden: Golden) -> str | None:
        self._files.make_folder(self._intent.parent)
        self._files.write(self._intent, b"{}")
        await self._clone(golden, self.vm)
        self._home.write_mark(self.vm, ScratchMark(self._clock.now()), self._files)
        await self._before_run()
        self._make_way()
        self._files.make_folder(self._run_folder)
        log_file = self._run_folder / "log"
        detached = await self._tart.run(self.vm, RunOptions(), folder=self._run_folder, log=log_file)
        return await self._until_address(detached, log_file)

    async def _until_address(self, detached: Detached, log_file: Path) -> str | None:
        ended = asyncio.ensure_future(detached.wait())
        until_s = self._clock.monotonic() + ADDRESS_DEADLINE_S
        try:
            while self._clock.monotonic() < until_s:
                self._make_way()
                if await self._address():
                    return None
                await asyncio.wait([ended], timeout=LOOK_EVERY_S)
                if ended.done():
                    why = start_failure(_tail(log_file), ended.result().code, self.vm)
                    return f"a scratch VM ended before it had an address: {why}"
            return f"a scratch VM had no address {ADDRESS_DEADLINE_S / 60:.0f} minutes after its start"
        finally:
            ended.cancel()

    def _make_way(self) -> None:
        if not self._is_idle():
            raise NothingFoundOut("a Pod needs this host")

    async def _address(self) -> str | None:
        try:
            return await self._tart.ip(self.vm)
        except ApplecartError:
            return None  # it has not locked its files yet, or has ended: its process says which

    async def _until_ended(self, detached: Detached) -> None:
        ended = asyncio.ensure_future(detached.wait())
        try:
            await asyncio.wait([ended], timeout=ENDS_WITHIN_S)
            if not ended.done() and await detached.signal(signal.SIGKILL):
                await asyncio.wait([ended], timeout=ENDS_WITHIN_S)
            if not ended.done():
                raise TartFailed(f"the scratch VM {self.vm} (process {detached.pid}) still runs after it was killed")
        finally:
            ended.cancel()

    async def _cleaned_up(self) -> str | None:
        try:
            await self.clean_up()
        except Exception as error:  # also a bug of ours: whatever is left must be tried again, and the agent live on
            return f"a scratch VM cannot be removed again: {error}"
        return None

    async def _leave(self) -> None:
        """The agent ends, perhaps for good. What takes too long is the next one's to remove."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVES_WITHIN_S):
                await self._cleaned_up()


def _tail(file: Path) -> str:
    try:
        return file.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
    except OSError:
        return ""
