"""Sequences of writes around server-side apply; every step must come out as on a real API server."""

from dataclasses import dataclass
from typing import Any

from tests.embedded.patching.shapes import GROUP, config_map, pod, probe
from tests.embedded.patching.steps import Step

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@dataclass(frozen=True)
class Case:
    """`setup` only prepares; `steps` are compared."""

    kind: str
    steps: tuple[Step, ...]
    setup: tuple[Step, ...] = ()


def applied(body: Any, manager: str = "m1", **more: Any) -> Step:
    return Step("apply", body, manager, **more)


def status(**content: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1", "kind": "Probe", "metadata": {"name": "subject"}, "status": content}


def data(*steps: Step, setup: tuple[Step, ...] = ()) -> Case:
    return Case("ConfigMap", steps, setup)


def items(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, "value": f"of-{name}", **more} for name in names]


MAIN = {"name": "main", "image": "one"}
SIDE = {"name": "side", "image": "two"}
TIMED_CONDITION = {
    "type": "a/b",
    "status": "True",
    "lastProbeTime": "2026-01-01T00:00:00Z",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
BARE_POD = (Step("create", pod(MAIN)),)

APPLY_CASES: dict[str, Case] = {
    "an apply creates": data(applied(config_map({"a": "1"}, labels={"x": "y"}))),
    "a dropped field goes": data(applied(config_map({"a": "1", "b": "2"})), applied(config_map({"a": "1"}))),
    "a map that becomes empty goes": data(applied(config_map({"a": "1"})), applied(config_map())),
    "an equal value is shared": data(
        applied(config_map({"a": "1"})), applied(config_map({"a": "1"}), "m2"), applied(config_map({"a": "1"}), "m2")
    ),
    "a shared field stays when one owner drops it": data(
        applied(config_map({"a": "1"})), applied(config_map({"a": "1"}), "m2"), applied(config_map(), "m2")
    ),
    "another value conflicts": data(applied(config_map({"a": "1"})), applied(config_map({"a": "2"}), "m2")),
    "force moves a field": data(applied(config_map({"a": "1", "b": "1"})), applied(config_map({"a": "2"}), "m2", force=True)),
    "an owner that lost everything is gone": data(
        applied(config_map({"a": "1"})), applied(config_map({"a": "2"}), "m2", force=True)
    ),
    "conflicts with several managers": data(
        applied(config_map({"a": "1"})),
        applied(config_map({"a": "1", "b": "1"}), "m2"),
        Step("merge", {"data": {"c": "1"}}, "u1"),
        applied(config_map({"a": "9", "b": "9", "c": "9"}), "m3"),
    ),
    "a conflict with an updater names its version": data(
        Step("create", config_map({"a": "1"}), "u1"), applied(config_map({"a": "2"}))
    ),
    "an update takes fields from an applier": data(
        applied(config_map({"a": "1", "b": "1"})), Step("merge", {"data": {"a": "2"}}, "u1"), applied(config_map({"b": "1"}))
    ),
    "an update that removes a field takes it from all": data(
        applied(config_map({"a": "1", "b": "1"})), Step("merge", {"data": {"a": None}}, "u1")
    ),
    "an updater keeps what it had": data(
        Step("create", config_map({"a": "1"}), "u1"),
        Step("merge", {"data": {"b": "1"}}, "u1"),
        Step("merge", {"data": {"a": "3"}, "metadata": {"labels": {"l": "1"}}}, "u2"),
        Step("json", [{"op": "remove", "path": "/data/b"}], "u2"),
    ),
    "an update without a change owns nothing": data(
        applied(config_map({"a": "1"})), Step("merge", {"data": {"a": "1"}}, "u1"), Step("put", config_map({"a": "1"}), "u1")
    ),
    "null over nothing": data(applied(config_map({"a": "1"})), applied(config_map(None, labels=None), "m2")),
    "null over a map keeps it": data(
        applied(config_map({"a": "1"})), applied({**config_map(), "data": None}, "m2"), applied(config_map(), "m2")
    ),
    "an empty map is owned": data(applied(config_map({})), applied(config_map({"a": "1"}), "m2"), applied(config_map({}))),
    "finalizers are a set": data(
        applied(config_map(finalizers=["a.b/c", "a.b/d"])),
        applied(config_map(finalizers=["a.b/e", "a.b/c"]), "m2"),
        applied(config_map(finalizers=["a.b/d"])),
        applied(config_map(), "m2"),
    ),
    "owner references are keyed and whole": data(
        applied(config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}])),
        applied(config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "u2"}]), "m2"),
        applied(config_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "r", "uid": "u1"}]), "m2"),
    ),
    "names with odd letters": data(applied(config_map({"a.b-c_d": "1"}, annotations={"x.y/Z-1": 'quote " and < >'}))),
    "annotations are owned one by one": data(
        applied(config_map(annotations={"a": "1"})),
        applied(config_map(annotations={"b": "1"}), "m2"),
        applied(config_map(), "m1"),
        applied(config_map(), "m2"),
    ),
    "managedFields are refused": data(applied(config_map({"a": "1"})), applied(config_map(managedFields=[]))),
    "another version is refused": data(applied(config_map({"a": "1"})), applied({**config_map(), "apiVersion": "v2"})),
    "managedFields are cleared by an empty entry": data(
        applied(config_map({"a": "1"})),
        Step("merge", {"metadata": {"managedFields": [{}]}}, "u1"),
        Step("merge", {"data": {"b": "2"}}, "u1"),
        applied(config_map({"a": "1", "c": "3"})),
    ),
    "managedFields are cleared by an empty list": data(
        applied(config_map({"a": "1"})), Step("put", config_map({"a": "2"}, managedFields=[]), "u1")
    ),
    "managedFields that are left out stay": data(
        applied(config_map({"a": "1"})), Step("put", config_map({"a": "1", "b": "2"}), "u1")
    ),
    "bad managedFields are ignored": data(
        applied(config_map({"a": "1"})),
        Step("put", config_map({"a": "2"}, managedFields=[{"manager": "x", "operation": "Frob"}]), "u1"),
    ),
    "managedFields may be rewritten": data(
        Step("create", config_map({"a": "1"}), "u1"),
        Step(
            "merge",
            {
                "metadata": {
                    "managedFields": [
                        {
                            "manager": "m1",
                            "operation": "Apply",
                            "apiVersion": "v1",
                            "time": "2026-01-01T00:00:00Z",
                            "fieldsType": "FieldsV1",
                            "fieldsV1": {"f:data": {".": {}, "f:a": {}, "z:unknown": {}}},
                        }
                    ]
                }
            },
            "u1",
        ),
        applied(config_map({"b": "1"})),
    ),
    "kubectl takes over what it applied itself": data(
        Step(
            "create",
            config_map(
                {"a": "1", "b": "1"},
                annotations={
                    LAST_APPLIED: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"subject"},"data":{"a":"1"}}'
                },
            ),
            "kubectl-client-side-apply",
        ),
        applied(config_map({"a": "2", "b": "2"}), "kubectl"),
        applied(config_map({"a": "2"}), "kubectl"),
    ),
    "many updaters are merged": data(
        *(Step("merge", {"data": {f"k{number}": "1"}}, f"u{number}") for number in range(13)),
        setup=(Step("create", config_map({"a": "1"}), "creator"),),
    ),
    "containers of two managers": Case(
        "Pod",
        (
            applied(pod({"name": "main", "image": "new"})),
            applied(pod({"name": "main", "image": "new"}), force=True),
            applied(pod(SIDE, activeDeadlineSeconds=60), "m2"),
            applied(pod({"name": "side", "image": "new"}, activeDeadlineSeconds=60), "m2", force=True),
        ),
        (Step("create", pod(MAIN, SIDE), "creator"),),
    ),
    "a Pod is created by apply": Case(
        "Pod",
        (
            applied(
                pod(
                    {**MAIN, "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}], "command": ["a", "b"]},
                    nodeSelector={"a": "b"},
                    tolerations=[{"key": "k", "operator": "Exists"}],
                    volumes=[{"name": "v", "emptyDir": {}}],
                )
            ),
        ),
    ),
    "duplicate containers are refused": Case("Pod", (applied(pod(MAIN, MAIN)),)),
    "several faults are listed": Case("Pod", (applied(pod({**MAIN, "env": [{"name": "a"}, {"name": "a"}]}, MAIN)),)),
    "a Pod's status has its own owners": Case(
        "Pod",
        (
            Step("strategic", {"status": {"conditions": [TIMED_CONDITION]}}, "u1", subresource="status"),
            applied(
                {**pod(), "spec": None, "status": {"conditions": [{"type": "c/d", "status": "True"}]}},
                "m2",
                subresource="status",
            ),
            applied(
                {**pod(), "spec": None, "status": {"conditions": [{"type": "a/b", "status": "False"}]}},
                "m2",
                subresource="status",
            ),
        ),
        BARE_POD,
    ),
    "a status sent to the main endpoint is not owned": Case(
        "Pod",
        (applied({**pod({"name": "main", "image": "one"}), "status": {"phase": "Running"}}),),
        BARE_POD,
    ),
    "a probe by apply": Case(
        "Probe",
        (
            applied(
                probe(
                    size=1,
                    items=items("a", "b", options={"o": "1"}),
                    tags=["x", "y"],
                    numbers=[3, 1],
                    order=["p", "q"],
                    labels={"l": "1"},
                    whole={"w": "1"},
                    point={"x": 1, "y": 2},
                    nested={"a": "1", "inner": {"b": "2"}},
                    free={"any": {"thing": [1, {"z": 2}]}, "s": "t"},
                )
            ),
        ),
    ),
    "a probe by create": Case(
        "Probe",
        (
            Step(
                "create",
                probe(items=items("a"), tags=["x"], nested={"inner": {"b": "1"}}, free={"k": {"v": [1]}}, labels={"l": "1"}),
                "u1",
            ),
        ),
    ),
    "items of two managers": Case(
        "Probe",
        (
            applied(probe(items=items("a", "b"))),
            applied(probe(items=items("c", "a")), "m2"),
            applied(probe(items=items("b"))),
            applied(probe(items=items("d", "c", "b")), "m2"),
            applied(probe(), "m2"),
        ),
    ),
    "members of an item of two managers": Case(
        "Probe",
        (
            applied(probe(items=[{"name": "a", "value": "1"}])),
            applied(probe(items=[{"name": "a", "port": 1, "options": {"x": "y"}}]), "m2"),
            applied(probe(items=[{"name": "a"}])),
            applied(probe(size=1), "m2"),
        ),
    ),
    "keys with a default": Case(
        "Probe",
        (
            applied(probe(ports=[{"port": 1, "value": "a"}])),
            applied(probe(ports=[{"port": 1, "protocol": "UDP", "value": "b"}]), "m2"),
            applied(probe(ports=[{"port": 1, "protocol": "TCP", "value": "c"}]), "m2"),
        ),
    ),
    "order of applied lists": Case(
        "Probe",
        (
            applied(probe(tags=["a", "b", "c", "d"])),
            applied(probe(tags=["d", "x", "b"]), "m2"),
            applied(probe(tags=["d", "c", "b", "a"])),
            applied(probe(tags=["y", "a"]), "m3"),
        ),
    ),
    "atomic values conflict whole": Case(
        "Probe",
        (
            applied(probe(order=["a"], whole={"a": "1"}, point={"x": 1})),
            applied(probe(order=["a", "b"], whole={"b": "1"}, point={"y": 1}), "m2"),
            applied(probe(order=["a", "b"], whole={"b": "1"}, point={"y": 1}), "m2", force=True),
            applied(probe(order=[], whole={}), "m2"),
        ),
    ),
    "free content is owned by name": Case(
        "Probe",
        (
            applied(probe(free={"a": {"b": 1}, "l": [1, 2]})),
            applied(probe(free={"a": {"c": 1}}), "m2"),
            applied(probe(free={"a": {"b": 2}, "l": [1]}), "m2"),
            applied(probe(free={"l": [1, 2]})),
            Step("merge", {"spec": {"free": {"l": "text", "a": {"b": {"deep": True}}}}}, "u1"),
            Step("merge", {"spec": {"free": {"l": {"m": 1}, "a": None}}}, "u1"),
        ),
    ),
    "nested structs vanish with their last field": Case(
        "Probe",
        (
            applied(probe(size=1, nested={"a": "1", "inner": {"b": "2"}})),
            applied(probe(size=1, nested={"a": "1"})),
            applied(probe(size=1)),
        ),
    ),
    "a custom status has its own owners": Case(
        "Probe",
        (
            Step("merge", {"status": {"phase": "Up"}, "spec": {"title": "no"}}, "u1", subresource="status"),
            applied(status(conditions=[{"type": "Ready", "status": "True"}]), "m2", subresource="status"),
            applied(status(phase="Down"), "m2", subresource="status"),
            applied({**probe(size=3), "status": {"phase": "Ignored"}}),
        ),
        (applied(probe(size=1)),),
    ),
    "duplicates of a set are refused": Case(
        "Probe",
        (
            applied(probe(tags=["a", "a"])),
            applied(probe(numbers=[1, 2, 1])),
        ),
    ),
    "duplicates of two keys are refused": Case("Probe", (applied(probe(ports=[{"port": 1}, {"port": 1, "protocol": "TCP"}])),)),
    "duplicates that an update left are one field": Case(
        "Probe",
        (
            applied(probe(tags=["a", "b"])),
            Step("json", [{"op": "add", "path": "/spec/order", "value": ["a", "a"]}], "u1"),
            applied(probe(tags=["b"], order=["a", "a"])),
        ),
    ),
    "an update of items": Case(
        "Probe",
        (
            applied(probe(items=items("a", "b"))),
            Step("json", [{"op": "replace", "path": "/spec/items/0/value", "value": "new"}], "u1"),
            Step("json", [{"op": "remove", "path": "/spec/items/1"}], "u1"),
            applied(probe(items=items("b"))),
            Step("merge", {"spec": None}, "u2"),
        ),
    ),
    "numbers and booleans in sets": Case("Probe", (applied(probe(numbers=[10, 9, -1])), applied(probe(numbers=[9]), "m2"))),
}
