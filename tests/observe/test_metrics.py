"""Metrics: declared once, cheap to touch, separate per `Metrics`."""

import subprocess
import sys

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from applecart.clock import Clock
from applecart.observe.metrics import Metrics, _RusageCollector
from applecart.secrets import Secret
from tests.secret_guard import SecretGuard


def samples(metrics: Metrics) -> dict[str, float]:
    """Every exported series by its name and labels, as Prometheus itself would read the page."""
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        sample.name + "".join(f" {name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_gauges_and_histograms_are_exported_with_their_labels() -> None:
    metrics = Metrics()
    metrics.counter("syncs_total", "Syncs.", ["result"]).of("ok").inc()
    metrics.gauge("depth", "Depth.").of().set(3)
    metrics.histogram("took_seconds", "Took.", ["verb"], buckets=[1, 10]).of("get").observe(5)
    assert samples(metrics) == {
        "syncs_total result=ok": 1,
        "depth": 3,
        "took_seconds_bucket le=1.0 verb=get": 0,
        "took_seconds_bucket le=10.0 verb=get": 1,
        "took_seconds_bucket le=+Inf verb=get": 1,
        "took_seconds_count verb=get": 1,
        "took_seconds_sum verb=get": 5,
    }


def test_two_metrics_share_nothing_with_each_other_or_the_process() -> None:
    one, other = Metrics(), Metrics()
    one.counter("private_total", "Private.").of().inc()
    other.counter("private_total", "Private.").of().inc(5)
    assert (samples(one)["private_total"], samples(other)["private_total"]) == (1, 5)
    assert REGISTRY.get_sample_value("private_total") is None


def test_declaring_a_metric_again_gives_the_same_one() -> None:
    metrics = Metrics()
    metrics.counter("syncs_total", "Syncs.", ["result"]).of("ok").inc()
    metrics.counter("syncs_total", "Syncs.", ["result"]).of("ok").inc()
    assert samples(metrics) == {"syncs_total result=ok": 2}


def test_declaring_a_metric_differently_is_refused() -> None:
    metrics = Metrics()
    metrics.counter("syncs_total", "Syncs.", ["result"])
    with pytest.raises(ValueError, match=r"syncs_total is already declared as a Counter of \('result',\)"):
        metrics.counter("syncs_total", "Syncs.", ["verb"])
    with pytest.raises(ValueError, match="already declared"):
        metrics.gauge("syncs_total", "Syncs.", ["result"])


def test_a_child_is_made_once_and_then_only_looked_up() -> None:
    family = Metrics().counter("syncs_total", "Syncs.", ["result"])
    assert family.of("ok") is family.of("ok")
    assert family.of("ok") is not family.of("failed")


def test_the_wrong_number_of_label_values_is_refused() -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="label"):
        metrics.counter("syncs_total", "Syncs.", ["result"]).of("ok", "extra")
    with pytest.raises(ValueError, match="label"):
        metrics.gauge("depth", "Depth.").of("extra")


def test_a_forgotten_child_is_no_longer_exported_and_starts_again_at_zero() -> None:
    metrics = Metrics()
    family = metrics.gauge("host_up", "Up.", ["host"])
    family.of("mac-1").set(1)
    family.forget("mac-1")
    family.forget("never-seen")
    assert samples(metrics) == {}
    assert family.of("mac-1")._value.get() == 0


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    metrics.gauge("odd", "Odd.", ["path"]).of('a"b\\c\nd').set(1)
    assert samples(metrics) == {'odd path=a"b\\c\nd': 1}


def test_process_metrics_are_exported_on_request(clock: Clock) -> None:
    metrics = Metrics()
    metrics.add_process(clock)
    shown = samples(metrics)
    assert shown["process_cpu_seconds_total"] > 0
    assert shown["process_start_time_seconds"] > 0
    assert "python_gc_collections_total generation=0" in shown


def test_without_proc_the_kernel_still_tells_cpu_and_memory(clock: Clock) -> None:
    metrics = Metrics()
    metrics.add_collector(_RusageCollector(clock.now()))
    shown = samples(metrics)
    assert shown["process_cpu_seconds_total"] > 0
    assert shown["process_max_resident_memory_bytes"] > 1_000_000
    assert shown["process_start_time_seconds"] == clock.now().timestamp()


def test_a_secret_in_a_label_is_seen_by_the_guard(secret_guard: SecretGuard) -> None:
    secret, metrics = Secret("label-" + "secret-value"), Metrics()
    metrics.gauge("odd", "Odd.", ["token"]).of(secret.reveal()).set(1)
    metrics.render()
    assert secret_guard.take_leaks() == ['metrics: # HELP odd Odd. # TYPE odd gauge odd{token="***"} 1.0']


@pytest.mark.real_time
def test_importing_observe_imports_neither_prometheus_client_nor_aiohttp() -> None:
    program = "import sys, applecart.observe.ages, applecart.observe.serve; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"prometheus_client", "aiohttp"} & set(ran.stdout.split())
