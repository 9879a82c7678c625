"""A reconcile's result, which changes are worth one, and the loop around it: take a key, reconcile it, plan the next look.

Whatever a reconcile does, the loop goes on: an error becomes a class with its own backoff, an overrun is cancelled at its
deadline and only its own key waits (I13), and what nobody foresaw is logged with its traceback once per distinct text. A
controller may be stopped and run again, as leader election does: work that was cut off is queued again, and informers keep
feeding the queue in between.

`DONE` and `WAIT` both leave the next look to an event. They differ for the people who watch: a key that waits is a key that
needs something from somebody else, so its age is exported and it is looked at again even when no event ever comes (I10).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Generic, Protocol, TypeVar, cast

import msgspec

from applecart.api.meta import Key, Object, ObjectMeta
from applecart.clock import Clock
from applecart.errors import ApplecartError, DeadlineExceeded
from applecart.kube.background import is_being_cancelled, uncancelled
from applecart.kube.backoff import failure_of
from applecart.kube.cache import Change
from applecart.kube.informer import Informer
from applecart.kube.own_writes import OwnWrites
from applecart.kube.workqueue import WorkQueue
from applecart.observe.logs import Logger, logger

K = TypeVar("K", bound=Object)

H = TypeVar("H", bound=Hashable)

DEADLINE_S = 300.0  # a reconcile that converges a host sets its own; everything else is done in seconds
LONGEST_WAIT_S = 1800.0  # a wait whose event was lost ends here (I10); two looks an hour cost nothing
REMEMBERED_TEXTS = 500  # distinct tracebacks; a text with a changing number in it must not grow memory forever


log = logger(__name__)


class Outcome(StrEnum):
    """How a reconcile ended; a label value. The failures among them match `applecart.kube.backoff.Failure`."""

    DONE = "done"
    WAIT = "wait"
    AGAIN = "again"
    OVERRUN = "overrun"
    CONFLICT = "conflict"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNEXPECTED = "unexpected"


class Result(msgspec.Struct, frozen=True):
    outcome: Outcome
    after: timedelta = timedelta()


DONE = Result(Outcome.DONE)

WAIT = Result(Outcome.WAIT)


def again_in(delay: timedelta) -> Result:
    """Look at the key again after this time, or earlier when an event comes."""
    return Result(Outcome.AGAIN, delay)


def beyond_status(change: Change[K]) -> bool:
    """More than the status changed: a controller that writes the status need not wake itself."""
    if change.old is None or change.new is None:
        return True
    if _wanted(change.old.metadata) != _wanted(change.new.metadata):
        return True
    return any(getattr(change.old, name) != getattr(change.new, name) for name in _compared(type(change.new)))


@cache
def _compared(kind: type[Object]) -> tuple[str, ...]:
    """Kinds without a status subresource do not count generations, so their fields are looked at."""
    return tuple(name for name in kind.__struct_fields__ if name not in ("metadata", "status"))


def _wanted(metadata: ObjectMeta) -> tuple[object, ...]:
    return (
        metadata.generation,
        metadata.deletion_timestamp,
        metadata.labels,
        metadata.annotations,
        metadata.finalizers,
        metadata.owner_references,
    )


class Overrun(DeadlineExceeded):
    """A reconcile did not end within its deadline and was cancelled."""


class ControllerObserver(Protocol):
    """Hears how every reconcile ended, and when the controller began and ended, for metrics."""

    def started(self) -> None: ...

    def reconciled(self, key: object, outcome: Outcome, took_s: float) -> None: ...

    def stopped(self) -> None: ...


class Controller(Generic[H]):
    def __init__(
        self,
        name: str,
        reconcile: Callable[[H], Awaitable[Result]],
        queue: WorkQueue[H],
        clock: Clock,
        *,
        workers: int = 1,
        deadline_s: float = DEADLINE_S,
        longest_wait_s: float = LONGEST_WAIT_S,
        observer: ControllerObserver | None = None,
        own_writes: OwnWrites | None = None,
    ) -> None:
        """With `own_writes` no reconcile begins before the watched informers show what the ones before it wrote."""
        if workers < 1:
            raise ValueError(f"controller {name} needs at least one worker, not {workers}")
        self.name = name
        self.queue = queue
        self._reconcile = reconcile
        self._clock = clock
        self._workers = workers
        self._deadline_s = deadline_s
        self._longest_wait_s = longest_wait_s
        self._observer = observer
        queue.end_work()  # until `run`
        self.own_writes = own_writes
        if own_writes is not None:
            own_writes.wake = queue.add
        self._sources: list[Informer[Any]] = []
        self._texts_shown: OrderedDict[str, None] = OrderedDict()
        self._stuck: dict[H, float] = {}  # since when it is worked on

    def watch(
        self,
        informer: Informer[K],
        *,
        key_of: Callable[[K], H | None] | None = None,
        keys_of: Callable[[K], Iterable[H]] | None = None,
        when: Callable[[Change[K]], bool] | None = None,
        ends_backoff: Callable[[Change[K]], bool] = beyond_status,
    ) -> None:
        """Queue a key for every change: the object's own, or those that `key_of` or `keys_of` derive from it.

        Keys are derived from the object before and after the change: when a Pod moves to another owner, both must look. A key
        that failed is looked at early only for a change that `ends_backoff`; by default one of a status does not, because the
        failed reconcile may have written it.
        """
        derived = keys_of or _at_most_one(key_of or cast("Callable[[K], H]", _own_key))

        def on_change(change: Change[K]) -> None:
            if when is None or when(change):
                states = [state for state in (change.old, change.new) if state is not None]
                for key in dict.fromkeys(key for state in states for key in derived(state)):
                    self.queue.add(key, ends_backoff=ends_backoff(change))

        informer.on_change(on_change)
        self.read_from(informer)

    def read_from(self, informer: Informer[Any]) -> None:
        """The reconcile looks at this one too, and is not woken by it."""
        self._sources.append(informer)
        if self.own_writes is not None:
            self.own_writes.read_from(informer)

    async def run(self) -> None:
        """Work until cancelled; running reconciles have ended when this returns."""
        for informer in self._sources:
            await informer.synced()
        self.queue.begin_work()
        if self._observer:
            self._observer.started()
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(self._workers):
                    group.create_task(self._work(), name=f"{self.name}-{number}")
        finally:
            self.queue.end_work()
            if self._observer:
                self._observer.stopped()

    async def _work(self) -> None:
        while not is_being_cancelled():  # a reconcile may have swallowed the cancellation that was meant for us
            key = await self.queue.get()
            began = self._clock.monotonic()
            try:
                outcome = await self._work_on(key)
            except asyncio.CancelledError:
                self.queue.add(key)  # half done: whoever runs next must look at it again
                raise
            finally:
                self.queue.done(key)
            if self._observer:
                self._observer.reconciled(key, outcome, self._clock.monotonic() - began)

    async def _work_on(self, key: H) -> Outcome:
        """Reconcile once and queue what follows from the end of it. Raises only when we are being stopped."""
        try:
            result = await self._reconcile_in_time(key)
            self._plan_next_look(key, result)
            self.queue.forget(key)
            return result.outcome
        except Exception as error:
            return self._failed(key, error)

    async def _reconcile_in_time(self, key: H) -> Result:
        limit = asyncio.timeout(self._deadline_s)
        loop, began_s = asyncio.get_running_loop(), self._clock.monotonic()
        overdue: asyncio.TimerHandle

        def cancelled() -> None:
            """It has its time to end from now on: after a standstill of the process both times would be over at once."""
            nonlocal overdue
            overdue = loop.call_later(self._deadline_s, self._tell_stuck, key, began_s)

        overdue = loop.call_later(self._deadline_s, cancelled)
        try:
            async with limit:
                return await uncancelled(self._reconcile_on_own_writes(key))
        except Exception as error:
            if limit.expired():  # also when the reconcile turned its cancellation into an error of its own
                raise Overrun(f"{key} was not reconciled within {self._deadline_s:g} s and was cancelled") from error
            raise
        finally:
            overdue.cancel()
            self._stuck.pop(key, None)

    def _tell_stuck(self, key: H, since_s: float) -> None:
        """Only the reconcile could end itself now; the least is that a person hears of it."""
        self._stuck[key] = since_s
        self._about(key).error("a reconcile was cancelled at its deadline and goes on, its worker waits for it")

    def stuck(self) -> str | None:
        """A sentence when a reconcile goes on long after it was cancelled, for a readiness page."""
        if not self._stuck:
            return None
        key, since_s = next(iter(self._stuck.items()))
        return f"{self.name}: {key} is worked on for {self._clock.monotonic() - since_s:.0f} s and did not heed its deadline"

    async def _reconcile_on_own_writes(self, key: H) -> Result:
        if self.own_writes is None:
            return await self._reconcile(key)
        await self.own_writes.seen(key)
        with self.own_writes.noted(key):
            return await self._reconcile(key)

    def _plan_next_look(self, key: H, result: Result) -> None:
        if result.outcome is Outcome.AGAIN:
            self.queue.add_after(key, result.after.total_seconds())
        elif result.outcome is Outcome.WAIT:
            # Spread out: keys that began to wait together must not all come back together.
            self.queue.add_after(key, self._longest_wait_s * (0.5 + self._clock.random.random() / 2))

    def _failed(self, key: H, error: Exception) -> Outcome:
        wait_s = self.queue.retry(key, error)
        about = self._about(key).bind(failures=self.queue.failures(key), again_in_s=round(wait_s, 2))
        if isinstance(error, ApplecartError):
            about.warning("reconcile failed", exc_info=error)
        elif self._is_new_text(error):
            about.error("reconcile failed unexpectedly", exc_info=error)
        else:
            about.warning("reconcile failed unexpectedly again", error=f"{type(error).__name__}: {error}")
        return Outcome.OVERRUN if isinstance(error, Overrun) else Outcome(failure_of(error))

    def _about(self, key: H) -> Logger:
        return (log.bind(key) if isinstance(key, Key) else log.bind(key=key)).bind(controller=self.name)

    def _is_new_text(self, error: Exception) -> bool:
        text = f"{type(error).__name__}: {error}"
        is_new = text not in self._texts_shown
        self._texts_shown[text] = None
        self._texts_shown.move_to_end(text)
        if len(self._texts_shown) > REMEMBERED_TEXTS:
            self._texts_shown.popitem(last=False)
        return is_new


def _own_key(obj: Object) -> Hashable:
    return obj.key


def _at_most_one(key_of: Callable[[K], H | None]) -> Callable[[K], Iterable[H]]:
    def keys(obj: K) -> Iterable[H]:
        key = key_of(obj)
        return () if key is None else (key,)

    return keys
