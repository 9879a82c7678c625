"""The values that metric labels take, where dashboards match on them.

A counter with such a label is created with every value at 0, so that a graph of what never happened shows 0 and not a gap.
A set belongs to one label of one metric; equal words in two sets mean nothing to each other.
"""

from enum import StrEnum


class AdmissionBlocked(StrEnum):
    """`reason` of `tuist_runners_pool_admission_blocked_total`."""

    FLEET_CAP = "fleet_cap"
    NO_HEALTHY_NODE = "no_healthy_node"
    FLEET_VIEW_ERROR = "fleet_view_error"


class StartTimeout(StrEnum):
    """`reason` of `tuist_runners_pool_pod_start_timeouts_total`."""

    POLLER_NOT_STARTED = "poller_not_started"
    UNSCHEDULABLE = "unschedulable"


class NodeFilter(StrEnum):
    """`reason` of `tuist_runners_fleet_filtered_nodes`; the first that applies counts."""

    UNSCHEDULABLE = "unschedulable"
    MEMORY_PRESSURE = "memory_pressure"
    DISK_PRESSURE = "disk_pressure"
    PID_PRESSURE = "pid_pressure"
    NOT_READY = "not_ready"


class ProvisionPath(StrEnum):
    """`path` of `tart_kubelet_vm_provision_work_seconds`."""

    WARM = "warm"
    COLD = "cold"


class CacheOutcome(StrEnum):
    """`outcome` of `tart_kubelet_cache_volume_outcome_total`."""

    PROMOTED = "promoted"
    DISCARDED = "discarded"
    NONE = "none"


class CacheMaterialize(StrEnum):
    """`result` of `tart_kubelet_cache_volume_materialize_total`."""

    WARM = "warm"
    COLD = "cold"


class CachePromote(StrEnum):
    """`result` of `tart_kubelet_cache_volume_promote_total`; a lost race is not an error."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    ERROR = "error"


class ClaimState(StrEnum):
    """`lifecycle_state` of `tuist_runners_claims_count`."""

    CLAIMED = "claimed"
    RUNNING = "running"


class Affinity(StrEnum):
    """`outcome` of `tuist_runners_dispatch_affinity_count`."""

    RESIDENT = "resident"
    HEAD_RESIDENT = "head_resident"
    NO_RESIDENT_CANDIDATE = "no_resident_candidate"
    NO_RESIDENCY = "no_residency"
    HEAD_OVERDUE = "head_overdue"
    UNTRUSTED = "untrusted"


class DispatchOutcome(StrEnum):
    """`outcome` of `tuist_runners_dispatch_request_count`."""

    SERVED = "served"
    DRAIN = "drain"
    POD_COMMITTED = "pod_committed"
    EMPTY = "empty"
    LOST_RACE = "lost_race"
    POD_IN_USE = "pod_in_use"
    NO_WORK_YET = "no_work_yet"


class ClaimOutcome(StrEnum):
    """`outcome` of `tuist_runners_job_claim_count`."""

    OK = "ok"
    LOST_RACE = "lost_race"
    POD_IN_USE = "pod_in_use"
    ACCOUNT_BUSY = "account_busy"
    CONCURRENCY_LIMIT_REACHED = "concurrency_limit_reached"
    CONCURRENCY_LIMIT_MISSING = "concurrency_limit_missing"


class WebhookOutcome(StrEnum):
    """`outcome` of `tuist_runners_webhook_count`: why a delivery started nothing, and how a runner matched its job."""

    NO_ACCOUNT = "no_account"
    RUNNERS_DISABLED = "runners_disabled"
    NO_MATCHING_POOL = "no_matching_pool"
    NO_POOLS = "no_pools"
    AMBIGUOUS_POOL = "ambiguous_pool"
    MATCHED = "matched"
    MISMATCH = "mismatch"
    UNKNOWN_RUNNER = "unknown_runner"


class Recovery(StrEnum):
    """`kind` of `tuist_runners_recovery_count`."""

    STALE_CLAIM = "stale_claim"
    COMPLETED_CLAIM = "completed_claim"
    ORPHAN_REQUEUED = "orphan_requeued"
    ORPHAN_COMPLETED = "orphan_completed"
    POD_MISSING_CLAIM = "pod_missing_claim"
    ORPHANED_RUNNER_SESSION = "orphaned_runner_session"
    ORPHANED_STAMPED_POD = "orphaned_stamped_pod"
    QUEUED_COMPLETED = "queued_completed"
    QUEUED_REAPED = "queued_reaped"
    REDELIVERED = "redelivered"
    STRANDED_CLAIM_RELEASED = "stranded_claim_released"
    POD_STOP_RECOVERY_SCHEDULED = "pod_stop_recovery_scheduled"
    METRICS_DROPPED_AWAITING_ATTRIBUTION = "metrics_dropped_awaiting_attribution"
