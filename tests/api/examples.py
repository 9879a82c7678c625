"""Objects of our kinds as people write them: every field set, and the least that is accepted."""

from typing import Any

SERVER_ID = "6b1f4c0e-8f1a-4d1b-9a0e-2f6f0f9f1a11"
PROVIDER_ID = f"scw-applesilicon://fr-par-1/{SERVER_ID}"
SINCE = "2026-08-21T10:00:00Z"

MACHINE_SPEC: dict[str, Any] = {
    "providerID": PROVIDER_ID,
    "type": "M4-XL",
    "zone": "fr-par-3",
    "os": "Sequoia",
    "fleetName": "builders",
    "kubeletVersion": "v0",
    "hostCPU": 10,
    "hostMemoryMB": 30000,
    "adoptPoolPrefix": "tuist-pool-",
    "ghActionsRunner": {
        "ghOrg": "acme",
        "ghRunnerLabels": "self-hosted,macos",
        "ghRunnerVersion": "2.330.0",
        "ghAppSecretName": "builders-gh-app",
    },
}

_CONDITIONS = [
    {
        "type": "Provisioned",
        "status": "False",
        "severity": "Warning",
        "reason": "NoAvailableHost",
        "message": "no free host of type M4-XL in fr-par-3",
        "lastTransitionTime": SINCE,
    },
    {"type": "Bootstrapped", "status": "True", "lastTransitionTime": SINCE},
]
_NEWER_CONDITIONS = [
    {
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": SINCE,
        "observedGeneration": 3,
    }
]

MACHINE_STATUS: dict[str, Any] = {
    "ready": True,
    "initialization": {"provisioned": True},
    "serverID": SERVER_ID,
    "addresses": [{"type": "ExternalIP", "address": "192.0.2.7"}],
    "phase": "Ready",
    "failureReason": "TartKubeletUpdateExceededRetries",
    "failureMessage": "five updates failed in a row",
    "conditions": _CONDITIONS,
    "tartKubeletBinarySHA": "ab" * 32,
    "hostConfigHash": "cd" * 32,
    "failedHostConfigHash": "ef" * 32,
    "tartKubeletUpdateAttempts": 5,
    "lastUpdateFailureTime": SINCE,
    "bootstrapAttempts": 2,
    "bootstrapRebootIssued": True,
    "v1beta2": {"conditions": _NEWER_CONDITIONS},
}

CLUSTER_SPEC: dict[str, Any] = {"controlPlaneEndpoint": {"host": "127.0.0.1", "port": 6443}}
CLUSTER_STATUS: dict[str, Any] = {
    "ready": True,
    "initialization": {"provisioned": True},
    "conditions": _CONDITIONS,
    "v1beta2": {"conditions": _NEWER_CONDITIONS},
}

POOL_SPEC: dict[str, Any] = {
    "labels": ["kept"],
    "replicas": 3,
    "image": "tuist-runner:macos-26-1-1.4.0",
    "fleetSelector": "runners",
    "dispatchLabel": "shape-macos-26-1",
    "runnerLabels": ["self-hosted", "macOS", "ARM64"],
    "os": "linux",
    "podCPUMilli": 6000,
    "podMemoryMB": 14000,
    "idleTimeoutSeconds": 300,
    "runtimeClass": "kata-qemu",
    "provisioning": {"maxConcurrentPerFleetSelector": 2, "startTimeoutSeconds": 0},
    "autoscaling": {"enabled": True, "minWarmPoolFloor": 0, "maxReplicas": 30, "scaleDownCooldownSeconds": 0},
    "rollout": {"maxConcurrentPercent": 10},
}
POOL_STATUS: dict[str, Any] = {
    "observedReplicas": 3,
    "lastReconcile": SINCE,
    "lastScaleDownAt": SINCE,
    "observedImage": "tuist-runner:macos-26-1-1.4.0",
    "imageRolledAt": SINCE,
}

SMALLEST_POOL_SPEC: dict[str, Any] = {
    "image": "tuist-runner:1",
    "fleetSelector": "runners",
    "dispatchLabel": "macos",
    "runnerLabels": ["self-hosted"],
}

_INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1alpha1"


def document(kind: str, name: str = "mac-1", **parts: Any) -> dict[str, Any]:
    api_version = "tuist.dev/v1alpha1" if kind == "RunnerPool" else _INFRASTRUCTURE
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **parts}


FULL = (
    document("ScalewayAppleSiliconMachine", spec=MACHINE_SPEC, status=MACHINE_STATUS),
    document(
        "ScalewayAppleSiliconMachineTemplate",
        spec={
            "template": {
                "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
                "spec": {k: v for k, v in MACHINE_SPEC.items() if k != "providerID"},
            }
        },
    ),
    document("TuistCluster", spec=CLUSTER_SPEC, status=CLUSTER_STATUS),
    document("RunnerPool", spec=POOL_SPEC, status=POOL_STATUS),
)
