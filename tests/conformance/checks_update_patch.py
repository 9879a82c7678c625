"""Checks 50 to 67: replacing and patching objects."""

from typing import Any

from tests.conformance.caller import JSON, JSON_PATCH, MERGE, STRATEGIC
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, lease, node, pod, widget


def revision(document: Any) -> str:
    return str(document["metadata"]["resourceVersion"])


async def made(ctx: Context, name: str = "one", **metadata: Any) -> Any:
    return await ctx.make(ctx.path("configmaps"), config_map(name, {"a": "1"}, **metadata))


@check(50, "PUT raises the revision")
async def check_050(ctx: Context) -> Any:
    before = await made(ctx)
    return [before, (await ctx.admin.put(ctx.path("configmaps", "one"), {**before, "data": {"a": "2"}})).plain()]


@check(51, "a stale PUT is 409 with its text")
async def check_051(ctx: Context) -> Any:
    before = await made(ctx)
    path = ctx.path("configmaps", "one")
    must(await ctx.admin.put(path, {**before, "data": {"a": "2"}}))
    of_widget = await ctx.make(ctx.widgets(), widget("one"))
    must(await ctx.admin.patch(ctx.widgets("one"), {"spec": {"size": 4}}))
    return {
        "built-in": (await ctx.admin.put(path, {**before, "data": {"a": "3"}})).plain(),
        "custom": (await ctx.admin.put(ctx.widgets("one"), of_widget)).plain(),
        "no number": (await ctx.admin.put(path, config_map("one", resourceVersion="abc"))).refusal(),
    }


@check(52, "unconditional PUT on a ConfigMap")
async def check_052(ctx: Context) -> Any:
    await made(ctx, labels={"a": "b"})
    return (await ctx.admin.put(ctx.path("configmaps", "one"), config_map("one", {"b": "2"}))).plain()


@check(53, "a write that changes nothing keeps the revision")
async def check_053(ctx: Context) -> Any:
    before = await made(ctx)
    path = ctx.path("configmaps", "one")
    told = [before, must(await ctx.admin.put(path, before)), must(await ctx.admin.patch(path, {"data": {"a": "1"}}))]
    of_widget = await ctx.make(ctx.widgets(), widget("one"))
    told += [of_widget, must(await ctx.admin.put(ctx.widgets("one"), of_widget))]
    told += [must(await ctx.admin.patch(ctx.widgets("one"), {"spec": {"size": 3}}))]
    told += [must(await ctx.admin.patch(ctx.widgets("one"), {"metadata": {"labels": None}}))]
    return told


@check(54, "PUT of a missing ConfigMap is 404")
async def check_054(ctx: Context) -> Any:
    return {
        "built-in": (await ctx.admin.put(ctx.path("configmaps", "none"), config_map("none"))).plain(),
        "custom": (await ctx.admin.put(ctx.widgets("none"), widget("none"))).plain(),
        "with revision": (await ctx.admin.put(ctx.path("configmaps", "none"), config_map("none", resourceVersion="1"))).plain(),
        "custom with revision": (
            await ctx.admin.put(ctx.widgets("none"), widget("none", metadata={"resourceVersion": "1"}))
        ).plain(),
        "pod": (await ctx.admin.put(ctx.path("pods", "none"), pod("none"))).plain(),
    }


@check("54b", "PUT of a missing Lease or Role is 201")
async def check_054b(ctx: Context) -> Any:
    rbac = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": rbac, "kind": "Role", "metadata": {"name": "none"}, "rules": []}
    binding = {
        "apiVersion": rbac,
        "kind": "RoleBinding",
        "metadata": {"name": "none"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"},
    }
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "none", "namespace": ctx.namespace},
        "involvedObject": {"namespace": ctx.namespace, "kind": "Pod", "name": "one"},
    }
    cluster_role = ctx.name("none")
    of_cluster = f"/apis/{rbac}/clusterroles/{cluster_role}"
    ctx.remove_later(of_cluster)
    leases = "coordination.k8s.io/v1"
    return {
        "lease": (await ctx.admin.put(ctx.path("leases", "none", group=leases), lease("none"))).plain(),
        "lease again": (await ctx.admin.put(ctx.path("leases", "none", group=leases), lease("none"))).plain(),
        "lease that is gone": (
            await ctx.admin.put(
                ctx.path("leases", "three", group=leases), lease("three", uid="d5f8a1c2-0000-4000-8000-000000000000")
            )
        ).plain(),
        "lease of a revision": (
            await ctx.admin.put(ctx.path("leases", "two", group=leases), lease("two", resourceVersion="1"))
        ).plain(),
        "role": (await ctx.admin.put(ctx.path("roles", "none", group=rbac), role)).plain(),
        "binding": (await ctx.admin.put(ctx.path("rolebindings", "none", group=rbac), binding)).plain(),
        "event": (await ctx.admin.put(ctx.path("events", "none"), event)).plain(),
        "cluster role": (
            await ctx.admin.put(of_cluster, {**role, "kind": "ClusterRole", "metadata": {"name": cluster_role}})
        ).plain(),
    }


@check(55, "name mismatch is 400")
async def check_055(ctx: Context) -> Any:
    before = await made(ctx)
    path = ctx.path("configmaps", "one")
    elsewhere = {**before, "metadata": {**before["metadata"], "namespace": "other"}}
    nameless = {**before, "metadata": {}}
    await ctx.make(ctx.widgets(), widget("one"))
    return {
        "name": (await ctx.admin.put(path, config_map("two"))).plain(),
        "namespace": (await ctx.admin.put(path, elsewhere)).plain(),
        "nameless": (await ctx.admin.put(path, nameless)).plain(),
        "custom": (await ctx.admin.put(ctx.widgets("one"), widget("two"))).plain(),
        "patch": (await ctx.admin.patch(path, {"metadata": {"name": "two"}})).plain(),
        "patch of the namespace": (await ctx.admin.patch(path, {"metadata": {"namespace": "other"}})).plain(),
        "patch of the kind": (await ctx.admin.patch(path, {"kind": "Secret"})).plain(),
    }


@check(56, "uid mismatch is 409")
async def check_056(ctx: Context) -> Any:
    before = await made(ctx)
    other = "11111111-2222-3333-4444-555555555555"
    path = ctx.path("configmaps", "one")
    of_widget = await ctx.make(ctx.widgets(), widget("one"))
    of_widget["metadata"]["uid"] = other
    return {
        "put": (await ctx.admin.put(path, {**before, "metadata": {**before["metadata"], "uid": other}})).plain(),
        "unconditional put": (await ctx.admin.put(path, config_map("one", uid=other))).plain(),
        "patch": (await ctx.admin.patch(path, {"metadata": {"uid": other}})).plain(),
        "custom": (await ctx.admin.patch(ctx.widgets("one"), {"metadata": {"uid": other}})).plain(),
        "custom put": (await ctx.admin.put(ctx.widgets("one"), of_widget)).plain(),
        "custom status put": (await ctx.admin.put(ctx.widgets("one", "status"), of_widget)).plain(),
    }


@check(57, "setting deletionTimestamp is 422; other system fields are kept")
async def check_057(ctx: Context) -> Any:
    before = await made(ctx)
    path = ctx.path("configmaps", "one")
    of_widget = await ctx.make(ctx.widgets(), widget("one"))
    moment = "2040-01-01T00:00:00Z"
    claimed = {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 99, "selfLink": "/x"}
    return {
        "put": (await ctx.admin.put(path, {**before, "metadata": {**before["metadata"], "deletionTimestamp": moment}})).plain(),
        "patch": (await ctx.admin.patch(path, {"metadata": {"deletionTimestamp": moment}})).plain(),
        "grace": (await ctx.admin.patch(path, {"metadata": {"deletionGracePeriodSeconds": 7}})).plain(),
        "custom": (await ctx.admin.patch(ctx.widgets("one"), {"metadata": {"deletionTimestamp": moment}})).plain(),
        "kept": (await ctx.admin.put(path, {**before, "metadata": {**before["metadata"], **claimed}})).plain(),
        "kept of custom": (
            await ctx.admin.put(ctx.widgets("one"), {**of_widget, "metadata": {**of_widget["metadata"], **claimed}})
        ).plain(),
        "generation": [
            must(await ctx.admin.patch(ctx.widgets("one"), change))["metadata"]["generation"]
            for change in ({"metadata": {"labels": {"x": "y"}}}, {"spec": {"size": 5}}, {"status": {"phase": "x"}})
        ],
    }


@check(58, "merge patch with null")
async def check_058(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1", "b": "2"}, labels={"x": "y"}))
    path = ctx.path("configmaps", "one")
    changes: dict[str, Any] = {
        "one key": {"data": {"a": None, "c": "3"}},
        "a map": {"metadata": {"labels": None}},
        "missing": {"data": {"zzz": None}},
        "everything": {"data": None},
        "wrong type": {"data": {"a": 5}},
        "unknown field": {"bogus": 1},
        "a list": ["no"],
        "text": "no",
        "null": None,
        "empty": {},
    }
    told: dict[str, Any] = {}
    for name, change in changes.items():
        body = b"null" if change is None else change
        told[name] = (await ctx.admin.call("PATCH", path, body, content_type=MERGE)).plain()
    told["half"] = (await ctx.admin.call("PATCH", path, b'{"data":', content_type=MERGE)).plain()
    told["strict"] = (await ctx.admin.patch(path, {"bogus": 1}, fieldValidation="Strict")).plain()
    return told


@check(59, "six JSON patch operations")
async def check_059(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1", "b": "2"}, annotations={"x/y": "1"}))
    path = ctx.path("configmaps", "one")
    every = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "copy", "from": "/data/c", "path": "/data/d"},
        {"op": "move", "from": "/data/c", "path": "/data/e"},
        {"op": "replace", "path": "/metadata/annotations/x~1y", "value": "2"},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/a"]},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/c"},
        {"op": "add", "path": "/metadata/finalizers/1", "value": "example.com/b"},
    ]
    return {
        "all": (await ctx.admin.patch(path, every, JSON_PATCH)).plain(),
        "no list": (await ctx.admin.patch(path, {"op": "add"}, JSON_PATCH)).plain(),
        "unknown": (await ctx.admin.patch(path, [{"op": "turn", "path": "/data"}], JSON_PATCH)).plain(),
        "empty": (await ctx.admin.patch(path, [], JSON_PATCH)).plain(body=False),
        "too many": (
            await ctx.admin.patch(path, [{"op": "test", "path": "/data/a", "value": "9"}] * 10001, JSON_PATCH)
        ).plain(),
    }


@check(60, "failed test is 422, missing path is 422")
async def check_060(ctx: Context) -> Any:
    await made(ctx)
    await ctx.make(ctx.widgets(), widget("one"))
    path = ctx.path("configmaps", "one")
    patches: dict[str, list[dict[str, Any]]] = {
        "test": [{"op": "test", "path": "/data/a", "value": "2"}],
        "test missing": [{"op": "test", "path": "/data/zzz", "value": "2"}],
        "remove missing": [{"op": "remove", "path": "/data/zzz"}],
        "replace missing": [{"op": "replace", "path": "/data/zzz", "value": "1"}],
        "add below missing": [{"op": "add", "path": "/nothing/here", "value": "1"}],
        "move missing": [{"op": "move", "from": "/data/zzz", "path": "/data/b"}],
        "copy missing": [{"op": "copy", "from": "/data/zzz", "path": "/data/b"}],
        "no slash": [{"op": "add", "path": "data", "value": {}}],
        "index": [
            {"op": "add", "path": "/metadata/finalizers", "value": []},
            {"op": "remove", "path": "/metadata/finalizers/3"},
        ],
    }
    told = {name: (await ctx.admin.patch(path, patch, JSON_PATCH)).plain() for name, patch in patches.items()}
    told["custom"] = (await ctx.admin.patch(ctx.widgets("one"), patches["test"], JSON_PATCH)).plain()
    return told


@check(61, "a revision inside a patch is a precondition")
async def check_061(ctx: Context) -> Any:
    before = await made(ctx)
    path = ctx.path("configmaps", "one")
    change = {"metadata": {"resourceVersion": revision(before)}, "data": {"a": "2"}}
    return {
        "right": (await ctx.admin.patch(path, change)).plain(),
        "merge": (await ctx.admin.patch(path, {**change, "data": {"a": "3"}})).plain(),
        "strategic": (await ctx.admin.patch(path, {**change, "data": {"a": "3"}}, STRATEGIC)).plain(),
        "json": (
            await ctx.admin.patch(
                path, [{"op": "replace", "path": "/metadata/resourceVersion", "value": revision(before)}], JSON_PATCH
            )
        ).plain(),
    }


@check(62, "strategic merge of containers and env")
async def check_062(ctx: Context) -> Any:
    container = {"name": "main", "image": "example.invalid/app:1", "env": [{"name": "A", "value": "1"}]}
    await ctx.make(ctx.path("pods"), pod("one", containers=[container, {"name": "side", "image": "example.invalid/side:1"}]))
    path = ctx.path("pods", "one")
    image = {"spec": {"containers": [{"name": "main", "image": "example.invalid/app:2"}]}}
    order = {
        "spec": {
            "$setElementOrder/containers": [{"name": "main"}, {"name": "side"}],
            "containers": [{"name": "side", "image": "example.invalid/side:2"}],
        }
    }
    steps: dict[str, Any] = {
        "image": image,
        "order": order,
        "env": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}},
        "added": {"spec": {"containers": [{"name": "third", "image": "example.invalid/third:1"}]}},
        "finalizers": {"metadata": {"finalizers": ["example.com/a"]}},
        "more finalizers": {"metadata": {"finalizers": ["example.com/b"]}},
        "fewer finalizers": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}},
        "tolerations": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}},
    }
    told = {name: (await ctx.admin.patch(path, change, STRATEGIC)).plain() for name, change in steps.items()}
    bad = {
        "keyless": {"spec": {"containers": [{"image": "example.invalid/app:3"}]}},
        "directive": {"spec": {"containers": [{"$patch": "nonsense", "name": "main"}]}},
    }
    return told | {name: (await ctx.admin.patch(path, change, STRATEGIC)).refusal() for name, change in bad.items()}


@check(63, "strategic merge of node conditions and $patch: delete")
async def check_063(ctx: Context) -> Any:
    name = ctx.name("mac")
    await ctx.make_cluster_wide("/api/v1/nodes", node(name))
    path = f"/api/v1/nodes/{name}/status"
    ready = {"type": "Ready", "status": "True", "reason": "Up"}
    disk = {"type": "DiskPressure", "status": "False"}
    steps: list[Any] = [
        {"status": {"conditions": [ready, disk], "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"conditions": [{"type": "DiskPressure", "$patch": "delete"}]}},
        {
            "status": {
                "$setElementOrder/conditions": [{"type": "New"}, {"type": "Ready"}],
                "conditions": [{"type": "New", "status": "True"}],
            }
        },
        {"status": {"conditions": [{"$patch": "replace"}, {"type": "Only", "status": "True"}]}},
        {"status": {"capacity": {"cpu": "8", "memory": "16Gi"}, "nodeInfo": {"$retainKeys": ["machineID"], "machineID": "m"}}},
        {"status": {"capacity": {"$patch": "replace", "cpu": "10"}}},
        {"status": {"conditions": [{"$patch": "delete", "type": "Missing"}]}},
        {"status": {"conditions": None}},
    ]
    return [(await ctx.admin.patch(path, step, STRATEGIC)).plain() for step in steps]


@check(64, "strategic merge of a custom resource is 415")
async def check_064(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("one"))
    return (await ctx.admin.patch(ctx.widgets("one"), {"spec": {"size": 4}}, STRATEGIC)).plain()


@check(65, "strategic merge replaces taints whole")
async def check_065(ctx: Context) -> Any:
    name = ctx.name("mac")
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule", "value": "1"}]
    await ctx.make_cluster_wide("/api/v1/nodes", node(name, spec={"taints": taints}))
    path = f"/api/v1/nodes/{name}"
    return {
        "taints": (await ctx.admin.patch(path, {"spec": {"taints": [{"key": "c", "effect": "NoExecute"}]}}, STRATEGIC)).plain(),
        "cordon": (await ctx.admin.patch(path, {"spec": {"unschedulable": True}}, STRATEGIC)).plain(),
        "uncordon": (await ctx.admin.patch(path, {"spec": {"unschedulable": None}}, STRATEGIC)).plain(),
        "bad": (await ctx.admin.patch(path, {"spec": {"taints": [{"key": "c", "effect": "Never"}]}}, STRATEGIC)).plain(),
    }


@check(66, "PATCH of a missing object is 404")
async def check_066(ctx: Context) -> Any:
    path = ctx.path("configmaps", "none")
    told: dict[str, Any] = {
        kind: (await ctx.admin.patch(path, body, kind)).plain()
        for kind, body in ((MERGE, {}), (STRATEGIC, {}), (JSON_PATCH, [{"op": "test", "path": "/kind", "value": "x"}]))
    }
    told["custom"] = (await ctx.admin.patch(ctx.widgets("none"), {})).plain()
    told["lease"] = (await ctx.admin.patch(ctx.path("leases", "none", group="coordination.k8s.io/v1"), {})).plain()
    return told


@check(67, "a wrong patch media type is 415")
async def check_067(ctx: Context) -> Any:
    await made(ctx)
    await ctx.make(ctx.widgets(), widget("one"))
    path = ctx.path("configmaps", "one")
    kinds = (JSON, "text/plain", "application/yaml")
    told: dict[str, Any] = {kind: (await ctx.admin.patch(path, {"data": {"a": "2"}}, kind)).plain() for kind in kinds}
    told["none"] = (await ctx.admin.call("PATCH", path, {"data": {"a": "2"}}, content_type=None)).plain()
    told["custom"] = (await ctx.admin.patch(ctx.widgets("one"), {}, JSON)).plain()
    return told
