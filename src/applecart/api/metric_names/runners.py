"""What the runners controller exports about pools, rolls, demand and nodes.

Gauges are set to 0, never left out, and never below 0; all series of a pool go when the pool is gone, and the autoscaler's
go too when the pool opts out.
"""

from typing import Final

from applecart.api.metric_names import counter, gauge

TARGET_REPLICAS: Final = gauge(
    "tuist_runners_autoscaler_target_replicas", "Runners a pool would have if hosts were free.", "pool"
)
ALLOCATED_REPLICAS: Final = gauge(
    "tuist_runners_autoscaler_allocated_replicas", "Runners a pool gets of the hosts it shares.", "pool"
)
MIN_WARM_FLOOR: Final = gauge(
    "tuist_runners_autoscaler_min_warm_floor_replicas", "Idle runners a pool asks for on top of its load.", "pool"
)
WARM_DEFICIT: Final = gauge(
    "tuist_runners_autoscaler_warm_deficit_replicas",
    "Idle runners a pool asked for and did not get; above 0 for long, the next burst waits for boots.",
    "pool",
)
CLAIMED_JOBS: Final = gauge("tuist_runners_autoscaler_claimed_jobs", "Jobs held by a runner of the pool.", "pool")
OCCUPIED_RUNNERS: Final = gauge(
    "tuist_runners_autoscaler_occupied_runners", "Runners of the pool with a job or still clearing up after one.", "pool"
)
QUEUED_JOBS: Final = gauge("tuist_runners_autoscaler_queued_jobs", "Jobs waiting that their account may run.", "pool")

ROLLING_PODS: Final = gauge(
    "tuist_runners_pool_rolling_pods", "Pods of a roll in flight: chosen to retire, or new and not yet warm.", "pool"
)
STALE_PODS: Final = gauge("tuist_runners_pool_stale_pods", "Live Pods with an old image; flat above 0 is a stuck roll.", "pool")
ROLL_CONCURRENCY_CAP: Final = gauge(
    "tuist_runners_pool_roll_concurrency_cap", "How many Pods of the pool may be in flight at once (I6).", "pool"
)
PHASE_REPLICAS: Final = gauge("tuist_runners_pool_phase_replicas", "Pods of the pool by phase.", "pool", "phase")
OLDEST_PENDING_POD_AGE: Final = gauge(
    "tuist_runners_pool_oldest_pending_pod_age_seconds",
    "Age of the oldest Mac Pod that has not booted; hours mean a stalled host.",
    "pool",
)
IDLE_REPLICAS: Final = gauge(
    "tuist_runners_pool_idle_replicas",
    "Warm Pods without a job; above 0 beside a queue for long, dispatch is at fault and not capacity.",
    "pool",
)
PENDING_PROVISIONING_PODS: Final = gauge(
    "tuist_runners_pool_pending_provisioning_pods", "Linux Pods whose guest has not started.", "pool"
)
ADMISSION_BLOCKED: Final = counter(
    "tuist_runners_pool_admission_blocked_total", "Passes that had to hold back new Pods.", "pool", "reason"
)
POD_START_TIMEOUTS: Final = counter(
    "tuist_runners_pool_pod_start_timeouts_total", "Pods replaced because they never started.", "pool", "reason"
)

FLEET_READY_NODES: Final = gauge(
    "tuist_runners_fleet_ready_nodes", "Nodes that take runners.", "fleet_selector", "operating_system"
)
FLEET_FILTERED_NODES: Final = gauge(
    "tuist_runners_fleet_filtered_nodes",
    "Nodes left out, by the first cause that applies.",
    "fleet_selector",
    "operating_system",
    "reason",
)
