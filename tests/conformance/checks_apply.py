"""Checks 68 to 78: server-side apply and who owns which field."""

from typing import Any

from tests.conformance.caller import APPLY, JSON_PATCH
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import WIDGET, config_map, pod, widget


@check(68, "fieldsV1 exact on apply", managed_fields=True)
async def check_068(ctx: Context) -> Any:
    rich = pod("one", metadata={"labels": {"a": "b"}, "finalizers": ["example.com/x"]})
    rich["spec"]["containers"][0] |= {
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "args": ["x", "y"],
        "resources": {"limits": {"cpu": "1"}},
    }
    rich["spec"]["tolerations"] = [{"key": "a", "operator": "Exists"}]
    rich["spec"]["nodeSelector"] = {"disk": "big"}
    of_widget = widget(
        "one", parts=[{"name": "p", "grade": "a"}], tags=["t"], steps=["s"], settings={"k": "v"}, free={"a": [1]}
    )
    return {
        "map": (await ctx.admin.apply(ctx.path("configmaps", "one"), config_map("one", {"a": "1"}), "m1")).plain(),
        "pod": (await ctx.admin.apply(ctx.path("pods", "one"), rich, "m1")).plain(),
        "custom": (await ctx.admin.apply(ctx.widgets("one"), of_widget, "m1")).plain(),
        "empty data": (await ctx.admin.apply(ctx.path("configmaps", "two"), config_map("two", {}), "m1")).plain(),
    }


async def applied_twice(ctx: Context) -> dict[str, Any]:
    path = ctx.path("configmaps", "one")
    must(await ctx.admin.apply(path, config_map("one", {"a": "1", "b": "1"}), "m1"))
    return {"path": path, "conflicting": config_map("one", {"a": "2", "b": "2", "c": "3"})}


@check(69, "conflict text and causes", managed_fields=True)
async def check_069(ctx: Context) -> Any:
    start = await applied_twice(ctx)
    must(await ctx.admin.apply(ctx.widgets("one"), widget("one", parts=[{"name": "p", "grade": "a"}]), "m1"))
    return {
        "map": (await ctx.admin.apply(start["path"], start["conflicting"], "m2")).plain(),
        "same value": (await ctx.admin.apply(start["path"], config_map("one", {"a": "1"}), "m2")).plain(),
        "two owners": (await ctx.admin.apply(start["path"], config_map("one", {"a": "3"}), "m3")).plain(),
        "custom": (
            await ctx.admin.apply(ctx.widgets("one"), widget("one", size=4, parts=[{"name": "p", "grade": "b"}]), "m2")
        ).plain(),
    }


@check(70, "force moves ownership", managed_fields=True)
async def check_070(ctx: Context) -> Any:
    start = await applied_twice(ctx)
    return {
        "forced": (await ctx.admin.apply(start["path"], start["conflicting"], "m2", force="true")).plain(),
        "force of a merge": (await ctx.admin.patch(start["path"], {"data": {"z": "1"}}, force="true")).plain(),
    }


@check(71, "a field no longer applied is removed", managed_fields=True)
async def check_071(ctx: Context) -> Any:
    start = await applied_twice(ctx)
    must(await ctx.admin.apply(start["path"], config_map("one", {"b": "1"}), "m2"))
    return {
        "dropped": (await ctx.admin.apply(start["path"], config_map("one"), "m1")).plain(),
        "dropped by all": (await ctx.admin.apply(start["path"], config_map("one"), "m2")).plain(),
    }


@check(72, "missing fieldManager is refused")
async def check_072(ctx: Context) -> Any:
    path = ctx.path("configmaps", "one")
    body = config_map("one", {"a": "1"})
    return {
        "none": (await ctx.admin.patch(path, body, APPLY)).plain(),
        "custom": (await ctx.admin.patch(ctx.widgets("one"), widget("one"), APPLY)).plain(),
        "too long": (await ctx.admin.apply(path, body, "m" * 129)).plain(),
        "unprintable": (await ctx.admin.apply(path, body, "a\tb")).plain(),
        "other name": (await ctx.admin.apply(path, config_map("two"), "m1")).plain(),
        "no kind": (await ctx.admin.apply(path, {"metadata": {"name": "one"}}, "m1")).plain(),
        "managed fields set": (await ctx.admin.apply(path, config_map("one", managedFields=[{"manager": "x"}]), "m1")).plain(),
        "unknown field": (await ctx.admin.apply(path, {**body, "bogus": 1}, "m1")).refusal(),
        "half": (await ctx.admin.call("PATCH", path, b"{", content_type=APPLY, query={"fieldManager": "m1"})).plain(),
        "doubled": (
            await ctx.admin.call("PATCH", path, b"a: 1\na: 2\n", content_type=APPLY, query={"fieldManager": "m1"})
        ).plain(),
        "revision": (await ctx.admin.apply(path, config_map("one", resourceVersion="5"), "m1")).plain(),
        "uid": (await ctx.admin.apply(path, config_map("one", uid="11111111-2222-3333-4444-555555555555"), "m1")).plain(),
    }


@check(73, "conflict with an Update manager says using v1", managed_fields=True)
async def check_073(ctx: Context) -> Any:
    path = ctx.path("configmaps", "one")
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1", "b": "1"}), fieldManager="maker")
    must(await ctx.admin.patch(path, {"data": {"b": "2"}}, fieldManager="changer"))
    one = await ctx.admin.apply(path, config_map("one", {"a": "9"}), "m1")
    both = await ctx.admin.apply(path, config_map("one", {"a": "9", "b": "9"}), "m1")
    return {"one": one.plain(), "both": both.plain()}


@check(74, "list-map: two managers merge", managed_fields=True)
async def check_074(ctx: Context) -> Any:
    def part(*names: str) -> dict[str, Any]:
        parts = [{"name": name, "grade": "a"} for name in names]
        return {"apiVersion": WIDGET, "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": 3, "parts": parts}}

    path = ctx.widgets("one")
    told = [(await ctx.admin.apply(path, part("p", "q"), "m1")).plain(), (await ctx.admin.apply(path, part("r"), "m2")).plain()]
    told.append((await ctx.admin.apply(path, part("q"), "m1")).plain())
    sets = [{**part(), "spec": {"size": 3, "tags": tags}} for tags in (["a", "b"], ["b", "c"])]
    told += [(await ctx.admin.apply(ctx.widgets("one"), body, f"t{i}")).plain() for i, body in enumerate(sets)]
    pods = ctx.path("pods", "one")
    labelled = [pod("one", metadata={"annotations": {key: "1"}}) for key in ("x", "y")]
    told += [(await ctx.admin.apply(pods, body, f"m{i}")).plain() for i, body in enumerate(labelled)]
    return told


@check(75, "an apply that changes nothing keeps the revision", managed_fields=True)
async def check_075(ctx: Context) -> Any:
    path = ctx.path("configmaps", "one")
    body = config_map("one", {"a": "1"})
    told = [must(await ctx.admin.apply(path, body, "m1")), must(await ctx.admin.apply(path, body, "m1"))]
    told += [must(await ctx.admin.apply(ctx.widgets("one"), widget("one"), "m1")) for _ in range(2)]
    return [*told, (await ctx.admin.apply(path, config_map("one", {"a": "2"}), "m1", dryRun="All")).plain()]


@check(76, "an Update entry has . for maps", managed_fields=True)
async def check_076(ctx: Context) -> Any:
    path = ctx.path("configmaps", "one")
    body = config_map("one", {"a": "1"}, labels={"x": "y"}, annotations={"n": "o"}, finalizers=["example.com/x"])
    created = await ctx.make(ctx.path("configmaps"), body, fieldManager="maker")
    patched = must(
        await ctx.admin.patch(path, {"data": {"b": "2"}, "metadata": {"labels": {"z": "1"}}}, fieldManager="changer")
    )
    put = must(await ctx.admin.put(path, {**patched, "data": {"a": "3"}}, fieldManager="putter"))
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": created["metadata"]["uid"]}
    owned = await ctx.make(ctx.path("configmaps"), config_map("two", ownerReferences=[owner]), fieldManager="maker")
    of_widget = await ctx.make(ctx.widgets(), widget("one", parts=[{"name": "p"}], tags=["t"]), fieldManager="maker")
    removed = must(await ctx.admin.patch(path, {"metadata": {"managedFields": [{}]}}))
    return [created, patched, put, owned, of_widget, removed]


@check(77, "status has an entry of its own", managed_fields=True)
async def check_077(ctx: Context) -> Any:
    path = ctx.widgets("one")
    must(await ctx.admin.apply(path, widget("one"), "m1"))
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    status = {"apiVersion": WIDGET, "kind": "Widget", "metadata": {"name": "one"}, "status": ready}
    told = [(await ctx.admin.apply(f"{path}/status", status, "m1")).plain()]
    told.append((await ctx.admin.patch(f"{path}/status", {"status": {"phase": "Up"}}, fieldManager="changer")).plain())
    told.append((await ctx.admin.patch(f"{path}/scale", {"spec": {"replicas": 2}}, fieldManager="scaler")).plain())
    told.append((await ctx.admin.get(path)).plain())
    must(await ctx.admin.apply(path, widget("one", replicas=2), "m1"))  # somebody owns the number now
    told.append((await ctx.admin.patch(f"{path}/scale", {"spec": {"replicas": 3}}, fieldManager="scaler")).plain())
    told.append((await ctx.admin.get(path)).plain())
    told.append((await ctx.admin.apply(path, widget("one", replicas=2), "m1")).plain())
    await ctx.make(ctx.path("pods"), pod("one"), fieldManager="maker")
    of_pod = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    told.append((await ctx.admin.patch(ctx.path("pods", "one", "status"), of_pod, fieldManager="kubelet")).plain())
    return told


@check(78, "from client-side to server-side apply as kubectl does it", managed_fields=True)
async def check_078(ctx: Context) -> Any:
    path = ctx.path("configmaps", "one")
    body = config_map("one", {"a": "1", "b": "1"}, annotations={"kubectl.kubernetes.io/last-applied-configuration": "{}"})
    created = await ctx.make(ctx.path("configmaps"), body, fieldManager="kubectl-client-side-apply")
    first = must(await ctx.admin.apply(path, config_map("one", {"a": "1", "b": "1"}), "kubectl"))
    entries = [
        {**entry, "manager": "kubectl", "operation": "Apply"}
        for entry in first["metadata"]["managedFields"]
        if entry["manager"] == "kubectl-client-side-apply"
    ]
    migrate = [
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": first["metadata"]["resourceVersion"]},
    ]
    migrated = await ctx.admin.patch(path, migrate, JSON_PATCH, fieldManager="kubectl")
    after = await ctx.admin.apply(path, config_map("one", {"a": "1"}), "kubectl")
    return [created, first, migrated.plain(), after.plain()]
