"""JSON patches on `JSON_PATCH_SUBJECT`: each must come out as on a real API server, which also knows when to refuse.

Minors before 1.36 fail on a `test` without a value and ignore a `replace` of the whole document by a scalar; both are tested
with our own code alone.
"""

from typing import Any

from tests.embedded.patching.shapes import config_map

JSON_PATCH_SUBJECT = config_map(
    {"a": "1", "b": "2"},
    labels={"a": "b"},
    ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in "pqr"],
)
OWNERS = "/metadata/ownerReferences"


def owner(name: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}


def operation(op: Any, path: Any = None, **more: Any) -> dict[str, Any]:
    return {"op": op, **({} if path is None else {"path": path}), **more}


ACCEPTED: list[list[dict[str, Any]]] = [
    [],
    [operation("add", "/data/c", value="3")],
    [operation("add", "/data/a", value="9")],
    [operation("add", "data/ignored", value="x")],
    [operation("remove", "/data/a")],
    [operation("replace", "/data/a", value="9")],
    [operation("replace", "/data/new", value="9")],
    [operation("move", "/data/c", **{"from": "/data/a"})],
    [operation("copy", "/data/c", **{"from": "/data/a"})],
    [operation("test", "/data/a", value="1")],
    [operation("test", "/data", value={"b": "2", "a": "1"})],
    [operation("test", "/data/none", value=None)],
    [operation("test", f"{OWNERS}/0", value=owner("p"))],
    [operation("add", f"{OWNERS}/-", value=owner("z"))],
    [operation("add", f"{OWNERS}/0", value=owner("z"))],
    [operation("add", f"{OWNERS}/3", value=owner("z"))],
    [operation("add", f"{OWNERS}/-1", value=owner("z"))],
    [operation("add", f"{OWNERS}/-4", value=owner("z"))],
    [operation("remove", f"{OWNERS}/1")],
    [operation("remove", f"{OWNERS}/-1")],
    [operation("remove", f"{OWNERS}/+1")],
    [operation("remove", f"{OWNERS}/01")],
    [operation("replace", f"{OWNERS}/-3", value=owner("z"))],
    [operation("replace", f"{OWNERS}/0/name", value="renamed")],
    [operation("move", f"{OWNERS}/0", **{"from": f"{OWNERS}/2"})],
    [
        operation("add", "/metadata/annotations", value={"x.y/z": "1"}),
        operation("replace", "/metadata/annotations/x.y~1z", value="2"),
    ],
    [operation("test", "/data/a", value="1"), operation("remove", "/data/a"), operation("add", "/data/a", value="2")],
]

REFUSED: list[Any] = [
    {},
    5,
    "text",
    [5],
    [None],
    [{}],
    [operation(5, "/data/a")],
    [operation("frob", "/data/a")],
    [operation("add")],
    [operation("add", 5)],
    [operation("add", "", value={})],
    [operation("add", "nope", value="x")],
    [operation("add", "/none/c", value="1")],
    [operation("add", "/data/a/b", value="1")],
    [operation("remove")],
    [operation("remove", "")],
    [operation("remove", "/data/none")],
    [operation("remove", "/none/none")],
    [operation("replace", "/none/none", value="1")],
    [operation("test", "/data/a", value="2")],
    [operation("test", "/data/none", value="2")],
    [operation("test", "/none/none", value=None)],
    [operation("test", "/data/a")],
    [operation("test", "", value=5)],
    [operation("add", f"{OWNERS}/4", value={})],
    [operation("add", f"{OWNERS}/-5", value={})],
    [operation("add", f"{OWNERS}/x", value={})],
    [operation("remove", f"{OWNERS}/3")],
    [operation("remove", f"{OWNERS}/-")],
    [operation("remove", f"{OWNERS}/1_0")],
    [operation("remove", f"{OWNERS}/99999999999999999999")],
    [operation("replace", f"{OWNERS}/-", value={})],
    [operation("replace", f"{OWNERS}/x", value={})],
    [operation("test", f"{OWNERS}/7", value={})],
    [operation("move", "/data/a")],
    [operation("move", "/data/a", **{"from": "/data/none"})],
    [operation("move", "/none/a", **{"from": "/data/a"})],
    [operation("move", "/data/a", **{"from": ""})],
    [operation("move", f"{OWNERS}/77", **{"from": "/data/a"})],
    [operation("copy", "/data/a")],
    [operation("copy", "/data/a", **{"from": "/none/none"})],
    [operation("copy", "/none/a", **{"from": "/data/a"})],
    [operation("copy", "/data/a", **{"from": f"{OWNERS}/7"})],
    [operation("add", "/data/z", value="x" * 100_000)]
    + [operation("copy", f"/data/y{number}", **{"from": "/data/z"}) for number in range(40)],
    [operation("add", "/data/c", value="1")] * 10_001,
]
