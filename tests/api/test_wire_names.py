"""The page of wire names says what the constants say, and the contract with existing installations is complete."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

from applecart.api import annotations, conditions, finalizers, labels, wire_names
from applecart.api.metric_names import Metric
from applecart.api.reasons import ConditionReason, EventReason, StatusReason
from applecart.errors import BadInput

# Spelled out a second time on purpose: manifests, guests and dashboards in the field hold these very words.
LABELS = """
    tuist.dev/runner tuist.dev/runner-pool tuist.dev/runner-pool-owner tuist.dev/runner-account
    tuist.dev/runner-cache-untrusted tuist.dev/drain-eligible tuist.dev/runner-operator-drain tuist.dev/golden-
    tuist.dev/cache-master- tuist.dev/fleet tuist.dev/runtime tuist.dev/machine tuist.dev/managed-by
    tuist.dev/macmini-egress tuist.dev/macmini-machine tuist.dev/xcode-version tuist.dev/xcode-default tuist.dev/shape
    tuist.dev/shape-vcpus tuist.dev/shape-memory-gb tuist.dev/shape-default app.kubernetes.io/name
    app.kubernetes.io/component app.kubernetes.io/managed-by kubernetes.io/os kubernetes.io/arch kubernetes.io/hostname
    node.cluster.x-k8s.io/pool cluster.x-k8s.io/cluster-name cluster.x-k8s.io/v1beta1
"""
ANNOTATIONS = """
    cluster.x-k8s.io/paused scaleway.tuist.dev/ssh-key-id kubernetes.io/service-account.name tuist.dev/fleet-hash
    tuist.dev/runtime-class-revision tuist.dev/release-policy io.katacontainers.config.hypervisor.kernel_params
    tuist.dev/vnc-session-id tuist.dev/vnc-requested-at tuist.dev/vnc-relay-token-hash tuist.dev/vnc-state
    tuist.dev/vnc-relay-host tuist.dev/vnc-relay-port tuist.dev/vnc-relay-ready-at prometheus.io/scrape
    prometheus.io/port tailscale.com/tailnet-fqdn tailscale.com/proxy-group helm.sh/resource-policy
"""
FINALIZERS = """
    scalewayapplesilicon.cluster.x-k8s.io/finalizer tuist.dev/runner-pool-drain tart-kubelet.tuist.dev/vm-cleanup
"""
CONDITIONS = "Provisioned Bootstrapped ControlPlaneInitialized Ready DiskPressure PodScheduled TartKubeletHostBusy"
PROVISIONED_REASONS = """
    CredentialsPersistFailed:Error NoAdoptPoolPrefix:Error InvalidOSPin:Error NoAvailableHost:Warning
    ScalewayAdoptFailed:Error HostReleased:Warning
"""
BOOTSTRAPPED_REASONS = """
    SSHKeyUnavailable:Error CredentialsRefreshFailed:Warning MissingSudoPassword:Error NodeMissing:Warning
    NodeIdentityUnavailable:Warning KubeconfigUnavailable:Warning TailscaleAuthKeyUnavailable:Warning
    GHRunnerRegistrationTokenUnavailable:Warning CachePrivateNetworkUnavailable:Warning BootstrapFailed:Warning
"""
STATUS_REASONS = """
    TartKubeletUpdateExceededRetries TartCreateFailed TartRunExited TartRunFailed Completed Error
"""
NORMAL_EVENTS = """
    Adopting Adopted Provisioned CredentialsReclaimed Bootstrapping Bootstrapped RebootingForRecovery BootstrapExhausted
    AgentRolled AgentRollRetried Releasing Released CreatingVM RunnerPodRetiredForNodeDrain
"""
WARNING_EVENTS = """
    NoAdoptPoolPrefix InvalidOSPin NoAvailableHost ProvisioningFailed CredentialsRefreshFailed MissingSudoPassword
    NodeMissing GHRunnerRegistrationTokenUnavailable BootstrapFailed RebootForRecoveryFailed ReleaseFailed ReleaseSkipped
    OSPinUnavailable BootstrapSecretDeleteFailed AgentRollFailed TartKubeletUpdateExceededRetries EgressServiceFailed
    DeleteFailed IdentityRegenSkipped CacheVolumeSkipped RunnerPodStartTimedOut RunnerPodUnschedulable
"""
METRICS = """
    capt_scaleway_applesilicon_machine_phase{machine,fleet,phase,failure_reason} scaleway_orphan_servers{}
    scaleway_orphan_servers_reclaimed_total{}
    tart_kubelet_vm_boot_duration_seconds{pool} tart_kubelet_pod_provision_delay_seconds{pool}
    tart_kubelet_vm_provision_work_seconds{pool,path} tart_kubelet_golden_base_materialized_total{pool}
    tart_kubelet_golden_base_reused_total{pool} tart_kubelet_guest_disk_usage_percent{vm}
    tart_kubelet_cache_volume_outcome_total{outcome} tart_kubelet_cache_volume_materialize_total{result}
    tart_kubelet_cache_volume_promote_total{result} tart_kubelet_cache_volume_converged_total{}
    tart_kubelet_cache_volume_resident_count{} tart_kubelet_cache_volume_root_free_bytes{}
    tart_kubelet_cache_volume_enabled{} tart_kubelet_cache_volume_root_mounted{}
    tart_kubelet_cache_volume_admission_declined_total{} tart_kubelet_cache_volume_upload_seconds{}
    tart_kubelet_cache_volume_fill_percent{}
    tuist_runners_autoscaler_target_replicas{pool} tuist_runners_autoscaler_allocated_replicas{pool}
    tuist_runners_autoscaler_min_warm_floor_replicas{pool} tuist_runners_autoscaler_warm_deficit_replicas{pool}
    tuist_runners_autoscaler_claimed_jobs{pool} tuist_runners_autoscaler_occupied_runners{pool}
    tuist_runners_autoscaler_queued_jobs{pool} tuist_runners_pool_rolling_pods{pool} tuist_runners_pool_stale_pods{pool}
    tuist_runners_pool_roll_concurrency_cap{pool} tuist_runners_pool_phase_replicas{pool,phase}
    tuist_runners_pool_oldest_pending_pod_age_seconds{pool} tuist_runners_pool_idle_replicas{pool}
    tuist_runners_pool_pending_provisioning_pods{pool} tuist_runners_pool_admission_blocked_total{pool,reason}
    tuist_runners_pool_pod_start_timeouts_total{pool,reason}
    tuist_runners_fleet_ready_nodes{fleet_selector,operating_system}
    tuist_runners_fleet_filtered_nodes{fleet_selector,operating_system,reason}
    tuist_runners_job_enqueued_count{fleet} tuist_runners_job_claim_count{fleet,outcome}
    tuist_runners_job_running_count{fleet} tuist_runners_job_completed_count{fleet,conclusion}
    tuist_runners_job_requeued_count{fleet} tuist_runners_dispatch_request_count{fleet,outcome}
    tuist_runners_dispatch_affinity_count{fleet,outcome} tuist_runners_webhook_count{action,outcome}
    tuist_runners_recovery_count{kind} tuist_runners_job_queue_time_milliseconds{fleet}
    tuist_runners_job_queue_to_running_time_milliseconds{fleet}
    tuist_runners_job_claim_to_running_time_milliseconds{fleet} tuist_runners_job_run_time_milliseconds{fleet}
    tuist_runners_job_total_time_milliseconds{fleet} tuist_runners_dispatch_request_duration_milliseconds{fleet}
    tuist_runners_recovery_stranded_time_milliseconds{} tuist_runners_queue_length{fleet}
    tuist_runners_queue_oldest_age_seconds{fleet} tuist_runners_queue_withheld{fleet}
    tuist_runners_claims_count{fleet,lifecycle_state} tuist_runners_session_clamped_count{fleet}
    tuist_runners_replica_divergence_count{fleet} tuist_runners_pool_replicas_desired{fleet}
    tuist_runners_pool_replicas_observed{fleet} tuist_runners_pool_replicas_max{fleet}
"""

OUR_METRICS = """
    tart_kubelet_pod_wait_oldest_seconds{wait} tart_kubelet_pod_wait_count{wait} tart_kubelet_pod_wait_untracked_total{wait}
    tart_kubelet_vm_boots_total{pool,result} tart_kubelet_pod_failures_total{pool,reason}
    tart_kubelet_gui_session_kicks_total{} tart_kubelet_garbage_deleted_total{kind}
    tart_kubelet_tart_call_seconds{operation,outcome} tart_kubelet_node_check{check}
"""


Found = TypeVar("Found")


def spelled(module: ModuleType) -> set[object]:
    return set(wire_names.constants(module).values())


def found(kind: type[Found], modules: tuple[tuple[str, ModuleType], ...]) -> list[Found]:
    return [value for _, module in modules for value in spelled(module) if isinstance(value, kind)]


@pytest.mark.parametrize(
    ("module", "expected"),
    [(labels, LABELS), (annotations, ANNOTATIONS), (finalizers, FINALIZERS), (conditions, CONDITIONS)],
    ids=["labels", "annotations", "finalizers", "conditions"],
)
def test_no_key_of_the_contract_is_missing(module: ModuleType, expected: str) -> None:
    assert set(expected.split()) - spelled(module) == set()


def test_no_reason_of_the_contract_is_missing_or_has_another_severity() -> None:
    reasons = {f"{reason.condition}/{reason.name}:{reason.severity}" for reason in found(ConditionReason, wire_names.REASONS)}
    expected = {f"Provisioned/{word}" for word in PROVISIONED_REASONS.split()}
    expected |= {f"Bootstrapped/{word}" for word in BOOTSTRAPPED_REASONS.split()}
    assert expected - reasons == set()


def test_no_status_reason_of_the_contract_is_missing() -> None:
    assert set(STATUS_REASONS.split()) - {reason.name for reason in found(StatusReason, wire_names.REASONS)} == set()


@pytest.mark.parametrize(("type", "expected"), [("Normal", NORMAL_EVENTS), ("Warning", WARNING_EVENTS)])
def test_no_event_of_the_contract_is_missing_or_of_another_type(type: str, expected: str) -> None:
    events = {event.name for event in found(EventReason, wire_names.REASONS) if event.type == type}
    assert set(expected.split()) - events == set()


def test_the_metrics_we_export_are_exactly_those_of_the_contract_and_our_own() -> None:
    exported = found(Metric, tuple(entry for entry in wire_names.METRICS if entry[0] != "others"))
    assert {f"{metric.name}{{{','.join(metric.labels)}}}" for metric in exported} == set((METRICS + OUR_METRICS).split())


def test_the_page_names_every_constant() -> None:
    page = wire_names.render()
    groups = (*wire_names.PLAIN, *wire_names.REASONS, *wire_names.METRICS)
    for _, module in groups:
        for value in spelled(module):
            if name := value if isinstance(value, str) else getattr(value, "name", None):
                assert f"| `{name}` |" in page


def test_the_page_names_taints_and_derived_names() -> None:
    page = wire_names.render()
    assert "| `tuist.dev/macos=true:NoSchedule` | Node | kubelet |" in page
    assert "| `<machine>-bootstrap` | Secret | provider |" in page
    assert "| `scw-applesilicon://<zone>/<uuid>` |" in page


def test_every_row_of_the_page_has_as_many_cells_as_its_table() -> None:
    width = 0
    for line in wire_names.render().splitlines():
        if line.startswith("| Name |"):
            width = line.count("|")
        elif line.startswith("|"):
            assert line.count("|") - line.count("\\|") == width, line


def test_rendering_twice_gives_the_same_page() -> None:
    assert wire_names.render() == wire_names.render()


def test_a_constant_without_a_description_is_refused_by_name(tmp_path: Path) -> None:
    source = tmp_path / "example.py"
    source.write_text('LOST: str = "example.dev/lost"\n"""Nobody says who writes it."""\n')
    spec = spec_from_file_location("example", source)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.raises(BadInput, match=r"example\.LOST has no description: write '<on>, by <writer>: <meaning>'"):
        list(wire_names.described(module))
