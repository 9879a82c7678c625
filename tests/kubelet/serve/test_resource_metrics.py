"""The page that a metrics server reads, read back by a parser that is not ours."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from applecart.kubelet.serve.figures import Figures, GuestFigures, Measured
from applecart.kubelet.serve.guests import Guest, State
from applecart.kubelet.serve.resource_metrics import resource_metrics
from applecart.kubelet.serve.usage import LARGEST, Usage

AT = datetime(2026, 1, 1, 0, 0, 0, 250_000, tzinfo=UTC)
STARTED_AT = AT - timedelta(minutes=5)
HOST = Measured(Usage(500_000_000, 1 << 30), AT, 0.0, cpu_ns=90_500_000_000)
LABELS = {"container": "vm", "namespace": "ci", "pod": "job"}


def guest(pod: str = "job", namespace: str = "ci", container: str = "vm") -> Guest:
    nowhere = Path("nowhere")
    return Guest(namespace, pod, container, uid=f"uid-of-{pod}", vm="vm", state=State.RUNNING, vm_log=nowhere, share=nowhere)


def used(of: Guest, started_at: datetime | None = STARTED_AT) -> GuestFigures:
    return GuestFigures(of, started_at, Measured(Usage(10, 4096), AT, 0.0, cpu_ns=1_500_000_000))


def samples(figures: Figures) -> dict[str, list[Sample]]:
    families = text_string_to_metric_families(resource_metrics(figures).decode())
    found: dict[str, list[Sample]] = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def test_the_host_and_its_guests_have_the_names_labels_and_times_of_a_kubelet() -> None:
    at_s = AT.timestamp()
    pod = {name: LABELS[name] for name in ("namespace", "pod")}
    assert samples(Figures(HOST, (used(guest()),))) == {
        "node_cpu_usage_seconds_total": [Sample("node_cpu_usage_seconds_total", {}, 90.5, at_s)],
        "node_memory_working_set_bytes": [Sample("node_memory_working_set_bytes", {}, 1 << 30, at_s)],
        "container_start_time_seconds": [Sample("container_start_time_seconds", LABELS, STARTED_AT.timestamp())],
        "container_cpu_usage_seconds_total": [Sample("container_cpu_usage_seconds_total", LABELS, 1.5, at_s)],
        "container_memory_working_set_bytes": [Sample("container_memory_working_set_bytes", LABELS, 4096, at_s)],
        "pod_cpu_usage_seconds_total": [Sample("pod_cpu_usage_seconds_total", pod, 1.5, at_s)],
        "pod_memory_working_set_bytes": [Sample("pod_memory_working_set_bytes", pod, 4096, at_s)],
        "scrape_error": [Sample("scrape_error", {}, 0)],
        "resource_scrape_error": [Sample("resource_scrape_error", {}, 0)],
    }


def test_the_text_is_what_a_kubelet_writes() -> None:
    lines = resource_metrics(Figures(HOST, (used(guest()),))).decode().splitlines()
    assert "# TYPE node_cpu_usage_seconds_total counter" in lines
    assert "# TYPE container_start_time_seconds gauge" in lines
    assert 'container_cpu_usage_seconds_total{container="vm",namespace="ci",pod="job"} 1.5 1767225600250' in lines


def test_a_guest_whose_start_is_not_known_yet_has_its_other_figures() -> None:
    found = samples(Figures(HOST, (used(guest(), started_at=None),)))
    assert "container_start_time_seconds" not in found
    assert len(found["container_cpu_usage_seconds_total"]) == 1


def test_a_host_that_could_not_be_asked_is_an_error_and_its_guests_are_there() -> None:
    found = samples(Figures(None, (used(guest()),)))
    assert found["scrape_error"][0].value == found["resource_scrape_error"][0].value == 1
    assert "node_cpu_usage_seconds_total" not in found
    assert len(found["pod_cpu_usage_seconds_total"]) == 1


@pytest.mark.parametrize("cpu_ns", [1, 999_999_999, 10**15 + 1])
def test_no_time_reads_as_none(cpu_ns: int) -> None:
    """A metrics server takes 0 for a figure that is missing."""
    found = samples(Figures(Measured(Usage(0, 1), AT, 0.0, cpu_ns=cpu_ns)))
    assert found["node_cpu_usage_seconds_total"][0].value * 1e9 == pytest.approx(cpu_ns)


ODD = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    ['"', "\\", "\n", '\\"', "a\nscrape_error 1", "é", '",pod="x']
)


@given(ODD, ODD, ODD, st.integers(1, LARGEST), st.integers(0, LARGEST))
def test_no_name_of_a_guest_breaks_the_page(pod: str, namespace: str, container: str, cpu_ns: int, memory_bytes: int) -> None:
    odd = GuestFigures(guest(pod, namespace, container), STARTED_AT, Measured(Usage(0, memory_bytes), AT, 0.0, cpu_ns=cpu_ns))
    found = samples(Figures(HOST, (odd, used(guest()))))
    first, second = found["container_memory_working_set_bytes"]
    assert first.labels == {"container": container, "namespace": namespace, "pod": pod}
    assert second.labels == LABELS
    assert [sample.value for sample in found["scrape_error"]] == [0]
