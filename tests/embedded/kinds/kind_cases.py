"""Documents of every other built-in kind whose outcome must be the same here and on a real server."""

import base64
from typing import Any

from tests.embedded.kinds.documents import core, grouped, rbac

MEBIBYTE = 1024 * 1024
LEASES = "coordination.k8s.io/v1"
EVENTS = "events.k8s.io/v1"
POLICY = "policy/v1"
NODE = "node.k8s.io/v1"
SCHEDULING = "scheduling.k8s.io/v1"
ADMIN = {"kind": "ClusterRole", "name": "view"}
TAINT = {"key": "a", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def event(**members: Any) -> dict[str, Any]:
    return core("Event", involvedObject={"kind": "Node", "name": "n"}, **members)


def new_event(**members: Any) -> dict[str, Any]:
    whole = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "applecart.dev/kubelet",
        "reportingInstance": "mac-1",
        "action": "Boot",
        "reason": "Booted",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "elsewhere"},
        "note": "it runs",
        "type": "Normal",
    }
    return grouped(EVENTS, "Event", **{name: value for name, value in {**whole, **members}.items() if value is not None})


def old_event(**members: Any) -> dict[str, Any]:
    """An event of `v1` that says what newer ones must say."""
    whole = {
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingComponent": "applecart.dev/kubelet",
        "reportingInstance": "mac-1",
        "action": "Boot",
        "reason": "Booted",
    }
    about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
    return core("Event", involvedObject=about, **{**whole, **members})


CREATED: dict[str, dict[str, Any]] = {
    "namespace": core("Namespace", "kinds-a"),
    "namespace dots": core("Namespace", "a.b"),
    "namespace finalizers": core("Namespace", "kinds-a", spec={"finalizers": ["a.io/b"]}),
    "namespace finalizer bad": core("Namespace", "kinds-a", spec={"finalizers": ["nope"]}),
    "namespace labels": core("Namespace", "kinds-a", meta={"labels": {"kubernetes.io/metadata.name": "other", "a": "b"}}),
    "node": core("Node", "kinds-n"),
    "node with status": core(
        "Node",
        "kinds-n",
        spec={"taints": [TAINT], "providerID": "x://1", "podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]},
        status={
            "capacity": {"cpu": "8", "memory": "16384Mi", "applecart.dev/vm": "2", "pods": "2"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "m"}],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"operatingSystem": "darwin", "architecture": "arm64"},
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    ),
    "node name": core("Node", "Mac_1"),
    "node taints": core(
        "Node",
        "kinds-n",
        spec={"taints": [{"key": "a b", "effect": "X"}, {"key": "a", "value": "b c", "effect": ""}, TAINT, TAINT]},
    ),
    "node not ready": core(
        "Node", "kinds-n", spec={"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]}
    ),
    "node capacity": core("Node", "kinds-n", status={"capacity": {"cpu": "-1"}, "allocatable": {"a.io/b": "1500m"}}),
    "node unschedulable": core("Node", "kinds-n", spec={"unschedulable": True}),
    "secret": core("Secret", data={"a": b64("b")}, stringData={"c": "d", "a": "over"}),
    "secret empty": core("Secret"),
    "secret key": core("Secret", data={"a b": ""}),
    "secret key dots": core("Secret", stringData={"..": "x"}),
    "secret large": core("Secret", data={"a": b64("x" * (MEBIBYTE + 1))}),
    "secret full": core("Secret", data={"a": b64("x" * MEBIBYTE)}),
    "secret token": core("Secret", type="kubernetes.io/service-account-token"),
    "secret docker": core("Secret", type="kubernetes.io/dockerconfigjson"),
    "secret docker fine": core("Secret", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "{}"}),
    "secret docker old": core("Secret", type="kubernetes.io/dockercfg"),
    "secret basic": core("Secret", type="kubernetes.io/basic-auth"),
    "secret ssh": core("Secret", type="kubernetes.io/ssh-auth", stringData={"ssh-privatekey": ""}),
    "secret tls": core("Secret", type="kubernetes.io/tls", stringData={"tls.crt": "x"}),
    "secret custom": core("Secret", type="applecart.dev/machine", immutable=True),
    "secret name": core("Secret", "A"),
    "config map": core("ConfigMap", data={"a": "b"}, binaryData={"c": b64("d")}),
    "config map key": core("ConfigMap", data={"a/b": ""}),
    "config map long key": core("ConfigMap", data={"a" * 254: ""}),
    "config map overlap": core("ConfigMap", data={"a": "b"}, binaryData={"a": b64("d")}),
    "config map large": core("ConfigMap", data={"a": "x" * (MEBIBYTE + 1)}),
    "config map full": core("ConfigMap", data={"a": "x" * MEBIBYTE}),
    "service account": core("ServiceAccount", secrets=[{"name": "a", "kind": "Secret"}], imagePullSecrets=[{"name": "b"}]),
    "service account name": core("ServiceAccount", "saX"),
    "lease": grouped(LEASES, "Lease"),
    "lease held": grouped(
        LEASES,
        "Lease",
        spec={"holderIdentity": "a", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
    ),
    "lease numbers": grouped(LEASES, "Lease", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1}),
    "lease preferred": grouped(LEASES, "Lease", spec={"preferredHolder": "a"}),
    "lease strategy": grouped(LEASES, "Lease", spec={"strategy": "Bogus"}),
    "role": rbac("Role", "a:b", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    "role empty": rbac("Role"),
    "role name": rbac("Role", "a%b"),
    "role rule": rbac("Role", rules=[{}]),
    "role urls": rbac("Role", rules=[{"nonResourceURLs": ["/x"], "resources": ["a"], "verbs": ["get"]}]),
    "cluster role": rbac("ClusterRole", "kinds-c", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
    "cluster role aggregated": rbac("ClusterRole", "kinds-c", aggregationRule={"clusterRoleSelectors": []}),
    "cluster role selector": rbac(
        "ClusterRole", "kinds-c", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    ),
    "binding": rbac(
        "RoleBinding",
        roleRef=ADMIN,
        subjects=[{"kind": "User", "name": "a"}, {"kind": "ServiceAccount", "name": "b"}, {"kind": "Group", "name": "c"}],
    ),
    "binding nothing": rbac("RoleBinding", roleRef={"apiGroup": "x", "kind": "y", "name": ""}),
    "binding subjects": rbac(
        "RoleBinding",
        roleRef=ADMIN,
        subjects=[
            {"kind": "User", "name": "", "apiGroup": "x"},
            {"kind": "ServiceAccount", "name": "B", "apiGroup": "x"},
            {"kind": "Robot", "name": "a"},
        ],
    ),
    "cluster binding": rbac("ClusterRoleBinding", "kinds-c", roleRef=ADMIN),
    "cluster binding of role": rbac("ClusterRoleBinding", "kinds-c", roleRef={"kind": "Role", "name": "a"}),
    "cluster binding account": rbac(
        "ClusterRoleBinding", "kinds-c", roleRef=ADMIN, subjects=[{"kind": "ServiceAccount", "name": "b"}]
    ),
    "budget": grouped(POLICY, "PodDisruptionBudget", spec={"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
    "budget percent": grouped(POLICY, "PodDisruptionBudget", spec={"maxUnavailable": "101%"}),
    "budget text": grouped(POLICY, "PodDisruptionBudget", spec={"maxUnavailable": "many"}),
    "budget negative": grouped(POLICY, "PodDisruptionBudget", spec={"minAvailable": -1}),
    "budget policy": grouped(POLICY, "PodDisruptionBudget", spec={"unhealthyPodEvictionPolicy": "X"}),
    "runtime class": grouped(
        NODE,
        "RuntimeClass",
        "kinds-r",
        handler="tart",
        overhead={"podFixed": {"cpu": "0.0001"}},
        scheduling={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "operator": "Exists"}]},
    ),
    "runtime class nothing": grouped(NODE, "RuntimeClass", "kinds-r"),
    "runtime class bad": grouped(
        NODE,
        "RuntimeClass",
        "kinds-r",
        handler="A_",
        overhead={"podFixed": {"bogus": "1"}},
        scheduling={"nodeSelector": {"a b": "c"}, "tolerations": [{"key": "a"}, {"key": "a"}]},
    ),
    "priority class": grouped(SCHEDULING, "PriorityClass", "kinds-p", value=1000),
    "priority class large": grouped(SCHEDULING, "PriorityClass", "kinds-p", value=1_000_000_001),
    "priority class system": grouped(SCHEDULING, "PriorityClass", "system-kinds", value=1),
    "priority class policy": grouped(SCHEDULING, "PriorityClass", "kinds-p", value=1, preemptionPolicy="X"),
    "event": event(reason="a", message="b", count=2, firstTimestamp="2026-01-01T00:00:00Z", source={"component": "c"}),
    "event of the namespace": old_event(),
    "event incomplete": old_event(reportingComponent="", reportingInstance="", action="", reason=""),
    "event long": old_event(reportingInstance="x" * 129, action="x" * 129, reason="x" * 129, message="x" * 1025),
    "event component": old_event(reportingComponent="a b"),
    "new event": new_event(),
    "new event series": new_event(series={"count": 1, "lastObservedTime": None}),
    "new event type": new_event(type="Odd"),
    "new event no time": new_event(eventTime=None, regarding=None),
    "new event old fields": new_event(deprecatedCount=2, deprecatedFirstTimestamp="2026-01-01T00:00:00Z"),
    "new event source": new_event(deprecatedSource={"component": "c"}),
    "headless service": core("Service", spec={"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}),
    "service name": core("Service", "9a", spec={"clusterIP": "None", "ports": [{"port": 80}], "selector": {"a": "b"}}),
}


def secret(**members: Any) -> dict[str, Any]:
    return core("Secret", **members)


UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "namespace finalizers kept": (core("Namespace"), core("Namespace", spec={"finalizers": []})),
    "secret data": (secret(stringData={"a": "b"}), secret(stringData={"a": "c"})),
    "secret type": (secret(), secret(type="other")),
    "secret frozen": (secret(immutable=True, stringData={"a": "b"}), secret(stringData={"a": "c"})),
    "secret frozen same": (
        secret(immutable=True, stringData={"a": "b"}),
        secret(immutable=True, stringData={"a": "b"}, meta={"labels": {"a": "b"}}),
    ),
    "config map": (core("ConfigMap", data={"a": "b"}), core("ConfigMap")),
    "config map frozen": (
        core("ConfigMap", immutable=True, data={"a": "b"}),
        core("ConfigMap", data={"a": "c"}, binaryData={"b": b64("c")}),
    ),
    "node taints": (core("Node"), core("Node", spec={"taints": [TAINT]})),
    "node provider": (core("Node", spec={"providerID": "a://b"}), core("Node", spec={"providerID": "a://c"})),
    "node provider removed": (core("Node", spec={"providerID": "a://b"}), core("Node")),
    "node cidr": (
        core("Node", spec={"podCIDR": "10.0.0.0/24", "podCIDRs": ["10.0.0.0/24"]}),
        core("Node", spec={"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}),
    ),
    "node status kept": (core("Node", status={"capacity": {"cpu": "1"}}), core("Node", status={"capacity": {"cpu": "2"}})),
    "lease": (grouped(LEASES, "Lease"), grouped(LEASES, "Lease", spec={"leaseDurationSeconds": -5})),
    "binding role": (
        rbac("RoleBinding", roleRef=ADMIN),
        rbac("RoleBinding", roleRef={"kind": "ClusterRole", "name": "edit"}),
    ),
    "binding subjects": (
        rbac("RoleBinding", roleRef=ADMIN),
        rbac("RoleBinding", roleRef=ADMIN, subjects=[{"kind": "User", "name": "a"}]),
    ),
    "priority class": (
        grouped(SCHEDULING, "PriorityClass", value=1),
        grouped(SCHEDULING, "PriorityClass", value=2, preemptionPolicy="Never"),
    ),
    "priority class text": (
        grouped(SCHEDULING, "PriorityClass", value=1),
        grouped(SCHEDULING, "PriorityClass", value=1, description="d"),
    ),
    "runtime class": (grouped(NODE, "RuntimeClass", handler="a"), grouped(NODE, "RuntimeClass", handler="b")),
    "runtime class scheduling": (
        grouped(NODE, "RuntimeClass", handler="a"),
        grouped(NODE, "RuntimeClass", handler="a", scheduling={"nodeSelector": {"a b": "c"}}),
    ),
    "priority class policy": (
        grouped(SCHEDULING, "PriorityClass", value=1),
        grouped(SCHEDULING, "PriorityClass", value=1, preemptionPolicy="X"),
    ),
    "new event": (new_event(), new_event(note="other", type="Warning")),
    "new event series": (new_event(), new_event(series={"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"})),
    "budget": (
        grouped(POLICY, "PodDisruptionBudget", spec={"minAvailable": 1}),
        grouped(POLICY, "PodDisruptionBudget", spec={"minAvailable": 2}),
    ),
    "finalizer": (core("ConfigMap"), core("ConfigMap", meta={"finalizers": ["nope"]})),
    "lease finalizer": (grouped(LEASES, "Lease"), grouped(LEASES, "Lease", meta={"finalizers": ["free"]})),
    "budget finalizer": (
        grouped(POLICY, "PodDisruptionBudget"),
        grouped(POLICY, "PodDisruptionBudget", meta={"finalizers": ["free"]}),
    ),
    "runtime class finalizer": (
        grouped(NODE, "RuntimeClass", handler="a"),
        grouped(NODE, "RuntimeClass", handler="a", meta={"finalizers": ["free"]}),
    ),
}

REPORTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "node": (
        core("Node"),
        core(
            "Node",
            meta={"labels": {"a": "b"}, "annotations": {"c": "d"}},
            spec={"unschedulable": True},
            status={"capacity": {"cpu": "2"}, "addresses": [{"type": "Hostname", "address": "n"}]},
        ),
    ),
    "node addresses": (
        core("Node"),
        core("Node", status={"addresses": [{"type": "Hostname", "address": "n"}, {"type": "Hostname", "address": "n"}]}),
    ),
    "namespace phase": (core("Namespace"), core("Namespace", status={"phase": "Terminating"})),
    "namespace finalizer": (core("Namespace"), core("Namespace", meta={"finalizers": ["nope"]})),
    "node finalizer": (core("Node"), core("Node", meta={"finalizers": ["nope"]})),
    "budget finalizer": (
        grouped(POLICY, "PodDisruptionBudget"),
        grouped(POLICY, "PodDisruptionBudget", meta={"finalizers": ["free"]}),
    ),
    "budget": (
        grouped(POLICY, "PodDisruptionBudget", spec={"minAvailable": 1}),
        grouped(POLICY, "PodDisruptionBudget", status={"currentHealthy": -1, "disruptionsAllowed": 3}),
    ),
}
