"""Shapes of a few kinds, made by hand, and objects of them: enough of each to patch and apply to.

`PROBE` is the custom kind of `PROBE_CRD`: one field of every list type.
"""

from typing import Any

from applecart.embedded.shape import SCALAR, UNTYPED, Shape

GROUP = "patching.applecart.test"


def struct(*scalars: str, is_atomic: bool = False, **fields: Shape) -> Shape:
    members = {**dict.fromkeys(scalars, SCALAR), **fields}
    return Shape("struct", lambda: members, is_atomic=is_atomic)


def map_of(element: Shape = SCALAR, *, is_atomic: bool = False) -> Shape:
    return Shape("map", element=element, is_atomic=is_atomic)


def atomic(element: Shape = SCALAR) -> Shape:
    return Shape("list", element=element)


def set_of(element: Shape = SCALAR, *, merges: bool = False) -> Shape:
    return Shape("list", element=element, list_type="set", merges=merges)


def keyed(element: Shape, *keys: str, merge_key: str = "", **defaults: object) -> Shape:
    return Shape(
        "list",
        element=element,
        list_type="map",
        list_keys=keys,
        key_defaults=defaults,
        merges=bool(merge_key),
        merge_key=merge_key,
    )


OWNER = struct("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion", is_atomic=True)
METADATA = struct(
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    labels=map_of(),
    annotations=map_of(),
    finalizers=set_of(merges=True),
    ownerReferences=keyed(OWNER, "uid", merge_key="uid"),
)
TYPE = ("apiVersion", "kind")

CONFIG_MAP = struct(*TYPE, metadata=METADATA, immutable=SCALAR, data=map_of(), binaryData=map_of())

ENV = struct("name", "value")
PORT = struct("name", "containerPort", "hostPort", "protocol")
MOUNT = struct("name", "mountPath", "readOnly", "subPath")
CONTAINER = struct(
    "name",
    "image",
    "imagePullPolicy",
    "workingDir",
    "terminationMessagePath",
    "terminationMessagePolicy",
    command=atomic(),
    args=atomic(),
    env=keyed(ENV, "name", merge_key="name", name=""),
    ports=keyed(PORT, "containerPort", "protocol", merge_key="containerPort", protocol="TCP"),
    volumeMounts=keyed(MOUNT, "mountPath", merge_key="mountPath"),
    resources=struct(limits=map_of(), requests=map_of()),
)
VOLUME = struct(
    name=SCALAR,
    emptyDir=struct("medium", "sizeLimit"),
    configMap=struct(name=SCALAR, optional=SCALAR),
    hostPath=struct("path", "type"),
)
TOLERATION = struct("key", "operator", "value", "effect", "tolerationSeconds")
CONDITION = struct("type", "status", "reason", "message", "lastTransitionTime", "lastProbeTime", "lastHeartbeatTime")
POD = struct(
    *TYPE,
    metadata=METADATA,
    spec=struct(
        "nodeName",
        "restartPolicy",
        "dnsPolicy",
        "schedulerName",
        "activeDeadlineSeconds",
        "priority",
        "terminationGracePeriodSeconds",
        "enableServiceLinks",
        "preemptionPolicy",
        containers=keyed(CONTAINER, "name", merge_key="name", name=""),
        initContainers=keyed(CONTAINER, "name", merge_key="name", name=""),
        volumes=Shape(
            "list",
            element=VOLUME,
            list_type="map",
            list_keys=("name",),
            key_defaults={"name": ""},
            merges=True,
            merge_key="name",
        ),
        tolerations=atomic(TOLERATION),
        nodeSelector=map_of(is_atomic=True),
        securityContext=struct(),
    ),
    status=struct(
        "phase",
        "message",
        "reason",
        "hostIP",
        "podIP",
        "qosClass",
        "startTime",
        "observedGeneration",
        conditions=keyed(CONDITION, "type", merge_key="type"),
        containerStatuses=atomic(struct("name", "image", "ready", "restartCount")),
    ),
)

DEPLOYMENT = struct(
    *TYPE,
    metadata=METADATA,
    spec=struct(
        "replicas",
        "paused",
        "minReadySeconds",
        "progressDeadlineSeconds",
        "revisionHistoryLimit",
        selector=struct(matchLabels=map_of(), is_atomic=True),
        strategy=Shape(
            "struct",
            lambda: {"type": SCALAR, "rollingUpdate": struct("maxSurge", "maxUnavailable")},
        ),
        template=struct(metadata=METADATA, spec=POD.fields["spec"]),
    ),
    status=struct("observedGeneration"),
)

NODE = struct(
    *TYPE,
    metadata=METADATA,
    spec=struct("unschedulable", "providerID", taints=atomic(struct("key", "value", "effect"))),
    status=struct(
        conditions=keyed(CONDITION, "type", merge_key="type"),
        addresses=keyed(struct("type", "address"), "type", merge_key="type"),
        capacity=map_of(),
        allocatable=map_of(),
        nodeInfo=struct(),
        daemonEndpoints=struct(),
    ),
)

PROBE_ITEM = struct("name", "value", "port", options=map_of())
PROBE = struct(
    *TYPE,
    metadata=METADATA,
    spec=struct(
        "size",
        "title",
        items=keyed(PROBE_ITEM, "name"),
        ports=keyed(PROBE_ITEM, "port", "protocol", protocol="TCP"),
        tags=set_of(),
        numbers=set_of(),
        order=atomic(),
        labels=map_of(),
        whole=map_of(is_atomic=True),
        point=struct("x", "y", is_atomic=True),
        nested=struct(a=SCALAR, inner=struct(b=SCALAR)),
        free=UNTYPED,
    ),
    status=struct(phase=SCALAR, conditions=keyed(CONDITION, "type")),
)


def _property(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


_STRING = _property("string")
_INTEGER = _property("integer")
_STRINGS = _property("object", additionalProperties=_STRING)


def _items(properties: dict[str, Any], *keys: str) -> dict[str, Any]:
    items = _property("object", properties=properties, required=[key for key in keys if "default" not in properties[key]])
    extensions = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return _property("array", items=items, **extensions)


_PROBE_ITEM_PROPERTIES = {"name": _STRING, "value": _STRING, "port": _INTEGER, "options": _STRINGS}
PROBE_SCHEMA = _property(
    "object",
    properties={
        "spec": _property(
            "object",
            properties={
                "size": _INTEGER,
                "title": _STRING,
                "items": _items(_PROBE_ITEM_PROPERTIES, "name"),
                "ports": _items(
                    {**_PROBE_ITEM_PROPERTIES, "protocol": {**_STRING, "default": "TCP"}},
                    "port",
                    "protocol",
                ),
                "tags": _property("array", items=_STRING, **{"x-kubernetes-list-type": "set"}),
                "numbers": _property("array", items=_INTEGER, **{"x-kubernetes-list-type": "set"}),
                "order": _property("array", items=_STRING),
                "labels": _STRINGS,
                "whole": {**_STRINGS, "x-kubernetes-map-type": "atomic"},
                "point": _property("object", properties={"x": _INTEGER, "y": _INTEGER}, **{"x-kubernetes-map-type": "atomic"}),
                "nested": _property(
                    "object",
                    properties={"a": _STRING, "inner": _property("object", properties={"b": _STRING})},
                ),
                "free": _property("object", **{"x-kubernetes-preserve-unknown-fields": True}),
            },
        ),
        "status": _property(
            "object",
            properties={
                "phase": _STRING,
                "conditions": _items({"type": _STRING, "status": _STRING, "reason": _STRING}, "type"),
            },
        ),
    },
)
PROBE_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"probes.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": PROBE_SCHEMA},
            }
        ],
    },
}


def config_map(data: Any = None, **metadata: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "subject", **metadata}}
    if data is not None:
        obj["data"] = data
    return obj


def probe(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Probe", "metadata": {"name": "subject"}, "spec": spec}


def pod(*containers: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "subject"},
        "spec": {"containers": list(containers), **spec},
    }


def deployment(*containers: Any, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": list(containers), **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "subject"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
    }


def node(name: str = "subject", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}
