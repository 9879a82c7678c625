"""What a metric is: its name, kind, label names and buckets, and one line of help.

One file per exporter below this package, and `label_values.py` for the closed sets of label values. Dashboards and alerts of
existing installations match on these names, so a name changes only together with them. They also fix the endings: counters
of controllers and agents end in `_total`, counters of dispatch in `_count`, times in `_seconds` or `_milliseconds`.
No label ever holds an account, a repository or a Pod: their number has no bound.
"""

from enum import StrEnum

from msgspec import Struct


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric(Struct, frozen=True):
    """One metric family. `buckets` are the upper bounds of a histogram, without infinity."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.COUNTER, labels, help)


def gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, Kind.GAUGE, labels, help)


def histogram(name: str, help: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(name, Kind.HISTOGRAM, labels, help, buckets)
