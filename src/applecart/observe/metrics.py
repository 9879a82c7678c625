"""Prometheus metrics of one process or one test.

A `Metrics` owns its registry, so that two fleets in one process and two tests never share a number. A metric is declared
where it is used; declaring it again gives the same one, and declaring it differently is a mistake that is refused. A label
value never names something without bound (a Pod, a job) unless `forget` is called when that thing is gone.

prometheus_client is imported when the first `Metrics` is made: it brings a web server along, and commands that export
nothing start faster without it.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

from applecart import observe
from applecart.clock import Clock

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.metrics import MetricWrapperBase
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector

M = TypeVar("M", bound="MetricWrapperBase")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)  # an API call up to a host bootstrap


class Family(Generic[M]):
    """One metric with its labels. `of` is cheap enough for hot paths: a dictionary look-up, no lock."""

    def __init__(self, metric: M, labels: tuple[str, ...]) -> None:
        self.metric = metric
        self.labels = labels
        self._children: dict[tuple[str, ...], M] = {} if labels else {(): metric}

    def of(self, *values: str) -> M:
        """The child with these label values, in the order of the declaration."""
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = self.metric.labels(*values)
        return child

    def forget(self, *values: str) -> None:
        """Stop exporting the child of something that is gone."""
        if self._children.pop(values, None) is not None:
            self.metric.remove(*values)


class Metrics:
    """Declares metrics and renders the page that Prometheus reads."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        import prometheus_client

        # A second series for every counter, which nobody charts.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry or prometheus_client.CollectorRegistry(auto_describe=True)
        self._families: dict[str, Family[Counter] | Family[Gauge] | Family[Histogram]] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Family[Counter]:
        from prometheus_client import Counter

        return self._declare(Counter, name, help, labels)

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Family[Gauge]:
        from prometheus_client import Gauge

        return self._declare(Gauge, name, help, labels)

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] = SECONDS
    ) -> Family[Histogram]:
        from prometheus_client import Histogram

        return self._declare(Histogram, name, help, labels, buckets=buckets)

    def add_collector(self, collector: Collector) -> None:
        """For values that are computed when somebody asks."""
        self.registry.register(collector)

    def add_process(self, clock: Clock) -> None:
        """CPU, memory, start time and garbage collections of this process. Once per process, not per simulated component."""
        from prometheus_client import GCCollector, ProcessCollector

        GCCollector(registry=self.registry)
        if sys.platform == "linux":
            ProcessCollector(registry=self.registry)
        else:
            self.add_collector(_RusageCollector(clock.now()))

    def collect(self) -> Collected:
        """All series as they are now: some are computed from what belongs to the event loop. Rendering them is not."""
        return Collected(list(self.registry.collect()))

    def render(self, collected: Collected | None = None) -> bytes:
        from prometheus_client import generate_latest

        page = generate_latest(collected or self.registry)
        if observe.sinks:
            observe.published("metrics", page.decode())
        return page

    def _declare(self, kind: type[M], name: str, help: str, labels: Sequence[str], **options: object) -> Family[M]:
        known = self._families.get(name)
        if known is None:
            made: Family[M] = Family(kind(name, help, tuple(labels), registry=self.registry, **options), tuple(labels))  # type: ignore[arg-type]
            self._families[name] = made  # type: ignore[assignment]
            return made
        if not isinstance(known.metric, kind) or known.labels != tuple(labels):
            raise ValueError(f"metric {name} is already declared as a {type(known.metric).__name__} of {known.labels}")
        return known  # type: ignore[return-value]


class Collected:
    """As much of a registry as it takes to render it."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self.samples = sum(len(metric.samples) for metric in metrics)

    def collect(self) -> Sequence[Metric]:
        return self._metrics


class _RusageCollector:
    """Where there is no /proc (macOS), the kernel still counts our CPU time and the most memory we ever held."""

    def __init__(self, started_at: datetime) -> None:
        self._started_at = started_at

    def collect(self) -> Iterable[Metric]:
        return list(self._collect())

    def _collect(self) -> Iterator[Metric]:
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield CounterMetricFamily("process_cpu_seconds", "CPU time used.", value=usage.ru_utime + usage.ru_stime)
        yield GaugeMetricFamily("process_start_time_seconds", "Start, seconds since 1970.", value=self._started_at.timestamp())
        unit_bytes = 1 if sys.platform == "darwin" else 1024
        peak_bytes = usage.ru_maxrss * unit_bytes
        yield GaugeMetricFamily("process_max_resident_memory_bytes", "Most memory held at once.", value=peak_bytes)
