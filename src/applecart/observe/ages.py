"""The age of everything that waits (I10).

A queue that moves hides the one thing that is stuck in it. Whoever waits for something says so here; per class of waiting the
oldest age and the count are exported, computed when they are read, and both are 0 when nobody waits. A class that was ever
used stays exported, so that an alert can tell "nobody waits" from "nobody measures".

The label is the class of waiting, never the object: objects are listed by `oldest`, for status pages. Never acts on an age.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from applecart.clock import Clock

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from applecart.observe.metrics import Metrics

MOST_TRACKED = 20_000  # per class, about 5 MB; more than that is a missing `done`, which must not eat the memory


class Waiting(NamedTuple):
    """Something that waits, and for how long."""

    wait: str
    key: Hashable
    age_s: float


class _Wait(NamedTuple):
    """When it began, on the clock that never goes back, so that a step of the wall clock changes no age."""

    began_s: float
    since: datetime | None


class Ages:
    """Who waits for what, since when. A component makes one and hands it down."""

    def __init__(self, clock: Clock, metrics: Metrics, name: str = "applecart_wait", waits: Iterable[str] = ()) -> None:
        self._clock = clock
        self._name = name
        self._waits: dict[str, dict[Hashable, _Wait]] = {wait: {} for wait in waits}
        self._untracked = metrics.counter(f"{name}_untracked", "Waits that were not tracked, too many at once.", ["wait"])
        metrics.add_collector(self)

    def waiting(self, wait: str, key: Hashable, since: datetime | None = None, *, instead_of: str = "") -> None:
        """It waits, since the given instant or since now. Saying so again changes nothing unless `since` is another.

        What it waited for until now it waits for no longer, and its age goes on (`instead_of`).
        """
        tracked = self._waits.setdefault(wait, {})
        before = self._waits.setdefault(instead_of, {}).pop(key, None) if instead_of else None
        known = tracked.get(key, before)
        if before is not None and key not in tracked:
            tracked[key] = before
        if known is not None and since in (None, known.since):
            return
        if known is None and len(tracked) >= MOST_TRACKED:
            self._untracked.of(wait).inc()
            return
        waited_s = max(0.0, (self._clock.now() - since).total_seconds()) if since else 0.0
        tracked[key] = _Wait(self._clock.monotonic() - waited_s, since)

    def done(self, wait: str, key: Hashable) -> None:
        """It waits no longer; harmless when it never did."""
        self._waits.setdefault(wait, {}).pop(key, None)

    def clear(self, wait: str) -> None:
        """Nobody waits for this here any more."""
        self._waits[wait] = {}

    def gone(self, key: Hashable) -> None:
        """The object does not exist any more, so it waits for nothing."""
        for tracked in self._waits.values():
            tracked.pop(key, None)

    @contextmanager
    def during(self, wait: str, key: Hashable) -> Iterator[None]:
        """It waits as long as the block runs, however the block ends."""
        self.waiting(wait, key)
        try:
            yield
        finally:
            self.done(wait, key)

    def oldest(self, count: int, wait: str | None = None) -> list[Waiting]:
        """Those that wait longest, the oldest first; of all classes or of one."""
        waits = self._waits if wait is None else {wait: self._waits.get(wait, {})}
        now_s = self._clock.monotonic()
        every = (Waiting(name, key, now_s - it.began_s) for name, keys in waits.items() for key, it in keys.items())
        return heapq.nlargest(count, every, key=lambda waiting: waiting.age_s)

    def collect(self) -> Iterable[Metric]:
        """What prometheus_client calls when the page is read."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        oldest = GaugeMetricFamily(f"{self._name}_oldest_seconds", "Age of the longest wait, 0 if none.", labels=["wait"])
        count = GaugeMetricFamily(f"{self._name}_count", "How many wait.", labels=["wait"])
        now_s = self._clock.monotonic()
        for wait, tracked in self._waits.items():
            began_s = min((it.began_s for it in tracked.values()), default=now_s)
            oldest.add_metric([wait], now_s - began_s)
            count.add_metric([wait], len(tracked))
        return [oldest, count]
