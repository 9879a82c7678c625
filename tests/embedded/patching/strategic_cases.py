"""Strategic merge patches in sequence; every step must come out as on a real API server."""

from typing import Any

from tests.embedded.patching.apply_cases import Case
from tests.embedded.patching.shapes import config_map, deployment, node, pod
from tests.embedded.patching.steps import Step


def patched(body: Any, **more: Any) -> Step:
    return Step("strategic", body, **more)


def template(**spec: Any) -> Step:
    """A patch of the Pod template of a Deployment."""
    return patched({"spec": {"template": {"spec": spec}}})


def container(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": f"image-{name}", **more}


def env(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "value": f"of-{name}"} for name in names]


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name} for name in names]


def metadata(**content: Any) -> Step:
    return patched({"metadata": content})


def owner(uid: str, name: str = "p") -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}


def condition(kind: str, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, **more}


def to_status(**content: Any) -> Step:
    return patched({"status": content}, subresource="status")


def of_deployment(*steps: Step) -> Case:
    ports = [{"containerPort": 1, "name": "tcp"}, {"containerPort": 1, "name": "udp", "protocol": "UDP"}, {"containerPort": 2}]
    mounts = [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]
    first = container("a", env=env("A", "B", "C"), ports=ports, volumeMounts=mounts, command=["run", "it"])
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/x"}}]
    setup = deployment(
        first,
        container("b"),
        container("c"),
        volumes=volumes,
        nodeSelector={"n": "1"},
        tolerations=[{"key": "t", "value": "1"}],
    )
    return Case("Deployment", steps, (Step("create", setup),))


def of_node(*steps: Step) -> Case:
    conditions = [condition("Ready"), condition("DiskPressure", "False"), condition("PIDPressure", "False")]
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "h"}]
    return Case("Node", steps, (Step("create", node(labels={"a": "1"})), to_status(conditions=conditions, addresses=addresses)))


def of_config_map(*steps: Step) -> Case:
    setup = config_map({"a": "1", "b": "2"}, labels={"x": "1", "y": "2"}, finalizers=["a.b/c", "a.b/d", "a.b/e"])
    return Case("ConfigMap", steps, (Step("create", setup),))


STRATEGIC_CASES: dict[str, Case] = {
    "members of maps": of_config_map(patched({"data": {"a": "9", "b": None, "c": "3"}, "metadata": {"labels": {"x": None}}})),
    "a map that is removed": of_config_map(patched({"data": None})),
    "null for what is not there": of_config_map(patched({"data": {"zz": None}, "binaryData": None})),
    "a map that is replaced": of_config_map(patched({"data": {"$patch": "replace", "z": "1"}})),
    "a map that is deleted": of_config_map(patched({"data": {"$patch": "delete"}})),
    "a map that is replaced where none was": of_config_map(
        patched({"metadata": {"annotations": {"$patch": "replace", "z": "1"}}})
    ),
    "a set grows in the patch's order": of_config_map(metadata(finalizers=["a.b/z", "a.b/d"])),
    "a set grows at the end": of_config_map(metadata(finalizers=["a.b/z"])),
    "a set grows in front": of_config_map(metadata(finalizers=["a.b/y", "a.b/c"])),
    "a set with repetitions": of_config_map(metadata(finalizers=["a.b/z", "a.b/z", "a.b/e", "a.b/c"])),
    "a set loses items": of_config_map(metadata(**{"$deleteFromPrimitiveList/finalizers": ["a.b/d", "a.b/none"]})),
    "a set loses and gains": of_config_map(
        metadata(
            finalizers=["a.b/new"],
            **{
                "$deleteFromPrimitiveList/finalizers": ["a.b/d"],
                "$setElementOrder/finalizers": ["a.b/new", "a.b/c"],
            },
        )
    ),
    "a set is reordered": of_config_map(metadata(**{"$setElementOrder/finalizers": ["a.b/e", "a.b/c"]})),
    "a deletion from a set that is not there": of_config_map(metadata(**{"$deleteFromPrimitiveList/labels": ["x"]})),
    "an emptied set": of_config_map(metadata(finalizers=None)),
    "a set from nothing": Case(
        "ConfigMap", (metadata(finalizers=["a.b/2", "a.b/1"]),), (Step("create", config_map({"a": "1"})),)
    ),
    "owner references by uid": of_config_map(
        metadata(ownerReferences=[owner("u1"), owner("u2")]),
        metadata(ownerReferences=[owner("u3"), {"uid": "u1", "name": "renamed"}]),
        metadata(ownerReferences=[{"uid": "u2", "$patch": "delete"}]),
        metadata(ownerReferences=[{"$patch": "replace"}, owner("u9")]),
    ),
    "an item is changed": of_deployment(template(containers=[{"name": "b", "image": "new"}])),
    "an item is added": of_deployment(template(containers=[container("d")])),
    "an item is added before another": of_deployment(template(containers=[container("d"), {"name": "b"}])),
    "items are put in order by the patch": of_deployment(template(containers=[{"name": "c"}, {"name": "a"}])),
    "items are put in order by a directive": of_deployment(
        template(**{"$setElementOrder/containers": named("c", "a", "b")}),
        template(**{"$setElementOrder/containers": named("b", "c")}),
        template(containers=[container("x", command=["x"])], **{"$setElementOrder/containers": named("x", "a")}),
    ),
    "an item is deleted": of_deployment(template(containers=[{"name": "b", "$patch": "delete"}])),
    "an item is deleted, others are ordered": of_deployment(
        template(containers=[{"name": "b", "$patch": "delete"}], **{"$setElementOrder/containers": named("c", "a")})
    ),
    "an item that is not there is deleted": of_deployment(template(containers=[{"name": "zz", "$patch": "delete"}])),
    "a list is replaced": of_deployment(template(containers=[{"$patch": "replace"}, container("n"), container("m")])),
    "items of items": of_deployment(
        template(containers=[{"name": "a", "env": [{"name": "B", "value": "new"}, {"name": "D", "value": "d"}]}]),
        template(containers=[{"name": "a", "env": [{"name": "A", "$patch": "delete"}]}]),
        template(containers=[{"name": "a", "env": [{"name": "C", "value": None}]}]),
        template(containers=[{"name": "a", "env": None}]),
    ),
    "items of items in order": of_deployment(
        template(
            containers=[{"name": "a", "$setElementOrder/env": named("C", "N", "A"), "env": [{"name": "N", "value": "n"}]}],
            **{"$setElementOrder/containers": named("b", "a")},
        )
    ),
    "two items with one key": of_deployment(
        template(containers=[{"name": "a", "ports": [{"containerPort": 1, "hostPort": 9}]}]),
        template(containers=[{"name": "a", "ports": [{"containerPort": 1, "$patch": "delete"}]}]),
    ),
    "mounts by path": of_deployment(
        template(
            containers=[{"name": "a", "volumeMounts": [{"mountPath": "/w", "name": "v"}, {"mountPath": "/n", "name": "v"}]}]
        )
    ),
    "a list of primitives is replaced": of_deployment(template(containers=[{"name": "a", "command": ["other"]}])),
    "a list without a key is replaced": of_deployment(template(tolerations=[{"key": "u", "value": "2"}])),
    "a map of the template": of_deployment(template(nodeSelector={"m": "2"}), template(nodeSelector={"n": None})),
    "a union of one volume": of_deployment(
        template(volumes=[{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/h"}}])
    ),
    "a union of the strategy": of_deployment(
        patched({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
        patched({"spec": {"strategy": {"$retainKeys": ["type", "rollingUpdate"], "type": "RollingUpdate"}}}),
    ),
    "retained keys must be listed": of_deployment(
        patched({"spec": {"strategy": {"$retainKeys": ["rollingUpdate"], "type": "Recreate"}}}),
        patched({"spec": {"strategy": {"$retainKeys": "type", "type": "Recreate"}}}),
    ),
    "a directive without a name": of_deployment(
        template(**{"$setElementOrder": named("a")}), template(**{"$deleteFromPrimitiveList": ["a"]})
    ),
    "scalars": of_deployment(patched({"spec": {"replicas": 3, "paused": True}}), patched({"spec": {"replicas": None}})),
    "an empty patch": of_deployment(patched({})),
    "taints are replaced whole": of_node(
        patched({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]}}),
        patched({"spec": {"taints": [{"key": "c", "effect": "NoSchedule"}]}}),
        patched({"spec": {"taints": None, "unschedulable": True}}),
    ),
    "conditions by type": of_node(
        to_status(conditions=[condition("Ready", "False", reason="Gone")]),
        to_status(conditions=[condition("Mine"), condition("DiskPressure", "True")]),
        to_status(conditions=[{"type": "Ready", "$patch": "delete"}]),
        to_status(**{"$setElementOrder/conditions": [{"type": "Mine"}, {"type": "PIDPressure"}]}),
    ),
    "addresses by type": of_node(
        to_status(addresses=[{"type": "ExternalIP", "address": "1.1.1.1"}, {"type": "InternalIP", "address": "10.0.0.2"}]),
        to_status(addresses=[{"$patch": "replace"}, {"type": "Hostname", "address": "x"}]),
    ),
    "capacity": of_node(to_status(capacity={"cpu": "2"}), to_status(capacity={"memory": "1Gi", "cpu": None})),
    "a Pod's image and labels": Case(
        "Pod",
        (
            patched({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "two"}]}}),
            patched({"status": {"conditions": [condition("x/y"), condition("z/y")]}}, subresource="status"),
            patched({"status": {"conditions": [condition("z/y", "False")], "message": "m"}}, subresource="status"),
        ),
        (Step("create", pod({"name": "main", "image": "one"})),),
    ),
}
