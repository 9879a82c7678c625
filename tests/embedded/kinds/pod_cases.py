"""Pods that are created and changed, as tables: each by what is asked about it."""

from typing import Any

from tests.embedded.kinds.documents import container, pod, pod_with

PROBE = {"exec": {"command": ["true"]}}
LONG = "x" * 64
NODE_TERM = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["darwin"]}]}


def affinity(term: dict[str, Any]) -> dict[str, Any]:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def preferred(weight: int, term: dict[str, Any]) -> dict[str, Any]:
    terms = [{"weight": weight, "preference": term}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}


def pod_affinity(**term: Any) -> dict[str, Any]:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def env(*variables: dict[str, Any]) -> dict[str, Any]:
    return pod_with(env=list(variables))


def volume(**source: Any) -> dict[str, Any]:
    return pod(volumes=[{"name": "v", **source}])


CREATED: dict[str, dict[str, Any]] = {
    "smallest": pod(),
    "runner": pod(
        meta={"labels": {"app": "runner"}, "annotations": {"applecart.dev/pool": "ci"}, "finalizers": ["applecart.dev/vm"]},
        containers=[
            container(
                command=["run"],
                args=["--once"],
                env=[
                    {"name": "A", "value": "b"},
                    {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                    {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                resources={"limits": {"cpu": "4", "memory": "8Gi"}},
                ports=[{"containerPort": 8080, "name": "http"}],
                livenessProbe={"httpGet": {"port": "http"}},
                readinessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 3},
                startupProbe=PROBE,
                lifecycle={"preStop": {"sleep": {"seconds": 5}}, "postStart": {"httpGet": {"port": 80}}},
                volumeMounts=[{"name": "cache", "mountPath": "/cache"}],
            )
        ],
        nodeSelector={"kubernetes.io/os": "darwin"},
        tolerations=[{"key": "applecart.dev/mac", "operator": "Exists", "effect": "NoSchedule"}],
        affinity=preferred(50, NODE_TERM),
        restartPolicy="Never",
        serviceAccountName="runner",
        imagePullSecrets=[{"name": "registry"}],
        terminationGracePeriodSeconds=60,
        activeDeadlineSeconds=3600,
        volumes=[{"name": "cache", "emptyDir": {}}],
    ),
    "image latest": pod_with(image="acme:latest"),
    "image digest": pod_with(image="acme@sha256:" + "a" * 64),
    "image bad digest": pod_with(image="acme@sha256:abc"),
    "image upper case": pod_with(image="ACME"),
    "image port no tag": pod_with(image="registry:5000/acme"),
    "image tag and digest": pod_with(image="acme:latest@sha256:" + "a" * 64),
    "image with spaces": pod_with(image=" acme "),
    "image missing": pod(containers=[{"name": "a"}]),
    "no containers": pod(containers=[]),
    "container name upper": pod_with(name="Main"),
    "container name dots": pod_with(name="a.b"),
    "container name long": pod_with(name=LONG),
    "container name missing": pod(containers=[{"image": "a"}]),
    "container names equal": pod(containers=[container(), container()]),
    "pod name upper": pod("Runner"),
    "pod name long": pod("a" * 254),
    "pod name with slash": pod("a/b"),
    "labels bad key": pod(meta={"labels": {"a b": "c"}}),
    "labels bad prefix": pod(meta={"labels": {"A_/b": "c"}}),
    "labels empty prefix": pod(meta={"labels": {"/b": "c"}}),
    "labels two slashes": pod(meta={"labels": {"a/b/c": "d"}}),
    "labels empty name": pod(meta={"labels": {"a/": "d"}}),
    "labels long key": pod(meta={"labels": {LONG: "d"}}),
    "labels bad value": pod(meta={"labels": {"a": "b c"}}),
    "labels long value": pod(meta={"labels": {"a": LONG}}),
    "annotations upper key": pod(meta={"annotations": {"Example.COM/Key": "any value at all \u00e9"}}),
    "annotations bad key": pod(meta={"annotations": {"a b": ""}}),
    "annotations too large": pod(meta={"annotations": {"a": "x" * (256 * 1024)}}),
    "finalizer bad": pod(meta={"finalizers": ["not a name"]}),
    "finalizers of both deletions": pod(meta={"finalizers": ["orphan", "foregroundDeletion"]}),
    "owner empty": pod(meta={"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
    "owners two controllers": pod(
        meta={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True} for name in "ab"
            ]
        }
    ),
    "owner event": pod(meta={"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "b"}]}),
    "owner fine": pod(meta={"ownerReferences": [{"apiVersion": "a.io/v1", "kind": "B", "name": "a", "uid": "b"}]}),
    "env no name": env({"name": "", "value": "a"}),
    "env odd name": env({"name": "1 2.3-$", "value": "a"}),
    "env equals": env({"name": "A=B", "value": "a"}),
    "env not ascii": env({"name": "\u00e9", "value": "a"}),
    "env value and source": env({"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    "env no source": env({"name": "A", "valueFrom": {}}),
    "env two sources": env(
        {
            "name": "A",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}},
        }
    ),
    "env field unknown": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.bogus"}}}),
    "env field not for env": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}),
    "env field phase": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.phase"}}}),
    "env field empty": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": ""}}}),
    "env field version": env({"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}),
    "env label": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}),
    "env label bad": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a b']"}}}),
    "env annotation upper": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A.io/B']"}}}),
    "env subscript": env({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name['a']"}}}),
    "env resource unknown": env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.bogus"}}}),
    "env resource none": env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": ""}}}),
    "env resource divisor": env({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}),
    "env memory divisor": env(
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "3Mi"}}}
    ),
    "env secret no key": env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": ""}}}),
    "env secret bad": env({"name": "A", "valueFrom": {"secretKeyRef": {"name": "S", "key": "a/b"}}}),
    "env config key dots": env({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "..a"}}}),
    "env from": pod_with(envFrom=[{"secretRef": {"name": "s"}}, {"prefix": "P_", "configMapRef": {"name": "c"}}]),
    "env from nothing": pod_with(envFrom=[{}]),
    "env from both": pod_with(envFrom=[{"secretRef": {"name": "s"}, "configMapRef": {"name": "c"}}]),
    "env from no name": pod_with(envFrom=[{"secretRef": {"name": ""}}]),
    "port zero": pod_with(ports=[{"containerPort": 0}]),
    "port large": pod_with(ports=[{"containerPort": 70000, "hostPort": -1}]),
    "port protocol": pod_with(ports=[{"containerPort": 80, "protocol": "tcp"}]),
    "port names": pod_with(
        ports=[
            {"containerPort": 80, "name": "a"},
            {"containerPort": 81, "name": "a"},
            {"containerPort": 82, "name": "this-name-is-too-long"},
            {"containerPort": 83, "name": "-1--2-"},
            {"containerPort": 84, "name": "A_B"},
        ]
    ),
    "host ports equal": pod(
        containers=[
            container(ports=[{"containerPort": 80, "hostPort": 80}]),
            container(name="b", ports=[{"containerPort": 81, "hostPort": 80}]),
        ]
    ),
    "host network": pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])]),
    "host network other port": pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 80, "hostPort": 81}])]),
    "mount unknown": pod_with(volumeMounts=[{"name": "x", "mountPath": "/x"}]),
    "mount nothing": pod_with(volumeMounts=[{"name": "", "mountPath": ""}]),
    "mounts equal": pod(
        volumes=[{"name": "v"}],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}])],
    ),
    "mount sub path": pod(
        volumes=[{"name": "v"}],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "/a/../b"}])],
    ),
    "mount sub paths": pod(
        volumes=[{"name": "v"}],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "a", "subPathExpr": "b"}])],
    ),
    "mount propagation": pod(
        volumes=[{"name": "v"}],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "mountPropagation": "Sometimes"}])],
    ),
    "mount bidirectional": pod(
        volumes=[{"name": "v"}],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "mountPropagation": "Bidirectional"}])],
    ),
    "volume default": volume(),
    "volume two": volume(emptyDir={}, hostPath={"path": "/x"}),
    "volume name": pod(volumes=[{"name": "A_b"}, {"name": ""}, {"name": "c"}, {"name": "c"}]),
    "volume empty dir": volume(emptyDir={"medium": "Memory", "sizeLimit": "1.5Gi"}),
    "volume host path": volume(hostPath={"path": "/x"}),
    "volume host path none": volume(hostPath={"path": ""}),
    "volume host path back": volume(hostPath={"path": "/x/../y", "type": "Bogus"}),
    "volume secret": volume(secret={"secretName": "s", "items": [{"key": "a", "path": "b", "mode": 256}]}),
    "volume secret bad": volume(secret={"secretName": "", "defaultMode": 512, "items": [{"key": "", "path": ""}]}),
    "volume item path": volume(secret={"secretName": "s", "items": [{"key": "a", "path": "/b"}, {"key": "a", "path": "..b"}]}),
    "volume config map": volume(configMap={"name": "c", "optional": True}),
    "volume config map none": volume(configMap={"name": "", "defaultMode": -1}),
    "volume claim": volume(persistentVolumeClaim={"claimName": ""}),
    "volume downward": volume(
        downwardAPI={
            "items": [
                {"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}},
                {"path": "b", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
            ]
        }
    ),
    "volume downward bad": volume(
        downwardAPI={
            "items": [
                {"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}},
                {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
                {"path": "c"},
                {"path": "", "fieldRef": {"fieldPath": "metadata.name"}, "mode": 1000},
            ]
        }
    ),
    "volume projected": pod(
        serviceAccountName="a",
        volumes=[
            {
                "name": "v",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token"}},
                        {"configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
                        {"secret": {"name": "s"}},
                        {"downwardAPI": {"items": [{"path": "ns", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
                    ]
                },
            }
        ],
    ),
    "volume projected bad": pod(
        volumes=[
            {
                "name": "v",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "", "expirationSeconds": 5}},
                        {"configMap": {"name": "", "items": [{"key": "a", "path": "b"}]}},
                        {"secret": {"name": "s", "items": [{"key": "a", "path": "b"}]}, "configMap": {"name": "c"}},
                    ]
                },
            }
        ],
    ),
    "token without account": pod(
        volumes=[{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]
    ),
    "probe nothing": pod_with(livenessProbe={}),
    "probe two": pod_with(livenessProbe={**PROBE, "httpGet": {"port": 80}}),
    "probe numbers": pod_with(
        livenessProbe={**PROBE, "initialDelaySeconds": -1, "timeoutSeconds": -2, "successThreshold": 2},
        readinessProbe={**PROBE, "successThreshold": 2, "terminationGracePeriodSeconds": 0},
    ),
    "probe exec nothing": pod_with(startupProbe={"exec": {}}),
    "probe port": pod_with(livenessProbe={"httpGet": {"port": 0}}, readinessProbe={"tcpSocket": {"port": "A"}}),
    "probe scheme": pod_with(
        livenessProbe={"httpGet": {"port": 1, "scheme": "http", "httpHeaders": [{"name": "a b", "value": ""}]}}
    ),
    "probe grpc": pod_with(livenessProbe={"grpc": {"port": 80}}),
    "lifecycle sleep": pod_with(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
    "resources requests from limits": pod_with(resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "1Gi"}}),
    "resources rounded": pod_with(resources={"limits": {"cpu": "0.0001", "memory": "2.0Gi"}}),
    "resources guaranteed": pod_with(resources={"limits": {"cpu": "2", "memory": "2Gi"}}),
    "resources more than limit": pod_with(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
    "resources negative": pod_with(resources={"requests": {"cpu": "-1"}}),
    "resources unknown": pod_with(resources={"requests": {"bogus": "1"}}),
    "resources quota name": pod_with(resources={"requests": {"pods": "1"}}),
    "resources extended": pod_with(resources={"limits": {"applecart.dev/vm": "1"}}),
    "resources extended part": pod_with(resources={"limits": {"applecart.dev/vm": "1500m"}}),
    "resources extended no limit": pod_with(resources={"requests": {"applecart.dev/vm": "1"}}),
    "resources extended not equal": pod_with(
        resources={"requests": {"applecart.dev/vm": "1"}, "limits": {"applecart.dev/vm": "2"}}
    ),
    "resources bad name": pod_with(resources={"limits": {"a b/c": "1"}}),
    "resources kubernetes.io": pod_with(resources={"limits": {"example.kubernetes.io/x": "1"}}),
    "resources huge pages": pod_with(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
    "toleration no key": pod(tolerations=[{"effect": "NoSchedule"}]),
    "toleration all": pod(tolerations=[{"operator": "Exists"}]),
    "toleration not ready": pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]),
    "toleration seconds": pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
    "toleration value": pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}, {"key": "b", "value": "a b"}]),
    "toleration operator": pod(tolerations=[{"key": "a", "operator": "Near"}, {"key": "b", "operator": "Gt", "value": "1"}]),
    "toleration effect": pod(tolerations=[{"key": "a b", "operator": "Exists", "effect": "Never"}]),
    "node selector bad": pod(nodeSelector={"a b": "c"}),
    "affinity none": pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
    "affinity fine": pod(affinity=affinity(NODE_TERM)),
    "affinity values": pod(affinity=affinity({"matchExpressions": [{"key": "a", "operator": "In"}]})),
    "affinity exists": pod(affinity=affinity({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]})),
    "affinity greater": pod(affinity=affinity({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]})),
    "affinity operator": pod(affinity=affinity({"matchExpressions": [{"key": "a b", "operator": "Near"}]})),
    "affinity value": pod(affinity=affinity({"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]})),
    "affinity preferred value": pod(
        affinity=preferred(1, {"matchExpressions": [{"key": "a", "operator": "In", "values": ["a b"]}]})
    ),
    "affinity fields": pod(
        affinity=affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "B"]}]})
    ),
    "affinity fields key": pod(affinity=affinity({"matchFields": [{"key": "spec.x", "operator": "Gt", "values": ["a"]}]})),
    "affinity weight": pod(affinity=preferred(101, NODE_TERM)),
    "affinity of pods": pod(affinity=pod_affinity(topologyKey="host", labelSelector={"matchLabels": {"a": "b"}})),
    "affinity of pods bad": pod(
        affinity=pod_affinity(
            topologyKey="",
            namespaces=["A"],
            labelSelector={"matchExpressions": [{"key": "a b", "operator": "Near", "values": ["c d"]}]},
        )
    ),
    "spread": pod(
        topologySpreadConstraints=[
            {"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "Never", "labelSelector": {"matchLabels": {"a": "b"}}}
        ]
    ),
    "gates": pod(schedulingGates=[{"name": "applecart.dev/wait"}]),
    "gates bad": pod(schedulingGates=[{"name": "a b"}, {"name": "c"}, {"name": "c"}]),
    "gates and node": pod(schedulingGates=[{"name": "a"}], nodeName="n"),
    "restart policy": pod(restartPolicy="Sometimes"),
    "dns policy": pod(dnsPolicy="Some"),
    "dns none": pod(dnsPolicy="None"),
    "dns servers": pod(dnsPolicy="None", dnsConfig={"nameservers": ["a", "1.1.1.1", "1.1.1.1", "1.1.1.1"]}),
    "service account": pod(serviceAccountName="Runner"),
    "service account old name": pod(serviceAccount="runner"),
    "node name": pod(nodeName="Mac"),
    "node name fine": pod(nodeName="mac-1"),
    "deadline zero": pod(activeDeadlineSeconds=0),
    "deadline large": pod(activeDeadlineSeconds=2**31),
    "grace negative": pod(terminationGracePeriodSeconds=-5),
    "grace zero": pod(terminationGracePeriodSeconds=0),
    "hostname": pod(hostname="A", subdomain="b.c"),
    "host alias": pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["a.b"]}, {"ip": "x", "hostnames": ["A_"]}]),
    "priority": pod(priority=5),
    "priority class unknown": pod(priorityClassName="nope"),
    "priority class system": pod(priorityClassName="system-node-critical"),
    "preemption": pod(preemptionPolicy="Never"),
    "runtime class unknown": pod(runtimeClassName="nope"),
    "overhead": pod(overhead={"cpu": "1"}),
    "os": pod(os={"name": "darwin"}),
    "os none": pod(os={"name": ""}),
    "readiness gate": pod(readinessGates=[{"conditionType": "a b"}]),
    "security": pod(
        securityContext={"runAsUser": -1, "fsGroup": 2**31, "supplementalGroups": [-2], "fsGroupChangePolicy": "Never"}
    ),
    "seccomp": pod(securityContext={"seccompProfile": {"type": "Local"}}),
    "seccomp local": pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
    "container security": pod_with(
        securityContext={"runAsUser": -1, "allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}
    ),
    "init": pod(initContainers=[container(name="prepare")]),
    "init name taken": pod(initContainers=[container()]),
    "init probe": pod(initContainers=[container(name="a", livenessProbe=PROBE, lifecycle={"preStop": PROBE})]),
    "init restartable": pod(initContainers=[container(name="a", restartPolicy="Always", startupProbe=PROBE)]),
    "init restart policy": pod(initContainers=[container(name="a", restartPolicy="Maybe")]),
    "container restart policy": pod_with(restartPolicy="OnFailure"),
    "pull policy": pod_with(imagePullPolicy="Sometimes"),
    "message policy": pod_with(terminationMessagePolicy="Log"),
    "ephemeral": pod(ephemeralContainers=[container(name="debug")]),
    "mirror": pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
    "deletion cost": pod(meta={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "cheap"}}),
    "status given": {**pod(), "status": {"phase": "Running", "podIP": "1.1.1.1"}},
    "several problems": pod(restartPolicy="X", containers=[container(name="A", imagePullPolicy="Y")], hostname="_"),
}


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
