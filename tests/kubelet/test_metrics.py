"""What the agent exports: every known name with its labels and buckets, counted where the caller says and nowhere else."""

from datetime import timedelta

import pytest

from applecart.api import labels
from applecart.api.meta import Key, ObjectMeta
from applecart.api.metric_names import Kind, Metric
from applecart.api.metric_names import kubelet as names
from applecart.api.metric_names.label_values import CacheMaterialize, CacheOutcome, CachePromote
from applecart.api.pods import Pod
from applecart.api.wire_names import constants
from applecart.clock import Clock
from applecart.kubelet.metrics import CallOutcome, Garbage, KubeletMetrics, Wait
from applecart.observe.metrics import Metrics
from tests.virtual_time import elapse

EVERY = [metric for metric in constants(names).values() if isinstance(metric, Metric)]
POD = Key("ci", "runner-1")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def kubelet(metrics: Metrics, clock: Clock) -> KubeletMetrics:
    return KubeletMetrics(metrics, clock)


def pod(clock: Clock, pool: str | None = "macos", age_s: float = 0.0) -> Pod:
    created = clock.now() - timedelta(seconds=age_s)
    named = {labels.RUNNER_POOL: pool} if pool else {}
    return Pod(metadata=ObjectMeta(namespace="ci", name="runner-1", labels=named, creation_timestamp=created))


def value(metrics: Metrics, name: str, **of: str) -> float | None:
    found: float | None = metrics.registry.get_sample_value(name, of)
    return found


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
async def test_every_known_metric_is_declared_by_its_name_and_kind(
    kubelet: KubeletMetrics, metrics: Metrics, metric: Metric
) -> None:
    families = {family.name: family for family in metrics.registry.collect()}
    name = metric.name.removesuffix("_total") if metric.kind is Kind.COUNTER else metric.name
    assert families[name].type == metric.kind


async def test_no_metric_of_the_agent_is_missing_from_the_list(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    known = {metric.name.removesuffix("_total") for metric in EVERY}
    assert {family.name for family in metrics.registry.collect()} == known


@pytest.mark.parametrize("metric", [metric for metric in EVERY if metric.buckets], ids=lambda metric: metric.name)
async def test_a_histogram_has_the_buckets_that_dashboards_expect(
    kubelet: KubeletMetrics, metrics: Metrics, clock: Clock, metric: Metric
) -> None:
    kubelet.booted(pod(clock), 1)
    kubelet.provision_started(pod(clock))
    kubelet.provisioned(pod(clock), 1, golden_was_made=True)
    kubelet.tart_called("clone", CallOutcome.OK, 1)
    kubelet.cache.uploaded(1)
    kubelet.cache.filled(1)
    family = next(family for family in metrics.registry.collect() if family.name == metric.name)
    bounds = [float(sample.labels["le"]) for sample in family.samples if sample.name.endswith("_bucket")]
    assert bounds == [*map(float, metric.buckets), float("inf")]
    assert set(family.samples[0].labels) == {"le", *metric.labels}


async def test_what_never_happened_is_exported_as_zero(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    """Incident 53: series that were made on first use showed "no data" for what had simply not happened."""
    for promote in CachePromote:
        assert value(metrics, names.CACHE_PROMOTE.name, result=promote) == 0
    for outcome in CacheOutcome:
        assert value(metrics, names.CACHE_OUTCOME.name, outcome=outcome) == 0
    for result in CacheMaterialize:
        assert value(metrics, names.CACHE_MATERIALIZE.name, result=result) == 0
    for kind in Garbage:
        assert value(metrics, names.GARBAGE_DELETED.name, kind=kind) == 0
    for wait in Wait:
        assert value(metrics, names.POD_WAIT_OLDEST.name, wait=wait) == 0
    assert value(metrics, names.GUI_SESSION_KICKS.name) == 0


async def test_the_wait_before_provisioning_is_measured_from_the_creation_of_the_pod(
    kubelet: KubeletMetrics, metrics: Metrics, clock: Clock
) -> None:
    """Incident 9: with a highest bucket of 600 s, waits of an hour all looked like ten minutes."""
    kubelet.provision_started(pod(clock, age_s=3000))
    delay = names.POD_PROVISION_DELAY.name
    assert value(metrics, f"{delay}_sum", pool="macos") == 3000
    assert value(metrics, f"{delay}_bucket", pool="macos", le="1800.0") == 0
    assert value(metrics, f"{delay}_bucket", pool="macos", le="3600.0") == 1


async def test_a_clock_that_was_set_back_gives_no_negative_duration(
    kubelet: KubeletMetrics, metrics: Metrics, clock: Clock
) -> None:
    kubelet.provision_started(pod(clock, age_s=-60))
    kubelet.booted(pod(clock), -1)
    assert value(metrics, f"{names.POD_PROVISION_DELAY.name}_sum", pool="macos") == 0
    assert value(metrics, f"{names.VM_BOOT_DURATION.name}_sum", pool="macos") == 0


async def test_a_pod_of_no_pool_counts_as_unknown(kubelet: KubeletMetrics, metrics: Metrics, clock: Clock) -> None:
    kubelet.failed(pod(clock, pool=None), "no-space")
    assert value(metrics, names.POD_FAILURES.name, pool="unknown", reason="no-space") == 1


async def test_a_vm_made_from_a_golden_that_was_here_is_warm_and_one_that_was_pulled_is_cold(
    kubelet: KubeletMetrics, metrics: Metrics, clock: Clock
) -> None:
    kubelet.provisioned(pod(clock), 2, golden_was_made=False)
    kubelet.provisioned(pod(clock), 400, golden_was_made=True)
    work = names.VM_PROVISION_WORK.name
    assert value(metrics, f"{work}_sum", pool="macos", path="warm") == 2
    assert value(metrics, f"{work}_sum", pool="macos", path="cold") == 400
    assert value(metrics, names.GOLDEN_REUSED.name, pool="macos") == 1
    assert value(metrics, names.GOLDEN_MATERIALIZED.name, pool="macos") == 1


async def test_boots_are_counted_by_what_became_of_them(kubelet: KubeletMetrics, metrics: Metrics, clock: Clock) -> None:
    kubelet.booted(pod(clock), 8)
    kubelet.boot_timed_out(pod(clock))
    kubelet.boot_refused(pod(clock))
    results = ("booted", "no_address", "not_started")
    assert [value(metrics, names.VM_BOOTS.name, pool="macos", result=result) for result in results] == [1, 1, 1]
    assert value(metrics, f"{names.VM_BOOT_DURATION.name}_count", pool="macos") == 1


async def test_the_age_of_the_pod_that_waits_longest_grows_while_nothing_happens(
    kubelet: KubeletMetrics, metrics: Metrics
) -> None:
    with kubelet.waiting("pull", POD):
        await elapse(120)
        assert value(metrics, names.POD_WAIT_OLDEST.name, wait="pull") == 120
        assert value(metrics, names.POD_WAIT_COUNT.name, wait="pull") == 1
    assert value(metrics, names.POD_WAIT_OLDEST.name, wait="pull") == 0


async def test_a_wait_that_no_block_can_hold_ends_when_told_or_when_the_pod_is_gone(
    kubelet: KubeletMetrics, metrics: Metrics
) -> None:
    kubelet.waits("teardown", POD)
    kubelet.waits("publish", POD)
    kubelet.waits_no_longer("publish", POD)
    assert value(metrics, names.POD_WAIT_COUNT.name, wait="publish") == 0
    kubelet.pod_gone(POD)
    assert value(metrics, names.POD_WAIT_COUNT.name, wait="teardown") == 0


async def test_a_wait_or_a_kind_that_nobody_knows_is_refused(kubelet: KubeletMetrics) -> None:
    with pytest.raises(ValueError, match="lunch"):
        kubelet.waits("lunch", POD)
    with pytest.raises(ValueError, match="pod runner-1"):
        kubelet.garbage_deleted("pod runner-1")


async def test_the_series_of_a_guest_goes_with_the_guest(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    disk = names.GUEST_DISK_USAGE.name
    kubelet.guest_disks({"a": 40.0, "b": 91.0})
    kubelet.guest_disks({"b": 92.0})
    assert value(metrics, disk, vm="a") is None
    assert value(metrics, disk, vm="b") == 92
    kubelet.vm_gone("b")
    kubelet.vm_gone("never seen")
    assert value(metrics, disk, vm="b") is None


async def test_a_host_day_of_guests_leaves_no_series_behind(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    before = metrics.render().count(b"\n")
    for number in range(500):
        kubelet.guest_disks({f"vm-{number}": 50.0})
        kubelet.vm_gone(f"vm-{number}")
    assert metrics.render().count(b"\n") == before


async def test_what_happens_on_the_host_is_counted(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    kubelet.gui_session_kicked()
    kubelet.garbage_deleted("golden")
    kubelet.tart_called("pull", CallOutcome.HUNG, 300)
    kubelet.node_checked("tart", False)
    kubelet.node_checked("disk", True)
    assert value(metrics, names.GUI_SESSION_KICKS.name) == 1
    assert value(metrics, names.GARBAGE_DELETED.name, kind="golden") == 1
    assert value(metrics, f"{names.TART_CALL.name}_sum", operation="pull", outcome="hung") == 300
    assert value(metrics, names.NODE_CHECK.name, check="tart") == 0
    assert value(metrics, names.NODE_CHECK.name, check="disk") == 1


async def test_caches_are_counted(kubelet: KubeletMetrics, metrics: Metrics) -> None:
    cache = kubelet.cache
    cache.finished(CacheOutcome.PROMOTED)
    cache.materialized(CacheMaterialize.WARM)
    cache.offered(CachePromote.REJECTED)
    cache.converged()
    cache.declined()
    cache.root(is_enabled=True, is_mounted=False, resident=3, free_bytes=5 << 30)
    assert value(metrics, names.CACHE_OUTCOME.name, outcome="promoted") == 1
    assert value(metrics, names.CACHE_MATERIALIZE.name, result="warm") == 1
    assert value(metrics, names.CACHE_PROMOTE.name, result="rejected") == 1
    assert value(metrics, names.CACHE_CONVERGED.name) == 1
    assert value(metrics, names.CACHE_ADMISSION_DECLINED.name) == 1
    state = (names.CACHE_ENABLED, names.CACHE_ROOT_MOUNTED, names.CACHE_RESIDENT, names.CACHE_ROOT_FREE)
    assert [value(metrics, metric.name) for metric in state] == [1, 0, 3, 5 << 30]
