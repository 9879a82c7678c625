"""What dispatch exports about webhooks, the queue, claims and answers.

Counters here end in `_count`, not `_total`, because the dashboards of existing installations read them so: an exporter that
adds `_total` by itself would break them. A fleet that disappears gets one last 0.
"""

from typing import Final

from applecart.api.metric_names import counter, gauge, histogram

# A last bucket of 300 s makes the p99 blind exactly when a queue clogs; 6 h is the longest session.
JOB_BUCKETS_MS: Final = (
    100, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
    600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000,
)  # fmt: skip
REQUEST_BUCKETS_MS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)  # a guest hangs up after 10 s

JOB_ENQUEUED: Final = counter("tuist_runners_job_enqueued_count", "Jobs put into the queue.", "fleet")
JOB_CLAIM: Final = counter("tuist_runners_job_claim_count", "Attempts to claim a job.", "fleet", "outcome")
JOB_RUNNING: Final = counter("tuist_runners_job_running_count", "Jobs handed to a VM.", "fleet")
JOB_COMPLETED: Final = counter("tuist_runners_job_completed_count", "Jobs that ended.", "fleet", "conclusion")
JOB_REQUEUED: Final = counter("tuist_runners_job_requeued_count", "Jobs put back because their VM was lost.", "fleet")
DISPATCH_REQUEST: Final = counter("tuist_runners_dispatch_request_count", "Polls answered.", "fleet", "outcome")
DISPATCH_AFFINITY: Final = counter(
    "tuist_runners_dispatch_affinity_count", "How a job was chosen with regard to caches on the host.", "fleet", "outcome"
)
WEBHOOK: Final = counter("tuist_runners_webhook_count", "Webhook deliveries worked off.", "action", "outcome")
RECOVERY: Final = counter("tuist_runners_recovery_count", "Repairs of lost or stuck state.", "kind")

JOB_QUEUE_TIME: Final = histogram(
    "tuist_runners_job_queue_time_milliseconds", "From queued to claimed.", "fleet", buckets=JOB_BUCKETS_MS
)
JOB_QUEUE_TO_RUNNING_TIME: Final = histogram(
    "tuist_runners_job_queue_to_running_time_milliseconds", "From queued to running.", "fleet", buckets=JOB_BUCKETS_MS
)
JOB_CLAIM_TO_RUNNING_TIME: Final = histogram(
    "tuist_runners_job_claim_to_running_time_milliseconds",
    "From claimed to running; slow when GitHub is.",
    "fleet",
    buckets=JOB_BUCKETS_MS,
)
JOB_RUN_TIME: Final = histogram(
    "tuist_runners_job_run_time_milliseconds", "From running to the end.", "fleet", buckets=JOB_BUCKETS_MS
)
JOB_TOTAL_TIME: Final = histogram(
    "tuist_runners_job_total_time_milliseconds", "From queued to the end.", "fleet", buckets=JOB_BUCKETS_MS
)
DISPATCH_REQUEST_DURATION: Final = histogram(
    "tuist_runners_dispatch_request_duration_milliseconds", "Time to answer a poll.", "fleet", buckets=REQUEST_BUCKETS_MS
)
RECOVERY_STRANDED_TIME: Final = histogram(
    "tuist_runners_recovery_stranded_time_milliseconds",
    "How long a job was lost before it was put back.",
    buckets=JOB_BUCKETS_MS,
)

QUEUE_LENGTH: Final = gauge("tuist_runners_queue_length", "Jobs waiting.", "fleet")
QUEUE_OLDEST_AGE: Final = gauge(
    "tuist_runners_queue_oldest_age_seconds", "How long the oldest waiting job waits; the figure to page on.", "fleet"
)
QUEUE_WITHHELD: Final = gauge(
    "tuist_runners_queue_withheld", "Waiting jobs whose account is at its limit; no demand for hosts.", "fleet"
)
CLAIMS: Final = gauge("tuist_runners_claims_count", "Claims held now.", "fleet", "lifecycle_state")
SESSION_CLAMPED: Final = gauge("tuist_runners_session_clamped_count", "Open sessions longer than any job may last.", "fleet")
REPLICA_DIVERGENCE: Final = gauge(
    "tuist_runners_replica_divergence_count", "Jobs on which two stores disagree after a settling time.", "fleet"
)
POOL_REPLICAS_DESIRED: Final = gauge("tuist_runners_pool_replicas_desired", "Runners a pool should have.", "fleet")
POOL_REPLICAS_OBSERVED: Final = gauge("tuist_runners_pool_replicas_observed", "Runners a pool has.", "fleet")
POOL_REPLICAS_MAX: Final = gauge("tuist_runners_pool_replicas_max", "Runners a pool may ever have.", "fleet")
