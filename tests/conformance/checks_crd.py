"""Checks 96 to 111 and 141: custom resources: defaults, pruning, validation, rules, status and scale."""

import asyncio
from typing import Any

from tests.conformance.caller import TABLE
from tests.conformance.checks import check
from tests.conformance.checks_read import names
from tests.conformance.context import Context, must
from tests.conformance.kinds import GROUP, SIZE_ONLY, definition, version, widget

ESTABLISHED_WITHIN_S = 2.0  # there is nothing to wait for: what must not come is looked for after others would have
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@check(96, "default, prune and generation")
async def check_096(ctx: Context) -> Any:
    body = widget(
        "one", bogus={"a": 1}, free={"any": [1, {"b": None}]}, parts=[{"name": "p", "junk": 1}], port="http", limits={}
    )
    made = await ctx.admin.post(ctx.widgets(), {**body, "extra": 1}, fieldValidation="Ignore")
    ctx.remove_later(f"/apis/{GROUP}/v1/realms/{ctx.name('r')}")
    return {
        "created": made.plain(),
        "read": (await ctx.admin.get(ctx.widgets("one"))).plain(),
        "changed": (await ctx.admin.patch(ctx.widgets("one"), {"spec": {"size": 5, "color": None}})).plain(),
        "relabelled": (await ctx.admin.patch(ctx.widgets("one"), {"metadata": {"labels": {"a": "b"}}})).plain(),
        "cluster-wide": (
            await ctx.admin.post(
                f"/apis/{GROUP}/v1/realms", {"apiVersion": f"{GROUP}/v1", "kind": "Realm", "metadata": {"name": ctx.name("r")}}
            )
        ).plain(),
    }


@check(97, "status is dropped on create")
async def check_097(ctx: Context) -> Any:
    return (await ctx.admin.post(ctx.widgets(), widget("one", status={"phase": "Up"}))).plain()


@check(98, "causes of a schema error")
async def check_098(ctx: Context) -> Any:
    wrong = widget("one", size=99, replicas=-1, color="pink", nickname="UPPER case long", settings=dict.fromkeys("abcd", "1"))
    missing = widget("one")
    del missing["spec"]["size"]
    return {
        "several": (await ctx.admin.post(ctx.widgets(), wrong)).plain(),
        "one": (await ctx.admin.post(ctx.widgets(), widget("one", size=11))).plain(),
        "replicas": (await ctx.admin.post(ctx.widgets(), widget("one", replicas=-1))).plain(),
        "required": (await ctx.admin.post(ctx.widgets(), missing)).plain(),
        "many items": (await ctx.admin.post(ctx.widgets(), widget("one", tags=list("abcdefghijkl")))).plain(),
        "in an item": (await ctx.admin.post(ctx.widgets(), widget("one", parts=[{"count": 1}]))).plain(),
        "no spec": (
            await ctx.admin.post(ctx.widgets(), {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "bare"}})
        ).plain(),
    }


@check(99, "type error")
async def check_099(ctx: Context) -> Any:
    specs: dict[str, dict[str, Any]] = {
        "integer": {"size": "three"},
        "fraction": {"size": 1.5},
        "string": {"nickname": 5},
        "object": {"limits": []},
        "array": {"steps": "x"},
        "items": {"steps": [1, None]},
        "int or string": {"port": True},
        "null": {"size": None},
        "nullable": {"note": None},
        "values": {"settings": {"a": 1}},
        "huge": {"size": 10**30},
        "wide": {"replicas": 3_000_000_000},
    }
    told: dict[str, Any] = {
        name: (await ctx.admin.post(ctx.widgets(), widget("one", **spec))).plain() for name, spec in specs.items()
    }
    told["spec is text"] = (await ctx.admin.post(ctx.widgets(), {**widget("one"), "spec": "text"})).plain()
    told["metadata"] = (await ctx.admin.post(ctx.widgets(), {**widget("one"), "metadata": {"name": "x", "labels": 5}})).plain()
    return told


@check(100, "text of an object rule")
async def check_100(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("frozen", frozen="ice"))
    return {
        "message expression": (await ctx.admin.post(ctx.widgets(), widget("one", size=2, replicas=3))).plain(),
        "reason": (await ctx.admin.post(ctx.widgets(), widget("one", size=1, nickname="joe"))).plain(),
        "field path": (await ctx.admin.post(ctx.widgets(), widget("one", limits={"low": 5, "high": 1}))).plain(),
        "transition": (await ctx.admin.patch(ctx.widgets("frozen"), {"spec": {"frozen": "water"}})).plain(),
        "transition from nothing": (await ctx.admin.patch(ctx.widgets("frozen"), {"spec": {"frozen": None}})).plain(),
        "no such key": (await ctx.admin.post(ctx.widgets(), widget("two", limits={"low": 1}))).plain(),
    }


@check(101, "text of a field rule")
async def check_101(ctx: Context) -> Any:
    return (await ctx.admin.post(ctx.widgets(), widget("one", nickname="bad"))).plain()


@check(102, "duplicates in list-maps and sets")
async def check_102(ctx: Context) -> Any:
    return {
        "map": (
            await ctx.admin.post(ctx.widgets(), widget("one", parts=[{"name": "a"}, {"name": "b"}, {"name": "a"}]))
        ).plain(),
        "set": (await ctx.admin.post(ctx.widgets(), widget("one", tags=["x", "y", "x", "x"]))).plain(),
        "keyless": (await ctx.admin.post(ctx.widgets(), widget("one", parts=[{"grade": "a"}, {"grade": "b"}]))).plain(),
    }


@check(103, "/status leaves spec and labels alone")
async def check_103(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("one"))
    path = ctx.widgets("one", "status")
    change = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/x"]}}
    everything = {**change, "spec": {"size": 9}, "status": {"phase": "Up", "bogus": 1}}
    return {
        "patch": (await ctx.admin.patch(path, everything)).plain(),
        "get": (await ctx.admin.get(path)).plain(),
        "bad": (await ctx.admin.patch(path, {"status": {"conditions": [{"type": "A"}]}})).plain(),
        "put": (
            await ctx.admin.put(path, {**(await ctx.admin.get(path)).body, "spec": {"size": 8}, "status": {"phase": "Down"}})
        ).plain(),
        "no status": (await ctx.admin.patch(path, {"status": None})).plain(),
        "post": (await ctx.admin.post(path, widget("one"))).plain(),
    }


@check(104, "a spec write ignores status")
async def check_104(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("one"))
    must(await ctx.admin.patch(ctx.widgets("one", "status"), {"status": {"phase": "Up"}}))
    both = await ctx.admin.patch(ctx.widgets("one"), {"spec": {"size": 4}, "status": {"phase": "Down"}})
    return [both.plain(), (await ctx.admin.patch(ctx.widgets("one"), {"status": {"phase": "Down"}})).plain()]


@check(105, "scale: get, put and validation")
async def check_105(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("one", size=5))
    path = ctx.widgets("one", "scale")
    must(await ctx.admin.patch(ctx.widgets("one", "status"), {"status": {"replicas": 1, "selector": "a=b"}}))
    got = await ctx.admin.get(path)
    put = await ctx.admin.put(path, {**got.body, "spec": {"replicas": 3}})
    return {
        "get": got.plain(),
        "put": put.plain(),
        "object": (await ctx.admin.get(ctx.widgets("one"))).plain(),
        "stale": (await ctx.admin.put(path, {**got.body, "spec": {"replicas": 2}})).plain(),
        "patch": (await ctx.admin.patch(path, {"spec": {"replicas": 4}})).plain(),
        "to 0": (await ctx.admin.patch(path, {"spec": {"replicas": 0}})).plain(),
        "negative": (await ctx.admin.patch(path, {"spec": {"replicas": -1}})).plain(),
        "rule": (await ctx.admin.patch(path, {"spec": {"replicas": 9}})).plain(),
        "wrong type": (await ctx.admin.patch(path, {"spec": {"replicas": "x"}})).plain(),
        "wrong kind": (await ctx.admin.put(path, widget("one"))).plain(),
    }


@check(106, "PUT without a revision is 422")
async def check_106(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("one"))
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one"}, "spec": {}}
    leases = ctx.path("leases", group="coordination.k8s.io/v1")
    await ctx.make(leases, lease)
    return {
        "custom": (await ctx.admin.put(ctx.widgets("one"), widget("one", size=4))).plain(),
        "status": (await ctx.admin.put(ctx.widgets("one", "status"), widget("one", status={"phase": "Up"}))).plain(),
        "lease": (await ctx.admin.put(f"{leases}/one", {**lease, "spec": {"holderIdentity": "me"}})).plain(),
    }


@check(107, "printer columns with priority")
async def check_107(ctx: Context) -> Any:
    await ctx.make(ctx.widgets(), widget("full", parts=[{"name": "p"}, {"name": "q"}]))
    await ctx.make(ctx.widgets(), widget("plain"))
    must(
        await ctx.admin.patch(ctx.widgets("full", "status"), {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    )
    gadget = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "one"}}
    gadgets = ctx.path("gadgets", group=f"{GROUP}/v1")
    await ctx.make(gadgets, gadget)
    return {
        "list": (await ctx.admin.get(ctx.widgets(), accept=TABLE)).plain(),
        "one": (await ctx.admin.get(ctx.widgets("plain"), accept=TABLE)).plain(),
        "without columns": (await ctx.admin.get(gadgets, accept=TABLE)).plain(),
        "scale": (await ctx.admin.get(ctx.widgets("plain", "scale"), accept=TABLE)).plain(),
        "definition": (await ctx.admin.get(f"{CRDS}/widgets.{GROUP}", accept=TABLE, includeObject="None")).plain(),
    }


@check(108, "prefix of a strict error")
async def check_108(ctx: Context) -> Any:
    strict = {"fieldValidation": "Strict"}
    body = widget("one", bogus=1, parts=[{"name": "p", "junk": 2}])
    await ctx.make(ctx.widgets(), widget("two"))
    return {
        "unknown": (await ctx.admin.post(ctx.widgets(), {**body, "extra": 1}, **strict)).plain(),
        "metadata": (await ctx.admin.post(ctx.widgets(), widget("one", metadata={"bogus": 1}), **strict)).plain(),
        "patch": (await ctx.admin.patch(ctx.widgets("two"), {"spec": {"bogus": 1}}, **strict)).plain(),
        "apply": (await ctx.admin.apply(ctx.widgets("two"), widget("two", bogus=1), "m1", **strict)).refusal(),
        "doubled": (
            await ctx.admin.call(
                "POST",
                ctx.widgets(),
                f'{{"apiVersion":"{GROUP}/v1","kind":"Widget","metadata":{{"name":"x"}},"spec":{{"size":1,"size":2}}}}'.encode(),
                query=strict,
            )
        ).plain(),
    }


@check(109, "selectableFields")
async def check_109(ctx: Context) -> Any:
    for name, color, size in (("a", "red", 3), ("b", "blue", 3), ("c", "blue", 4)):
        await ctx.make(ctx.widgets(), widget(name, color=color, size=size))
    selectors = ("spec.color=blue", "spec.color!=blue", "spec.size=3", "spec.color=blue,spec.size=4", "spec.nickname=x")
    return {one: names((await ctx.admin.get(ctx.widgets(), fieldSelector=one)).body) for one in selectors}


@check(110, "conditions and storedVersions of a CRD")
async def check_110(ctx: Context) -> Any:
    group = f"{ctx.tag}.conformance.applecart.dev"
    crd = definition("gizmos", "Gizmo", [version("v1", SIZE_ONLY)], group=group, shortNames=["gz"])
    del crd["spec"]["names"]["listKind"]
    del crd["spec"]["names"]["singular"]
    created = await ctx.admin.post(CRDS, crd)
    ctx.remove_later(f"{CRDS}/gizmos.{group}")
    await ctx.until_served(ctx.path("gizmos", group=f"{group}/v1"))
    read = (await ctx.admin.get(f"{CRDS}/gizmos.{group}")).body
    read["status"]["conditions"].sort(key=lambda found: found["type"])
    del read["metadata"]["resourceVersion"]  # in how many writes a server establishes it is its own affair
    bad_name = {**crd, "metadata": {"name": "wrong"}}
    no_storage = definition("gizmos", "Gizmo", [version("v1", SIZE_ONLY, storage=False)], group=f"x{group}")
    no_schema = definition("gizmos", "Gizmo", [{"name": "v1", "served": True, "storage": True}], group=f"y{group}")
    untyped = definition("gizmos", "Gizmo", [version("v1", {"spec": {"properties": {}}})], group=f"z{group}")
    rule = {"type": "string", "x-kubernetes-validations": [{"rule": "self.nothing("}]}
    bad_rule = definition("gizmos", "Gizmo", [version("v1", {"a": rule})], group=f"w{group}")
    return {
        "created": {
            **created.plain(),
            "body": {**created.body, "status": created.body.get("status", {}).get("storedVersions")},
        },
        "read": {key: read[key] for key in ("metadata", "spec")} | {"status": read["status"]},
        "bad name": (await ctx.admin.post(CRDS, bad_name)).plain(),
        "no storage": (await ctx.admin.post(CRDS, no_storage)).plain(),
        "no schema": (await ctx.admin.post(CRDS, no_schema)).plain(),
        "untyped": (await ctx.admin.post(CRDS, untyped)).plain(),
        "bad rule": (await ctx.admin.post(CRDS, bad_rule)).plain(),
    }


@check(111, "null becomes the default")
async def check_111(ctx: Context) -> Any:
    return {
        "null": (await ctx.admin.post(ctx.widgets(), widget("one", color=None, replicas=None, note=None))).plain(),
        "in an item": (await ctx.admin.post(ctx.widgets(), widget("two", parts=[{"name": "p", "count": None}]))).plain(),
        "without default": (await ctx.admin.post(ctx.widgets(), widget("three", nickname=None))).plain(),
        "object": (await ctx.admin.post(ctx.widgets(), widget("four", limits=None))).plain(),
    }


@check(141, "a definition in a group of the server serves nothing and takes nothing along", alone=True)
async def check_141(ctx: Context) -> Any:
    """Whether it is stored is not compared: the real server takes it, ours refuses it (`accepted.py`)."""
    group, held = "node.k8s.io", f"/apis/node.k8s.io/v1/runtimeclasses/{ctx.name('held')}"
    approved = {"api-approved.kubernetes.io": "unapproved, a test"}
    must(await ctx.admin.post("/apis/node.k8s.io/v1/runtimeclasses", _runtime_class(ctx.name("held"))))
    ctx.remove_later(held)
    for plural, kind, served in (("runtimeclasses", "RuntimeClass", "v1"), ("extras", "Extra", "v1"), ("later", "Later", "v9")):
        crd = definition(plural, kind, [version(served, SIZE_ONLY)], group=group)
        crd["metadata"]["annotations"] = approved
        made = await ctx.admin.post(CRDS, crd)
        assert made.status in (201, 422), made.plain()
        ctx.remove_later(f"{CRDS}/{plural}.{group}")
    await asyncio.sleep(ESTABLISHED_WITHIN_S)
    told = {path: (await ctx.admin.get(f"/apis/{group}/{path}")).plain() for path in ("v1/extras", "v9/later", "v9")}
    await ctx.admin.delete(f"{CRDS}/runtimeclasses.{group}")
    await asyncio.sleep(ESTABLISHED_WITHIN_S)
    return {**told, "still there": (await ctx.admin.get(held)).plain()}


def _runtime_class(name: str) -> dict[str, Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h"}
