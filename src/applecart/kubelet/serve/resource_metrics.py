"""`/metrics/resource`: what the host and each guest use, in the words of a kubelet, for a metrics server. Pure.

Names, labels and timestamps are the contract of every kubelet: a metrics server reads nothing else since 0.6, and computes a
rate from the CPU times of two scrapes. A Pod is a label here, unlike in our own metrics; whoever is gone is simply left out.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from applecart.kubelet.serve.figures import Figures, GuestFigures, Measured

if TYPE_CHECKING:
    from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

CONTAINER = ("container", "namespace", "pod")
POD = ("namespace", "pod")
NS_PER_S = 1e9
SCRAPE_ERROR_HELP = "1 when the host could not be asked what it uses, 0 otherwise"


def resource_metrics(figures: Figures) -> bytes:
    """The page, as `applecart.observe.metrics.CONTENT_TYPE`."""
    from prometheus_client import generate_latest
    from prometheus_client.registry import Collector

    class Page(Collector):
        def collect(self) -> Iterable["Metric"]:
            return _families(figures)

    return generate_latest(Page())


def _families(figures: Figures) -> list["Metric"]:
    hosts = [((), figures.host)] if figures.host is not None else []
    containers = [((one.guest.container, *_pod(one)), one.measured) for one in figures.guests]
    pods = [(_pod(one), one.measured) for one in figures.guests]
    is_missing = float(figures.host is None)
    return [
        _cpu("node", "the node", (), hosts),
        _memory("node", "the node", (), hosts),
        _starts(figures.guests),
        _cpu("container", "the guest", CONTAINER, containers),
        _memory("container", "the guest", CONTAINER, containers),
        _cpu("pod", "the Pod", POD, pods),
        _memory("pod", "the Pod", POD, pods),
        _gauge("scrape_error", SCRAPE_ERROR_HELP, (), [((), is_missing, None)]),  # the name before Kubernetes 1.29
        _gauge("resource_scrape_error", SCRAPE_ERROR_HELP, (), [((), is_missing, None)]),
    ]


def _pod(figures: GuestFigures) -> tuple[str, ...]:
    return (figures.guest.namespace, figures.guest.pod)


def _cpu(of: str, whose: str, labels: Sequence[str], looks: Iterable[tuple[Sequence[str], Measured]]) -> "CounterMetricFamily":
    from prometheus_client.metrics_core import CounterMetricFamily

    family = CounterMetricFamily(f"{of}_cpu_usage_seconds", f"Core seconds that {whose} has used", labels=labels)
    for values, look in looks:
        family.add_metric(values, look.cpu_ns / NS_PER_S, timestamp=look.at.timestamp())
    return family


def _memory(of: str, whose: str, labels: Sequence[str], looks: Iterable[tuple[Sequence[str], Measured]]) -> "GaugeMetricFamily":
    samples = [(values, float(look.usage.memory_bytes), look.at.timestamp()) for values, look in looks]
    return _gauge(f"{of}_memory_working_set_bytes", f"Memory that {whose} uses", labels, samples)


def _starts(guests: Iterable[GuestFigures]) -> "GaugeMetricFamily":
    """A time of its own needs no timestamp."""
    known = [((one.guest.container, *_pod(one)), one.started_at.timestamp(), None) for one in guests if one.started_at]
    return _gauge("container_start_time_seconds", "When the guest was started, in seconds since 1970", CONTAINER, known)


def _gauge(
    name: str, help: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float, float | None]]
) -> "GaugeMetricFamily":
    from prometheus_client.metrics_core import GaugeMetricFamily

    family = GaugeMetricFamily(name, help, labels=labels)
    for values, value, at_s in samples:
        family.add_metric(values, value, timestamp=at_s)
    return family
