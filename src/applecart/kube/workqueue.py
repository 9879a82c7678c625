"""Which keys want work, one worker per key at a time.

A key that is added while it waits is worked once; one that is added while it is worked on is worked again afterwards, so no
change is missed and no two workers meet on one object. Delayed keys share a single timer, set for the earliest of them. The
queue never runs work and never logs: `applecart.kube.controller` does.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from applecart.clock import Clock
from applecart.kube.backoff import Failure, FailureBackoffs, failure_of, requeue_after_s

H = TypeVar("H", bound=Hashable)

REST_SHARE = 0.1  # of a backoff, that no change ends: it may be what the failed work itself wrote
SHORTEST_REST_S = 1.0
LONGEST_REST_S = 30.0  # a person who made it right is still there to see it

SPARED_GHOSTS = 64  # below this a rebuild costs more than the entries it removes


def rest_s(backoff_s: float) -> float:
    """The part of a backoff that a change does not end."""
    return min(backoff_s, max(SHORTEST_REST_S, min(REST_SHARE * backoff_s, LONGEST_REST_S)))


class KeyedHeap(Generic[H]):
    """Lowest order first; among equals the one that was put first."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, H]] = []
        self._places: dict[H, tuple[float, int]] = {}
        self._puts = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: H) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[H]:
        return iter(self._places)

    def order_of(self, key: H) -> float | None:
        place = self._places.get(key)
        return place[0] if place else None

    def put(self, key: H, order: float) -> None:
        """Place the key, or move it."""
        self._puts += 1
        self._places[key] = (order, self._puts)
        heapq.heappush(self._entries, (order, self._puts, key))
        self._bury()

    def discard(self, key: H) -> None:
        if self._places.pop(key, None):
            self._bury()

    def first_order(self) -> float | None:
        """The order of the key that `pop` would give."""
        self._skip_ghosts()
        return self._entries[0][0] if self._entries else None

    def pop(self) -> H:
        self._skip_ghosts()
        _, _, key = heapq.heappop(self._entries)
        del self._places[key]
        return key

    def _is_ghost(self, entry: tuple[float, int, H]) -> bool:
        return self._places.get(entry[2]) != entry[:2]

    def _skip_ghosts(self) -> None:
        while self._entries and self._is_ghost(self._entries[0]):
            heapq.heappop(self._entries)

    def _bury(self) -> None:
        if len(self._entries) > 2 * len(self._places) + SPARED_GHOSTS:
            self._entries = [entry for entry in self._entries if not self._is_ghost(entry)]
            heapq.heapify(self._entries)


class QueueObserver(Protocol):
    """Hears what the queue does, for metrics."""

    def added(self) -> None: ...

    def started(self, waited_s: float) -> None: ...

    def finished(self, worked_s: float) -> None: ...

    def retried(self, failure: Failure) -> None: ...


class WorkQueue(Generic[H]):
    def __init__(
        self,
        clock: Clock,
        *,
        backoffs: FailureBackoffs = FailureBackoffs(),  # noqa: B008 (frozen)
        observer: QueueObserver | None = None,
    ) -> None:
        self._clock = clock
        self._backoffs = backoffs
        self._observer = observer
        self._is_worked = True
        # Since when; the first one is next. A dict would look through all that went before it, every time.
        self._ready: OrderedDict[H, float] = OrderedDict()
        self._delayed: KeyedHeap[H] = KeyedHeap()  # by the time they are due
        self._running: dict[H, float] = {}  # since when
        self._again: dict[H, float] = {}  # added while running, and waits since then
        self._failures: dict[H, int] = {}
        self._rests_until: dict[H, float] = {}  # of keys that are delayed because they failed; a change ends that no sooner
        self._unless_failed: set[H] = set()  # wanted again while running, but not if that work fails
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    # Asking for work

    def add(self, key: H, *, ends_backoff: bool = True) -> None:
        """Work on the key as soon as a worker is free; a delay it still had is over. One that failed rests before.

        Without `ends_backoff` a key that failed keeps its distance. That is for changes a reconcile may have caused itself: a
        failure that is written into a status is a change too, and would wake the key at once, again and again.
        """
        if self._observer:
            self._observer.added()
        if (rests_until := self._rests_until.get(key)) is not None:
            if not ends_backoff:
                return
            if self._clock.monotonic() < rests_until:
                self._delay_until(key, rests_until)
                return
        self._forget_delay(key)
        if not ends_backoff and key in self._running and key not in self._again:
            self._unless_failed.add(key)
        elif ends_backoff:
            self._unless_failed.discard(key)
        self._make_ready(key)

    def add_after(self, key: H, delay_s: float) -> None:
        """Work on the key in so many seconds, or earlier when something else asks for it."""
        if delay_s <= 0:
            self.add(key)
            return
        if key in self._ready or key in self._again:
            return  # earlier wins
        self._delay_until(key, self._clock.monotonic() + delay_s)

    def retry(self, key: H, error: BaseException) -> float:
        """Work on the key again after the backoff of this failure, or its rest if it is wanted already; in how many seconds."""
        failure = failure_of(error)
        self._failures[key] = failures = self._failures.get(key, 0) + 1
        delay_s = requeue_after_s(error, failures, self._backoffs, self._clock.random)
        if self._observer:
            self._observer.retried(failure)
        rests_s = rest_s(delay_s)
        if key in self._again and key not in self._unless_failed:
            delay_s = rests_s
        self._again.pop(key, None)
        self._unless_failed.discard(key)
        self.add_after(key, delay_s)
        if key in self._delayed:
            self._rests_until[key] = self._clock.monotonic() + rests_s
        return delay_s

    def forget(self, key: H) -> None:
        """The key is well: its next failure is a first one."""
        self._failures.pop(key, None)

    # Working

    def begin_work(self) -> None:
        """Somebody works on the keys from now on; what waited for nobody begins to wait now."""
        self._is_worked = True
        self._ready = OrderedDict.fromkeys(self._ready, self._clock.monotonic())

    def end_work(self) -> None:
        """Nobody does: in a standby nothing waits."""
        self._is_worked = False

    async def get(self) -> H:
        """The next key, which is then this worker's alone until `done`."""
        while not self._ready:
            getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.cancelled():
                    with suppress(ValueError):  # a waker may have passed over it already
                        self._getters.remove(getter)
                else:
                    self._wake_getter()  # we were woken for a key and leave without it: the next in line takes it
                raise
        key = next(iter(self._ready))
        now = self._clock.monotonic()
        self._running[key] = now
        waited_s = now - self._ready.pop(key)
        if self._observer:
            self._observer.started(waited_s)
        return key

    def done(self, key: H) -> None:
        """The worker has let go of the key."""
        worked_s = self._clock.monotonic() - self._running.pop(key)
        if self._observer:
            self._observer.finished(worked_s)
        self._unless_failed.discard(key)
        if (since := self._again.pop(key, None)) is not None:
            self._make_ready(key, since)

    # Looking

    def __len__(self) -> int:
        """How many keys are ready, also those that are worked on and wanted again."""
        return len(self._ready) + len(self._again)

    @property
    def delayed_count(self) -> int:
        return len(self._delayed)

    def failures(self, key: H) -> int:
        """How often the key failed in a row."""
        return self._failures.get(key, 0)

    def oldest_waiting_s(self) -> float:
        """How long the longest waiting ready key has waited; 0 when none does."""
        since = [*self._ready.values(), *self._again.values()]
        return self._clock.monotonic() - min(since) if since and self._is_worked else 0.0

    def longest_running_s(self) -> float:
        return self._clock.monotonic() - min(self._running.values()) if self._running else 0.0

    # Inside

    def _make_ready(self, key: H, since: float | None = None) -> None:
        since = self._clock.monotonic() if since is None else since
        if key in self._running:
            self._again.setdefault(key, since)
        elif key not in self._ready:
            self._ready[key] = since
            self._wake_getter()

    def _delay_until(self, key: H, due: float) -> None:
        known = self._delayed.order_of(key)
        if known is None or due < known:
            self._delayed.put(key, due)
            self._set_timer()

    def _forget_delay(self, key: H) -> None:
        self._delayed.discard(key)
        self._rests_until.pop(key, None)
        # The timer stays: if it was for this key, it fires once for nothing and is set for the next.

    def _set_timer(self) -> None:
        due = self._delayed.first_order()
        if due is None or (self._timer and self._timer_due <= due):
            return
        if self._timer:
            self._timer.cancel()
        wait_s = max(0.0, due - self._clock.monotonic())
        self._timer_due = due
        self._timer = asyncio.get_running_loop().call_later(wait_s, self._release_due)

    def _release_due(self) -> None:
        self._timer = None
        # A timer may fire a clock tick early; what it was set for is due all the same.
        now = max(self._clock.monotonic(), self._timer_due)
        while (due := self._delayed.first_order()) is not None and due <= now:
            key = self._delayed.pop()
            self._rests_until.pop(key, None)
            self._make_ready(key)
        self._set_timer()

    def _wake_getter(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
