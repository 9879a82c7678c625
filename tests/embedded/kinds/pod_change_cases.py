"""Pods that are changed, reported on or advised about, with the same outcome here and on a real server."""

from typing import Any

from tests.embedded.kinds.documents import container, pod, pod_with
from tests.embedded.kinds.pod_cases import NODE_TERM, affinity, env, pod_affinity, preferred

GATED = pod(schedulingGates=[{"name": "a"}, {"name": "b"}], nodeSelector={"a": "b"})


def gated(**spec: Any) -> dict[str, Any]:
    return pod(schedulingGates=[{"name": "a"}], **spec)


NARROWED = {"matchExpressions": [*NODE_TERM["matchExpressions"], {"key": "a", "operator": "Exists"}]}
OTHER_TERM = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}

UPDATED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": (pod(), pod()),
    "labels": (pod(), pod(meta={"labels": {"a": "b"}})),
    "image": (pod(), pod_with(image="other:1")),
    "image emptied": (pod(), pod_with(image="")),
    "image spaces": (pod(), pod_with(image=" a ")),
    "init image": (pod(initContainers=[container(name="i")]), pod(initContainers=[container(name="i", image="x")])),
    "container added": (pod(), pod(containers=[container(), container(name="b")])),
    "container renamed": (pod(), pod_with(name="other")),
    "init added": (pod(), pod(initContainers=[container(name="i")])),
    "deadline set": (pod(), pod(activeDeadlineSeconds=5)),
    "deadline raised": (pod(activeDeadlineSeconds=5), pod(activeDeadlineSeconds=6)),
    "deadline lowered": (pod(activeDeadlineSeconds=5), pod(activeDeadlineSeconds=4)),
    "deadline removed": (pod(activeDeadlineSeconds=5), pod()),
    "toleration added": (pod(), pod(tolerations=[{"key": "a", "operator": "Exists"}])),
    "toleration removed": (pod(tolerations=[{"key": "a", "operator": "Exists"}]), pod()),
    "toleration seconds": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}]),
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]),
    ),
    "gate removed": (GATED, pod(schedulingGates=[{"name": "b"}], nodeSelector={"a": "b"})),
    "gate added": (GATED, pod(schedulingGates=[{"name": "a"}, {"name": "b"}, {"name": "c"}], nodeSelector={"a": "b"})),
    "gated selector more": (GATED, pod(schedulingGates=GATED["spec"]["schedulingGates"], nodeSelector={"a": "b", "c": "d"})),
    "gated selector less": (GATED, pod(schedulingGates=GATED["spec"]["schedulingGates"])),
    "gated affinity set": (gated(), gated(affinity=affinity(NODE_TERM))),
    "gated affinity narrowed": (gated(affinity=affinity(NODE_TERM)), gated(affinity=affinity(NARROWED))),
    "gated affinity other": (gated(affinity=affinity(NODE_TERM)), gated(affinity=affinity(OTHER_TERM))),
    "gated affinity removed": (gated(affinity=affinity(NODE_TERM)), gated()),
    "gated affinity preferred": (gated(affinity=affinity(NODE_TERM)), gated(affinity={**preferred(1, OTHER_TERM)})),
    "gated affinity of pods": (gated(), gated(affinity=pod_affinity(topologyKey="host"))),
    "affinity without gate": (pod(), pod(affinity=affinity(NODE_TERM))),
    "grace from negative": (pod(), pod(terminationGracePeriodSeconds=1)),
    "restart policy": (pod(), pod(restartPolicy="Never")),
    "node name": (pod(), pod(nodeName="n")),
    "priority": (pod(), pod(priority=7)),
    "command": (pod(), pod_with(command=["x"])),
    "mirror": (pod(), pod(nodeName="", meta={"annotations": {"kubernetes.io/config.mirror": "x"}})),
    "bad label": (pod(), pod(meta={"labels": {"a b": "c"}})),
    "status ignored": (pod(), {**pod(), "status": {"phase": "Running"}}),
}


def reported(**status: Any) -> dict[str, Any]:
    return {**pod(), "status": status}


REPORTED: dict[str, dict[str, Any]] = {
    "running": reported(phase="Running", conditions=[{"type": "Ready", "status": "True"}], podIPs=[{"ip": "10.0.0.1"}]),
    "class changed": reported(phase="Running", qosClass="Guaranteed"),
    "condition type": reported(conditions=[{"type": "a b", "status": "True"}]),
    "nominated": reported(nominatedNodeName="A"),
    "ip": reported(podIPs=[{"ip": "x"}]),
    "two ips": reported(podIPs=[{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]),
    "spec and labels": {
        **pod(restartPolicy="Never", meta={"labels": {"a": "b"}, "annotations": {"c": "d"}}),
        "status": {"phase": "Running"},
    },
    "nothing": reported(),
}


WARNED: dict[str, dict[str, Any]] = {
    "nothing": pod(),
    "name": pod("a.b"),
    "node label": pod(nodeSelector={"beta.kubernetes.io/os": "darwin"}),
    "spread": pod(
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}],
    ),
    "aliases": pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}]),
    "pull secrets": pod(imagePullSecrets=[{"name": "a"}, {"name": "a"}, {}]),
    "bytes": pod_with(resources={"limits": {"memory": "100m"}}),
    "env": env({"name": "A", "value": "b"}, {"name": "A", "value": "c"}),
    "env extended": env({"name": "A", "value": "b"}, {"name": "A", "value": "$(A) c"}),
}
