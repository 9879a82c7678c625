"""Pods as a busy cluster has them: 6 kB each, a third of it managedFields."""

import json
from typing import Any

RUNNER_ENV = [
    {"name": "ACTIONS_RUNNER_PRINT_LOG_TO_STDOUT", "value": "1"},
    {"name": "TUIST_RUNNER_DISPATCH_URL", "value": "https://dispatch.ci.example/api/internal/runners/dispatch"},
    {"name": "TUIST_RUNNER_POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
    {"name": "TUIST_RUNNER_POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}},
    {"name": "TUIST_CLUSTER_DNS_IP", "value": "10.96.0.10"},
]


def pod(number: int, revision: int, namespace: str = "tuist-runners") -> dict[str, Any]:
    name = f"macos-26-1-runner-{number:08x}"
    stamp = f"2026-11-{1 + number % 28:02}T{number % 24:02}:{number % 60:02}:{revision % 60:02}Z"
    node = f"mac-{number % 250:03}"
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"8a6e{number:04x}-52e1-4b5e-9c1d-{number:012x}",
            "resourceVersion": str(revision),
            "generation": 1,
            "creationTimestamp": stamp,
            "labels": {
                "app.kubernetes.io/component": "runner",
                "app.kubernetes.io/name": "tuist-runner",
                "tuist.dev/runner": "true",
                "tuist.dev/runner-pool": f"macos-{number % 5}",
            },
            "annotations": {"applecart.dev/batch": f"{number // 100}", "kubectl.kubernetes.io/restartedAt": stamp},
            "finalizers": ["tart-kubelet.tuist.dev/vm-cleanup"],
            "ownerReferences": [
                {
                    "apiVersion": "tuist.dev/v1alpha1",
                    "kind": "RunnerPool",
                    "name": f"macos-{number % 5}",
                    "uid": f"{number % 5:08x}-0000-4000-8000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed("runners-controller", "Update", stamp), _managed("tart-kubelet", "Update", stamp)],
        },
        "spec": {
            "containers": [
                {
                    "name": "runner",
                    "image": "ghcr.io/acme/macos-runner:macos-26-1-1.42.0",
                    "env": [*RUNNER_ENV, {"name": "TUIST_RUNNER_POOL", "value": f"macos-{number % 5}"}],
                    "resources": {
                        "limits": {"cpu": "6", "memory": "14Gi"},
                        "requests": {"cpu": "6", "memory": "14Gi"},
                    },
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                    "volumeMounts": [
                        {
                            "name": f"kube-api-access-{number % 97:05}",
                            "readOnly": True,
                            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                        }
                    ],
                }
            ],
            "volumes": [
                {
                    "name": f"kube-api-access-{number % 97:05}",
                    "projected": {
                        "sources": [
                            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                        ],
                        "defaultMode": 420,
                    },
                }
            ],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "nodeSelector": {"kubernetes.io/os": "darwin", "tuist.dev/fleet": "runners", "tuist.dev/runtime": "tart"},
            "serviceAccountName": name,
            "serviceAccount": name,
            "nodeName": node,
            "securityContext": {},
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 100,
                            "preference": {
                                "matchExpressions": [{"key": "tuist.dev/golden-9c8af651fdf30b10", "operator": "Exists"}]
                            },
                        }
                    ]
                }
            },
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "tuist.dev/macos", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "hostIP": f"10.20.{number % 250}.4",
            "podIP": f"192.168.64.{2 + number % 200}",
            "podIPs": [{"ip": f"192.168.64.{2 + number % 200}"}],
            "startTime": stamp,
            "containerStatuses": [
                {
                    "name": "runner",
                    "state": {"running": {"startedAt": stamp}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": "ghcr.io/acme/macos-runner:macos-26-1-1.42.0",
                    "imageID": f"ghcr.io/acme/macos-runner@sha256:{number:064x}",
                    "containerID": f"tart://{name}",
                    "started": True,
                }
            ],
            "qosClass": "Guaranteed",
        },
    }


def encoded(value: Any) -> bytes:
    """As the API server writes it: no spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def _managed(manager: str, operation: str, stamp: str) -> dict[str, Any]:
    keys = ("apiVersion", "kind", "name", "uid", "controller", "image", "env", "resources", "tolerations", "phase", "reason")
    fields: dict[str, Any] = {
        f"f:{key}": {".": {}, f'k:{{"name":"{key}"}}': {".": {}, f"f:{key}Name": {}, "f:value": {}}} for key in keys
    }
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}, "f:spec": fields},
    }
