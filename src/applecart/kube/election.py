"""Leader election on a Lease: at most one process works.

The holder renews; when it could not for the renew deadline, its work is cancelled and has ended before the lease time is over
for anybody else. Work that will not end in that margin is the one thing election cannot repair from inside: it is logged and
the process ends at once (`end_process`), because a work task that ignores its cancellation would outlive any exception.

Caches do not belong into the work: informers run outside, so that a standby is warm when its turn comes. Work that writes goes
through a `FencedTransport`, which also holds after the whole process stood still.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from random import Random
from typing import Any, Protocol

from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.errors import ApplecartError, BadInput
from applecart.kube.client import Client
from applecart.kube.lease import JITTER, LAST_WORDS_S, LeaseHold, Standing, Timing
from applecart.observe.logs import logger

LEAST_WAIT_S = 0.01  # a timer may fire a clock tick early; looking again at once would be a loop without rest
LEAST_STOP_S = 1.0  # after a pause of the whole process no margin is left: the fence is shut, and work gets this to unwind
STUCK_EXIT_CODE = 70  # EX_SOFTWARE

Work = Callable[[], Coroutine[Any, Any, None]]

log = logger(__name__)


class StuckWork(ApplecartError):
    """Work did not end when its leadership did."""


class WorkEndedItself(ApplecartError):
    """The work was cancelled, and not by us."""


class ElectionObserver(Protocol):
    """Hears who leads, for metrics."""

    def leading(self, is_leader: bool) -> None: ...

    def took_over(self) -> None: ...


def unique_identity(host: str, chance: Random) -> str:
    """A name for this process that no other ever has, also not its own next start."""
    return f"{host}_{chance.getrandbits(64):016x}"


def end_process(sentence: str) -> None:
    """The last resort: no cleanup runs, because cleanup would wait for the very work that does not end.

    Nor does it wait for somebody to read what it says: a pipe that is full would hold the process at work.
    """

    def say() -> None:
        os.write(2, f"applecart: {sentence}\n".encode())
        log.error("work does not stop, ending the process", because=sentence)

    try:
        saying = threading.Thread(target=say, daemon=True)
        saying.start()
        saying.join(LAST_WORDS_S)
    finally:
        os._exit(STUCK_EXIT_CODE)


class Election:
    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        clock: Clock,
        *,
        timing: Timing = Timing(),  # noqa: B008 (frozen)
        on_stuck: Callable[[str], None] = end_process,
        observer: ElectionObserver | None = None,
    ) -> None:
        if not identity:
            raise BadInput(f"leader election on Lease {key} needs an identity; use one that no other process has")
        self.key = key
        self._clock = clock
        self._timing = timing
        self._on_stuck = on_stuck
        self._observer = observer
        self._hold = LeaseHold(client, key, identity, clock, timing)
        self._is_working = False

    @property
    def holder(self) -> str:
        """Who held the Lease when we last looked; empty when nobody did."""
        return self._hold.holder

    @property
    def complaint(self) -> str:
        """Why the Lease could not be used when we last tried; empty when it could."""
        return self._hold.complaint

    def is_leader(self) -> bool:
        """Whether our work may act at this very moment."""
        return self._is_working and self._hold.is_safe()

    async def lead(self, work: Work) -> None:
        """Do the work whenever we lead, until it ends by itself or we are cancelled; then let the next one in at once."""
        while True:
            try:
                await self._acquire()
                if await self._serve_term(work):
                    return
            except asyncio.CancelledError:
                if self._hold.may_be_ours:
                    await self._hold.release()
                raise

    async def _acquire(self) -> None:
        told = ""
        while True:
            takes = self._hold.takes
            standing = await self._hold.attempt()
            if self._observer and self._hold.takes > takes:
                self._observer.took_over()
            # A success that took too long to learn of is none: the time it bought is nearly over.
            if standing is Standing.LEADER and self._hold.left_s(self._timing.renew_deadline_s) > 0:
                return
            wait_s = self._timing.retry_s * (1 + JITTER * self._clock.random.random())
            if standing is Standing.STANDBY:
                if self.holder != told:
                    told = self.holder
                    log.info("another process holds the lease, waiting for it", object=self.key, holder=told)
                wait_s = min(wait_s, max(self._hold.others_left_s(), LEAST_WAIT_S))
            await asyncio.sleep(wait_s)

    async def _keep(self) -> None:
        """Renew until that fails for the renew deadline, or somebody else turns out to hold the Lease."""
        loop = asyncio.get_running_loop()

        def deadline() -> float:
            return loop.time() + self._hold.left_s(self._timing.renew_deadline_s)

        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline()) as limit:
                while True:
                    await asyncio.sleep(self._timing.retry_s)
                    if await self._hold.attempt() is Standing.STANDBY:
                        return
                    limit.reschedule(deadline())

    async def _serve_term(self, work: Work) -> bool:
        """Work until the work ends (True) or the Lease is lost (False). No work of ours runs afterwards."""
        self._set_working(True)
        task = asyncio.create_task(work(), name=f"work of {self.key}")
        keeper = asyncio.create_task(self._keep(), name=f"renewal of {self.key}")
        try:
            await asyncio.wait({task, keeper}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._end_term(keeper, task)
            raise
        is_lost = not task.done()
        if is_lost:
            log.warning("lost the lease, stopping the work", object=self.key, holder=self.holder)
        await self._end_term(keeper, task)
        if is_lost:
            if not keeper.cancelled() and (fault := keeper.exception()) is not None:
                log.error("the lease was lost because its renewal failed unexpectedly", object=self.key, exc_info=fault)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("the work failed while it was stopped", object=self.key, exc_info=error)
            return False
        await self._hold.release()
        if task.cancelled():
            raise WorkEndedItself(f"the work under Lease {self.key} was cancelled from within")
        task.result()
        return True

    async def _end_term(self, keeper: asyncio.Task[None], task: asyncio.Task[None]) -> None:
        """Stop renewing, then stop the work and see it end within the margin, whatever else happens to us meanwhile.

        Until its time is over the work may still act, so that it can leave things tidy.
        """
        keeper.cancel()
        task.cancel()
        stop_s = max(self._hold.left_s(self._timing.safe_s), LEAST_STOP_S)
        is_cancelled = await _wait_stubbornly({keeper, task}, stop_s)
        self._set_working(False)
        if not task.done():
            sentence = (
                f"the work under Lease {self.key} did not stop within the {stop_s:.1f} s it had;"
                " another process may take over now, so this one ends"
            )
            self._on_stuck(sentence)
            raise StuckWork(sentence)
        if is_cancelled:
            raise asyncio.CancelledError

    def _set_working(self, is_working: bool) -> None:
        self._is_working = is_working
        if self._observer:
            self._observer.leading(is_working)


async def _wait_stubbornly(tasks: set[asyncio.Task[None]], wait_s: float) -> bool:
    """Wait for the tasks even when cancelled meanwhile; whether that happened."""
    loop = asyncio.get_running_loop()
    give_up_s = loop.time() + wait_s
    is_cancelled = False
    while pending := {task for task in tasks if not task.done()}:
        left_s = give_up_s - loop.time()
        if left_s < LEAST_WAIT_S:
            break
        try:
            await asyncio.wait(pending, timeout=left_s)
        except asyncio.CancelledError:
            is_cancelled = True
    return is_cancelled
