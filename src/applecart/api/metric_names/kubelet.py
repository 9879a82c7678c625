"""What the kubelet of one host exports: how long guests take, who waits, what failed, goldens, disks and cache volumes."""

from typing import Final

from applecart.api.metric_names import counter, gauge, histogram

BOOT_BUCKETS_S: Final = (10, 20, 30, 45, 60, 90, 120, 180, 240, 300, 600)  # a warm boot takes 5 to 30 s, a first one minutes
PROVISION_BUCKETS_S: Final = (1, 5, 10, 20, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600)  # 600 s hid a wait of an hour
UPLOAD_BUCKETS_S: Final = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)  # the guest gives an upload up at 600 s
FILL_BUCKETS_PERCENT: Final = (25, 50, 60, 70, 80, 85, 90, 93, 95, 97, 99, 100)  # dense where a volume starts to fail
TART_CALL_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1200, 3600)  # a look up to a pull

VM_BOOT_DURATION: Final = histogram(
    "tart_kubelet_vm_boot_duration_seconds",
    "From the start of a VM to its first address; VMs found running after a restart are not counted.",
    "pool",
    buckets=BOOT_BUCKETS_S,
)
POD_PROVISION_DELAY: Final = histogram(
    "tart_kubelet_pod_provision_delay_seconds",
    "From the creation of a Pod to the beginning of the work on its VM (CreatingVM), before any pull or clone; once per Pod.",
    "pool",
    buckets=PROVISION_BUCKETS_S,
)
VM_PROVISION_WORK: Final = histogram(
    "tart_kubelet_vm_provision_work_seconds",
    "Work to make a VM's disk: cloned from a golden on the host (warm) or pulled first (cold).",
    "pool",
    "path",
    buckets=PROVISION_BUCKETS_S,
)
GOLDEN_MATERIALIZED: Final = counter("tart_kubelet_golden_base_materialized_total", "Goldens made from the registry.", "pool")
GOLDEN_REUSED: Final = counter("tart_kubelet_golden_base_reused_total", "VMs made from a golden already here.", "pool")
GUEST_DISK_USAGE: Final = gauge("tart_kubelet_guest_disk_usage_percent", "How full a running guest's disk is.", "vm")

POD_WAIT_OLDEST: Final = gauge(
    "tart_kubelet_pod_wait_oldest_seconds",
    "How long the Pod that waits longest in a stage waits; the figure to page on.",
    "wait",
)
POD_WAIT_COUNT: Final = gauge("tart_kubelet_pod_wait_count", "Pods that wait in a stage.", "wait")
POD_WAIT_UNTRACKED: Final = counter(
    "tart_kubelet_pod_wait_untracked_total", "Waits that were not measured because there were too many at once.", "wait"
)
VM_BOOTS: Final = counter("tart_kubelet_vm_boots_total", "VMs started, by what became of the boot.", "pool", "result")
POD_FAILURES: Final = counter(
    "tart_kubelet_pod_failures_total", "Pods that Failed through the host and not through their job.", "pool", "reason"
)
GUI_SESSION_KICKS: Final = counter(
    "tart_kubelet_gui_session_kicks_total", "Times loginwindow was started anew because nobody was logged in on the screen."
)
GARBAGE_DELETED: Final = counter("tart_kubelet_garbage_deleted_total", "What was deleted to free the disk.", "kind")
TART_CALL: Final = histogram(
    "tart_kubelet_tart_call_seconds",
    "How long Tart commands took.",
    "operation",
    "outcome",
    buckets=TART_CALL_BUCKETS_S,
)
NODE_CHECK: Final = gauge("tart_kubelet_node_check", "1 while a check of the host succeeds, 0 while it fails.", "check")

CACHE_OUTCOME: Final = counter(
    "tart_kubelet_cache_volume_outcome_total", "What became of a VM's cache volume after its job.", "outcome"
)
CACHE_MATERIALIZE: Final = counter(
    "tart_kubelet_cache_volume_materialize_total",
    "Cache volumes given to a job: with the account's contents (warm) or empty (cold).",
    "result",
)
CACHE_PROMOTE: Final = counter(
    "tart_kubelet_cache_volume_promote_total",
    "Answers to a guest that offered its cache as the account's newest; every result exists from the start.",
    "result",
)
CACHE_CONVERGED: Final = counter(
    "tart_kubelet_cache_volume_converged_total", "Newer caches of an account fetched from other hosts."
)
CACHE_RESIDENT: Final = gauge("tart_kubelet_cache_volume_resident_count", "Accounts whose cache is on this host.")
CACHE_ROOT_FREE: Final = gauge("tart_kubelet_cache_volume_root_free_bytes", "Free space for caches on this host.")
CACHE_ENABLED: Final = gauge("tart_kubelet_cache_volume_enabled", "1 when this host is configured to keep caches.")
CACHE_ROOT_MOUNTED: Final = gauge(
    "tart_kubelet_cache_volume_root_mounted", "1 when the disk for caches is mounted; means something only where enabled."
)
CACHE_ADMISSION_DECLINED: Final = counter(
    "tart_kubelet_cache_volume_admission_declined_total", "Jobs that got no cache volume because there was no room."
)
CACHE_UPLOAD: Final = histogram(
    "tart_kubelet_cache_volume_upload_seconds",
    "How long a guest took to publish its cache; its host slot is taken meanwhile.",
    buckets=UPLOAD_BUCKETS_S,
)
CACHE_FILL: Final = histogram(
    "tart_kubelet_cache_volume_fill_percent",
    "How full a cache volume was at the end of its job.",
    buckets=FILL_BUCKETS_PERCENT,
)
