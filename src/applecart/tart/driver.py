"""The Tart CLI as methods: exact words out, values or one of `failures.py` back.

Every command has a deadline (`deadlines.py`) or, for pulls and pushes, must show progress; what hangs is killed with everything
it started. No secret is ever an argument. Commands that clean Tart's `tmp` never destroy a pull that can go on
(`partials.py`). A VM that exists is never replaced by a clone. Nothing here decides when to do what, or retries.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from applecart.clock import Clock
from applecart.errors import BadInput, DeadlineExceeded
from applecart.tart.classify import exec_failure, failure
from applecart.tart.deadlines import Deadlines
from applecart.tart.failures import NoAddress, PullStalled, TartFailed, TartHung, VmMissing, VmNotRunning
from applecart.tart.listing import ListedVm, VmInfo, parse_get, parse_list
from applecart.tart.mac import Detached, Ended, Mac, Session
from applecart.tart.partials import Partials, killed
from applecart.tart.pull_records import PullRecords
from applecart.tart.pulls import LOOK_EVERY_S, ProgressReader, PullProgress, StallWatch, store_bytes
from applecart.tart.registry_login import RegistryLogin
from applecart.tart.run_options import RunOptions

T = TypeVar("T")
OnProgress = Callable[[PullProgress], None]
OnCall = Callable[[str, str, float], None]  # the command, one of the three outcomes, seconds
OK, FAILED, HUNG = "ok", "failed", "hung"

# Tart makes room for a pull by deleting images that nobody used lately, whoever they belong to. Making room is ours (I3).
NO_AUTO_PRUNE = {"TART_NO_AUTO_PRUNE": "1"}
PULL_RECORDS = "applecart-pulls"  # beside Tart's own folders: whose lock a pull holds is decided by the home it works in
PLAIN_LINES = {"CI": "1"}  # progress as lines instead of a redrawn screen


class Tart:
    def __init__(
        self,
        mac: Mac,
        binary: str,
        home: Path,
        clock: Clock,
        deadlines: Deadlines | None = None,
        on_call: OnCall | None = None,
    ) -> None:
        self.mac = mac
        self.binary = binary
        self.home = home
        self._clock = clock
        self._deadlines = deadlines or Deadlines()
        self._on_call = on_call
        self._partials = Partials(home, clock)
        self._pulls = PullRecords(mac, home / PULL_RECORDS, self._partials.kill)
        self.keep_partials()

    def keep_partials(self) -> None:
        """Protect what unfinished pulls left, from now on; done at the start and after every pull."""
        self._partials.keep()

    async def drop_partials(self, wanted: Iterable[str]) -> None:
        """Remove what unfinished pulls of other images left; to make room, because it may be a whole image."""
        if self._partials.drop(wanted):
            await self.list()  # Tart cleans whatever is not locked

    def close(self) -> None:
        """Give back the locks on partials, as a process that ends does."""
        self._partials.let_go()

    async def pull(self, image: str, *, login: RegistryLogin | None = None, on_progress: OnProgress | None = None) -> None:
        """Returns when the image is in the store. Without progress for too long: `PullStalled`, and what was fetched stays."""
        env = {**PLAIN_LINES, **NO_AUTO_PRUNE, **(login.environment() if login else {})}
        reader = ProgressReader(on_progress)
        stall_s = self._deadlines.pull_stall_s
        async with (
            self._pulls.one() as record,
            self._partials.pulling(image, lambda: self._in_background(["pull", image], env, reader, record)) as pull,
        ):
            if not await self._finished("pull", pull, reader, stall_s):
                raise PullStalled(
                    f"the pull of {image} stood still for {stall_s:g} s and was ended; the next one goes on from there"
                )
        _expect_success("pull", image, pull.result())

    async def push(
        self, vm: str, remote: str, *, login: RegistryLogin | None = None, on_progress: OnProgress | None = None
    ) -> None:
        env = {**PLAIN_LINES, **(login.environment() if login else {})}
        reader = ProgressReader(on_progress)
        async with self._partials.cleaning():
            push = self._in_background(["push", vm, remote], env, reader)
            try:
                if not await self._finished("push", push, reader, self._deadlines.push_stall_s):
                    raise TartHung(f"the push of VM {vm} stood still for {self._deadlines.push_stall_s:g} s and was ended")
            finally:
                await killed(push)
        _expect_success("push", vm, push.result())

    async def clone(self, source: str, vm: str) -> None:
        """Tart itself would replace a VM of that name without a word, even one that runs."""
        if (self.home / "vms" / vm / "config.json").exists():
            raise TartFailed(f"VM {vm} exists already and is not replaced; delete it first")
        ended = await self._run(["clone", source, vm], self._deadlines.clone_s, source, NO_AUTO_PRUNE)
        _expect_success("clone", source, ended)

    async def set(self, vm: str, *, cpu: int | None = None, memory_mb: int | None = None, random_serial: bool = False) -> None:
        words = [*_option("--cpu", cpu), *_option("--memory", memory_mb), *(["--random-serial"] if random_serial else [])]
        if words:
            await self._command("set", vm, *words, deadline_s=self._deadlines.set_s)

    async def run(self, vm: str, options: RunOptions, *, folder: Path, log: Path) -> Detached:
        """Returns once it is started, at most once per folder; whether the VM lives is for the caller to watch."""
        argv = [self.binary, "run", vm, *options.words()]
        async with self._partials.cleaning(goes_on=True):
            return await _runnable(self.mac.start(argv, folder=folder, log=log, env=self._env(options.environment())))

    async def stop(self, vm: str, *, grace_s: float = 30) -> None:
        """Cuts the power after the grace. A VM that does not run, or is not there, is stopped."""
        try:
            await self._command("stop", vm, "--timeout", f"{grace_s:.0f}", deadline_s=self._deadlines.for_stop(grace_s))
        except (VmNotRunning, VmMissing):
            return

    async def delete(self, vm: str) -> None:
        """A local VM, or an image in the store. One that is not there is deleted."""
        try:
            await self._command("delete", vm, deadline_s=self._deadlines.delete_s)
        except VmMissing:
            return

    async def get(self, vm: str) -> VmInfo:
        ended = await self._command("get", vm, "--format", "json", deadline_s=self._deadlines.get_s)
        return parse_get(ended.out, vm)

    async def list(self) -> list[ListedVm]:
        async with self._partials.cleaning():
            ended = await self._run(["list", "--format", "json"], self._deadlines.list_s, "VMs")
        _expect_success("list", "VMs", ended)
        return parse_list(ended.out)

    async def ip(self, vm: str, *, wait_s: float = 0) -> str | None:
        """The address, also the last one of a guest that has halted; None when it has none (yet)."""
        words = ["--wait", f"{wait_s:.0f}"] if wait_s else []
        try:
            ended = await self._command("ip", vm, *words, deadline_s=wait_s + self._deadlines.ip_s)
        except NoAddress:
            return None
        return ended.out.decode("ascii", "replace").strip() or None

    async def exec(self, vm: str, command: Sequence[str], *, deadline_s: float) -> Ended:
        """How the guest's command ended. Raises only when it could not be run: the VM does not run, or has no guest agent."""
        async with self._partials.cleaning():
            ended = await self._run(["exec", vm, *command], deadline_s, vm)
        if error := exec_failure(vm, ended):
            raise error
        return ended

    async def exec_session(self, vm: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        argv = [self.binary, "exec", *(["-i"] if stdin else []), *(["-t"] if tty else []), vm, *command]
        async with self._partials.cleaning(goes_on=True):
            return await self.mac.open(argv, tty=tty, env=self._env({}))

    async def prune(self, *, older_than_days: int | None = None, space_budget_gb: int | None = None) -> None:
        words = [*_option("--older-than", older_than_days), *_option("--space-budget", space_budget_gb)]
        if words:
            async with self._partials.cleaning():
                ended = await self._run(["prune", *words], self._deadlines.prune_s, "the store")
            _expect_success("prune", "the store", ended)

    async def _command(self, op: str, target: str, *words: str, deadline_s: float) -> Ended:
        async with self._partials.cleaning():
            ended = await self._run([op, target, *words], deadline_s, target)
        _expect_success(op, target, ended)
        return ended

    async def _run(
        self, words: Sequence[str], deadline_s: float | None, target: str, env: Mapping[str, str] | None = None
    ) -> Ended:
        began_s = self._clock.monotonic()
        try:
            ended = await _runnable(self.mac.run([self.binary, *words], deadline_s=deadline_s, env=self._env(env or {})))
        except DeadlineExceeded:
            self._tell(words[0], HUNG, began_s)
            raise TartHung(f"tart {words[0]} of {target} did not end within {deadline_s:g} s and was killed") from None
        self._tell(words[0], FAILED if ended.code else OK, began_s)
        return ended

    def _in_background(
        self, words: Sequence[str], env: Mapping[str, str], reader: ProgressReader, record: Path | None = None
    ) -> asyncio.Task[Ended]:
        run = self.mac.run([self.binary, *words], deadline_s=None, env=self._env(env), on_output=reader.feed, folder=record)
        return asyncio.ensure_future(_runnable(run))

    async def _finished(self, op: str, task: asyncio.Task[Ended], reader: ProgressReader, stall_s: float) -> bool:
        """False when it stands still; it runs on then."""
        began_s = self._clock.monotonic()
        watch = StallWatch(stall_s, began_s)
        while not task.done():
            await asyncio.wait([task], timeout=min(LOOK_EVERY_S, stall_s))
            size = await asyncio.to_thread(store_bytes, self.home)
            if not task.done() and watch.is_stalled(reader.output_bytes, size, self._clock.monotonic()):
                self._tell(op, HUNG, began_s)
                return False
        self._tell(op, FAILED if task.exception() or task.result().code else OK, began_s)
        return True

    def _tell(self, op: str, outcome: str, began_s: float) -> None:
        if self._on_call:
            self._on_call(op, outcome, self._clock.monotonic() - began_s)

    def _env(self, more: Mapping[str, str]) -> dict[str, str]:
        return {"TART_HOME": str(self.home), **more}


async def _runnable(call: Coroutine[Any, Any, T]) -> T:
    """A Tart that is missing is a fault of the host, not of the Pod that needs it."""
    try:
        return await call
    except BadInput as error:
        raise TartFailed(f"Tart cannot be run on this host: {error}") from None


def _expect_success(op: str, target: str, ended: Ended) -> None:
    if ended.code:
        raise failure(op, target, ended)


def _option(word: str, value: int | None) -> list[str]:
    return [] if value is None else [word, str(value)]
