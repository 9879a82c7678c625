"""Everything the agent counts and measures, by methods that leave no label to the caller's imagination.

Names, labels and buckets are those of `api.metric_names.kubelet`, which dashboards match on. What a chart compares exists at 0
from the start, so that nothing happening is a flat line and not a gap. A series per VM goes with its VM: their number has no
bound. Nothing is decided from these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from applecart.api import labels
from applecart.api.meta import Key
from applecart.api.metric_names import Metric
from applecart.api.metric_names import kubelet as names
from applecart.api.metric_names.label_values import CacheMaterialize, CacheOutcome, CachePromote, ProvisionPath
from applecart.api.pods import Pod
from applecart.clock import Clock
from applecart.observe.ages import Ages
from applecart.observe.metrics import Family, Metrics

if TYPE_CHECKING:
    from prometheus_client import Counter, Gauge, Histogram

NO_POOL = "unknown"  # the `pool` of a Pod that no pool made


class Wait(StrEnum):
    """What a Pod waits for, in the order of its life."""

    FINALIZER = "finalizer"
    CONFIG = "config"
    PULL = "pull"
    CLONE = "clone"
    BOOT = "boot"
    JOURNAL = "journal"  # a full disk, mostly
    PUBLISH = "publish"
    TEARDOWN = "teardown"


class BootResult(StrEnum):
    BOOTED = "booted"
    NO_ADDRESS = "no_address"
    NOT_STARTED = "not_started"


class CallOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    HUNG = "hung"


class Garbage(StrEnum):
    VM = "vm"
    GOLDEN = "golden"
    IMAGE = "image"
    SCRATCH = "scratch"
    USERDATA = "userdata"
    LOG = "log"


def counter(metrics: Metrics, metric: Metric) -> Family[Counter]:
    return metrics.counter(metric.name, metric.help, metric.labels)


def gauge(metrics: Metrics, metric: Metric) -> Family[Gauge]:
    return metrics.gauge(metric.name, metric.help, metric.labels)


def histogram(metrics: Metrics, metric: Metric) -> Family[Histogram]:
    return metrics.histogram(metric.name, metric.help, metric.labels, metric.buckets)


def pool_of(pod: Pod) -> str:
    return pod.labels.get(labels.RUNNER_POOL) or NO_POOL


class KubeletMetrics:
    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self.cache = CacheMetrics(metrics)
        self._clock = clock
        self._boot = histogram(metrics, names.VM_BOOT_DURATION)
        self._delay = histogram(metrics, names.POD_PROVISION_DELAY)
        self._work = histogram(metrics, names.VM_PROVISION_WORK)
        self._goldens_made = counter(metrics, names.GOLDEN_MATERIALIZED)
        self._goldens_reused = counter(metrics, names.GOLDEN_REUSED)
        self._guest_disk = gauge(metrics, names.GUEST_DISK_USAGE)
        self._boots = counter(metrics, names.VM_BOOTS)
        self._failures = counter(metrics, names.POD_FAILURES)
        self._kicks = counter(metrics, names.GUI_SESSION_KICKS)
        self._garbage = counter(metrics, names.GARBAGE_DELETED)
        self._calls = histogram(metrics, names.TART_CALL)
        self._checks = gauge(metrics, names.NODE_CHECK)
        self._vms_with_disk: set[str] = set()
        prefix = names.POD_WAIT_OLDEST.name.removesuffix("_oldest_seconds")
        self.ages = Ages(clock, metrics, prefix, waits=Wait)
        for kind in Garbage:
            self._garbage.of(kind)

    def waiting(self, wait: str, pod: Key) -> AbstractContextManager[None]:
        """The Pod waits for this as long as the block runs."""
        return self.ages.during(Wait(wait), pod)

    def waits(self, wait: str, pod: Key, since: datetime | None = None) -> None:
        """The Pod waits for this until `waits_no_longer`, where no block can hold the wait."""
        self.ages.waiting(Wait(wait), pod, since)

    def waits_no_longer(self, wait: str, pod: Key) -> None:
        self.ages.done(Wait(wait), pod)

    def pod_gone(self, pod: Key) -> None:
        self.ages.gone(pod)

    def provision_started(self, pod: Pod) -> None:
        """Once per Pod, retries included: twice would hide how long it really waited."""
        created = pod.metadata.creation_timestamp
        if created is not None:
            self._delay.of(pool_of(pod)).observe(max(0.0, (self._clock.now() - created).total_seconds()))

    def provisioned(self, pod: Pod, took_s: float, *, golden_was_made: bool) -> None:
        """Its disk is there: cloned from a golden that was here (warm), or pulled first (cold)."""
        pool = pool_of(pod)
        (self._goldens_made if golden_was_made else self._goldens_reused).of(pool).inc()
        self._work.of(pool, ProvisionPath.COLD if golden_was_made else ProvisionPath.WARM).observe(max(0.0, took_s))

    def booted(self, pod: Pod, took_s: float) -> None:
        """It has its first address. Not for a VM that an earlier agent started: nobody saw when it had one."""
        self._boot.of(pool_of(pod)).observe(max(0.0, took_s))
        self._boots.of(pool_of(pod), BootResult.BOOTED).inc()

    def boot_timed_out(self, pod: Pod) -> None:
        self._boots.of(pool_of(pod), BootResult.NO_ADDRESS).inc()

    def boot_refused(self, pod: Pod) -> None:
        """`tart run` ended at once."""
        self._boots.of(pool_of(pod), BootResult.NOT_STARTED).inc()

    def failed(self, pod: Pod, failure: str) -> None:
        """`failure` is one of the classes of trouble, never a text."""
        self._failures.of(pool_of(pod), failure).inc()

    def gui_session_kicked(self) -> None:
        self._kicks.of().inc()

    def garbage_deleted(self, kind: str) -> None:
        self._garbage.of(Garbage(kind)).inc()

    def tart_called(self, operation: str, outcome: str, took_s: float) -> None:
        self._calls.of(operation, CallOutcome(outcome)).observe(max(0.0, took_s))

    def node_checked(self, check: str, is_good: bool) -> None:
        self._checks.of(check).set(is_good)

    def guest_disks(self, used_percent: Mapping[str, float]) -> None:
        """How full the running guests are; a guest that did not answer this time has no series, not an old one."""
        for vm in self._vms_with_disk - used_percent.keys():
            self._guest_disk.forget(vm)
        for vm, percent in used_percent.items():
            self._guest_disk.of(vm).set(percent)
        self._vms_with_disk = set(used_percent)

    def vm_gone(self, vm: str) -> None:
        self._guest_disk.forget(vm)
        self._vms_with_disk.discard(vm)


class CacheMetrics:
    """Of the caches that a host keeps for accounts; all at 0 where it keeps none."""

    def __init__(self, metrics: Metrics) -> None:
        self._outcome = counter(metrics, names.CACHE_OUTCOME)
        self._materialize = counter(metrics, names.CACHE_MATERIALIZE)
        self._promote = counter(metrics, names.CACHE_PROMOTE)
        self._converged = counter(metrics, names.CACHE_CONVERGED)
        self._declined = counter(metrics, names.CACHE_ADMISSION_DECLINED)
        self._resident = gauge(metrics, names.CACHE_RESIDENT)
        self._root_free = gauge(metrics, names.CACHE_ROOT_FREE)
        self._enabled = gauge(metrics, names.CACHE_ENABLED)
        self._mounted = gauge(metrics, names.CACHE_ROOT_MOUNTED)
        self._upload = histogram(metrics, names.CACHE_UPLOAD)
        self._fill = histogram(metrics, names.CACHE_FILL)
        for family, values in (
            (self._outcome, CacheOutcome),
            (self._materialize, CacheMaterialize),
            (self._promote, CachePromote),
        ):
            for value in values:
                family.of(value)

    def finished(self, outcome: CacheOutcome) -> None:
        self._outcome.of(outcome).inc()

    def materialized(self, result: CacheMaterialize) -> None:
        self._materialize.of(result).inc()

    def offered(self, result: CachePromote) -> None:
        self._promote.of(result).inc()

    def converged(self) -> None:
        self._converged.of().inc()

    def declined(self) -> None:
        self._declined.of().inc()

    def uploaded(self, took_s: float) -> None:
        self._upload.of().observe(max(0.0, took_s))

    def filled(self, percent: float) -> None:
        self._fill.of().observe(percent)

    def root(self, *, is_enabled: bool, is_mounted: bool, resident: int, free_bytes: int) -> None:
        self._enabled.of().set(is_enabled)
        self._mounted.of().set(is_mounted)
        self._resident.of().set(resident)
        self._root_free.of().set(free_bytes)
