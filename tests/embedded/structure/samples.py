"""Documents of every built-in kind, with zeros, pointers to zeros, empty values and special types where they matter."""

from typing import Any

Document = dict[str, Any]

POD: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "rich",
        "labels": {"app": "runner", "empty": ""},
        "annotations": {"note": "two\nlines"},
        "finalizers": ["applecart.dev/vm"],
        "ownerReferences": [
            {
                "apiVersion": "applecart.dev/v1alpha1",
                "kind": "RunnerPool",
                "name": "macs",
                "uid": "7d0b3d6f-7b06-4ad6-8a5f-0d4b43f4c111",
                "controller": False,
            }
        ],
    },
    "spec": {
        "activeDeadlineSeconds": 5,
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}}
                ],
            }
        },
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "vm",
                "image": "macos:15",
                "args": ["", "x"],
                "env": [
                    {"name": "EMPTY", "value": ""},
                    {"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
                    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
                ],
                "envFrom": [{"prefix": "A_", "configMapRef": {"name": "c"}}],
                "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 3},
                "readinessProbe": {"tcpSocket": {"port": 8080}, "failureThreshold": 1},
                "startupProbe": {"grpc": {"port": 8080, "service": ""}},
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "1000Mi"}},
                "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch", "readOnly": True}],
            }
        ],
        "dnsConfig": {"options": [{"name": "ndots", "value": "2"}], "searches": ["a.example"]},
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
        "initContainers": [{"name": "first", "image": "i"}],
        "nodeSelector": {"kubernetes.io/os": "darwin"},
        "restartPolicy": "Never",
        "serviceAccountName": "runner",
        "securityContext": {"fsGroup": 0, "supplementalGroups": [0, 5, 2147483647]},
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "volumes": [
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "plain", "emptyDir": {}},
            {"name": "host", "hostPath": {"path": "/tmp", "type": ""}},
            {
                "name": "secret",
                "secret": {"secretName": "s", "defaultMode": 0, "items": [{"key": "a", "path": "b", "mode": 0}]},
            },
            {
                "name": "all",
                "projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 600, "audience": "a"}}]},
            },
        ],
    },
}

SCHEMA: Document = {
    "type": "object",
    "description": "anything",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 9, "default": 0},
                "ratio": {"type": "number", "multipleOf": 0.25, "maximum": 9.5, "default": 1.5},
                "names": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 0, "pattern": "^a"},
                    "maxItems": 3,
                    "x-kubernetes-list-type": "set",
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "deep": {"type": "object", "default": {"a": [1, None, "x"]}, "x-kubernetes-preserve-unknown-fields": True},
            },
            "x-kubernetes-validations": [{"rule": "self.size >= 0", "message": "no debts"}],
        },
        "status": {"type": "object", "nullable": True, "properties": {"ready": {"type": "boolean", "default": False}}},
    },
}

CRD: Document = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "samples.structure.applecart.dev"},
    "spec": {
        "group": "structure.applecart.dev",
        "names": {"kind": "Sample", "plural": "samples", "shortNames": ["sa"], "categories": ["all"]},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n"}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}],
            },
            {"name": "v0", "served": False, "storage": False, "deprecated": True, "schema": {"openAPIV3Schema": SCHEMA}},
        ],
    },
}


def _named(api_version: str, kind: str, **more: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "sample"}, **more}


RBAC = "rbac.authorization.k8s.io/v1"
RULES = [
    {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]},
]
SUBJECTS = [
    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"},
    {"kind": "ServiceAccount", "name": "default", "namespace": "default"},
]

# kind -> (path below the namespace or the group, document); names are the same everywhere
NAMESPACED: list[tuple[str, Document]] = [
    ("/api/v1/namespaces/{ns}/pods", POD),
    ("/api/v1/namespaces/{ns}/configmaps", _named("v1", "ConfigMap", data={"a": "", "b": "x"}, binaryData={"c": "AAEC"})),
    ("/api/v1/namespaces/{ns}/secrets", _named("v1", "Secret", data={"a": "", "b": "aHVudGVy"}, immutable=False)),
    (
        "/api/v1/namespaces/{ns}/serviceaccounts",
        _named("v1", "ServiceAccount", automountServiceAccountToken=False, imagePullSecrets=[{"name": "a"}]),
    ),
    (
        "/api/v1/namespaces/{ns}/services",
        _named(
            "v1",
            "Service",
            spec={"ports": [{"port": 80, "name": "a", "targetPort": "http"}, {"port": 81, "name": "b", "targetPort": 8}]},
        ),
    ),
    (
        "/api/v1/namespaces/{ns}/events",
        _named("v1", "Event", involvedObject={"kind": "Pod", "namespace": "{ns}", "name": "p"}, count=1, type="Normal"),
    ),
    (
        "/apis/events.k8s.io/v1/namespaces/{ns}/events",
        {
            **_named("events.k8s.io/v1", "Event", regarding={"kind": "Pod", "namespace": "{ns}", "name": "p"}),
            "metadata": {"name": "newer"},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "applecart.dev/x",
            "reportingInstance": "x-1",
            "action": "Try",
            "reason": "Because",
            "type": "Normal",
            "series": {"count": 2, "lastObservedTime": "2026-01-02T03:04:05.600000Z"},
        },
    ),
    (
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        _named(
            "coordination.k8s.io/v1",
            "Lease",
            spec={
                "holderIdentity": "me",
                "leaseDurationSeconds": 15,
                "leaseTransitions": 0,
                "acquireTime": "2026-01-02T03:04:05.000000Z",
                "renewTime": "2026-01-02T03:04:05.123456Z",
            },
        ),
    ),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", _named(RBAC, "Role", rules=RULES)),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", {**_named(RBAC, "Role"), "metadata": {"name": "empty"}}),
    (
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings",
        _named(RBAC, "RoleBinding", subjects=SUBJECTS, roleRef={"kind": "Role", "name": "a", "apiGroup": RBAC[:-3]}),
    ),
    (
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        _named("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}}),
    ),
]

CLUSTER_WIDE: list[tuple[str, Document]] = [
    (
        "/api/v1/nodes",
        {
            **_named("v1", "Node"),
            "spec": {"unschedulable": True, "taints": [{"key": "a", "effect": "NoSchedule"}], "providerID": "x://1"},
            "status": {
                "capacity": {"cpu": "8", "memory": "16Gi", "pods": "2"},
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}],
                "images": [{"names": ["a"], "sizeBytes": 5000000000}],
            },
        },
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        _named(RBAC, "ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        _named(RBAC, "ClusterRoleBinding", roleRef={"kind": "ClusterRole", "name": "a", "apiGroup": RBAC[:-3]}),
    ),
    (
        "/apis/node.k8s.io/v1/runtimeclasses",
        _named("node.k8s.io/v1", "RuntimeClass", handler="tart", overhead={"podFixed": {"memory": "100Mi"}}),
    ),
    (
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        _named("scheduling.k8s.io/v1", "PriorityClass", value=-5, preemptionPolicy="Never", description="low"),
    ),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD),
]
