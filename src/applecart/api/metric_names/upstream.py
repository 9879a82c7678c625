"""Metrics that others export and our dashboards and alerts read, and the scrape jobs they arrive under.

We never export these: their owners are the guests' own programs, node_exporter, kube-state-metrics, the network layer and
Prometheus itself. They are listed so that a dashboard and an alert rule can be checked against known names.
"""

from typing import Final

from applecart.api.metric_names import Kind, Metric, counter, gauge

KUBELET_SCRAPE_JOB: Final = "tuist-macos-tart-kubelet"
"""`job` label of scraped series, by the monitoring chart: the kubelet's metrics of every host."""

POD_METRICS_SCRAPE_JOB: Final = "tuist-macos-pod-metrics"
"""`job` label of scraped series, by the monitoring chart: metrics forwarded out of guests."""

NODE_EXPORTER_SCRAPE_JOB: Final = "tuist-macos-node-exporter"
"""`job` label of scraped series, by the monitoring chart: host metrics of every Mac."""

UP: Final = gauge("up", "1 when a scrape target answered.", "job", "instance")
POD_UNSCHEDULABLE: Final = gauge("kube_pod_status_unschedulable", "1 for a Pod no node takes.", "namespace", "pod")
NODE_FILESYSTEM_AVAIL: Final = gauge("node_filesystem_avail_bytes", "Room left on a file system.", "instance", "mountpoint")
NODE_FILESYSTEM_SIZE: Final = gauge("node_filesystem_size_bytes", "Size of a file system.", "instance", "mountpoint")
NODE_LOAD1: Final = gauge("node_load1", "Load of a host; present when its exporter is.", "instance")
NODE_NETWORK_TRANSMIT: Final = counter(
    "node_network_transmit_bytes_total", "Bytes sent by a network device; shows that a VLAN exists.", "instance", "device"
)
NODE_CGROUPS: Final = gauge("node_cgroups_cgroups", "Control groups of a Linux node.", "instance", "subsys_name")
CILIUM_DROPS: Final = counter("cilium_drop_count_total", "Packets refused by policy.", "direction", "reason")

OBAN_QUEUE_LENGTH: Final = gauge("tuist_oban_queue_length_count", "Jobs in the processor's queue.", "queue", "state")
OBAN_OLDEST_AVAILABLE_AGE: Final = gauge(
    "tuist_oban_queue_oldest_available_age_seconds", "How long the processor's oldest job waits.", "queue"
)
OBAN_PROCESSING_DURATION: Final = Metric(
    "tuist_oban_job_processing_duration_milliseconds", Kind.HISTOGRAM, ("queue",), "Time the processor takes for a job."
)
OBAN_QUEUE_TIME: Final = Metric(
    "tuist_oban_job_queue_time_milliseconds", Kind.HISTOGRAM, ("queue",), "Time a job waits for the processor."
)
OBAN_EXCEPTION_DURATION: Final = Metric(
    "tuist_oban_job_exception_duration_milliseconds", Kind.HISTOGRAM, ("queue",), "Time until a job of it failed."
)
OBAN_COMPLETE_ATTEMPTS: Final = Metric(
    "tuist_oban_job_complete_attempts", Kind.HISTOGRAM, ("queue",), "Attempts a job of it took."
)
HTTP_CONNECTIONS_IN_USE: Final = gauge("tuist_http_queue_in_use_connections", "Pooled connections in use.")
HTTP_CONNECTIONS_AVAILABLE: Final = gauge("tuist_http_queue_available_connections", "Pooled connections free.")
