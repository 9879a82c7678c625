"""Checks 112 and 113: kinds that change under their objects, and kinds with two served versions."""

import asyncio
from typing import Any

from tests.conformance.checks import check
from tests.conformance.context import LOOK_EVERY_S, SERVED_WITHIN_S, Context, must
from tests.conformance.kinds import GROUP, SIZE_ONLY, definition, version

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def loose(tight: bool) -> dict[str, Any]:
    """A schema, and the same one after somebody tightened it."""
    name = {"type": "string", **({"maxLength": 3} if tight else {})}
    amount = {"type": "integer", **({"maximum": 5} if tight else {})}
    rules = [{"rule": "self.amount < 100", "message": "too much"}] if tight else []
    items = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}, "name": name}}
    properties = {
        "name": name,
        "amount": amount,
        "entries": {
            "type": "array",
            "items": items,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key"],
        },
        "other": {"type": "string"},
    }
    spec = {"type": "object", "properties": properties, **({"x-kubernetes-validations": rules} if rules else {})}
    return {"spec": spec}


@check(112, "unchanged invalid values are tolerated on update")
async def check_112(ctx: Context) -> Any:
    group = f"{ctx.tag}.conformance.applecart.dev"
    crd = await ctx.make_cluster_wide(CRDS, definition("gizmos", "Gizmo", [version("v1", loose(False))], group=group))
    path = ctx.path("gizmos", group=f"{group}/v1")
    await ctx.until_served(path)
    spec = {"name": "too long", "amount": 200, "entries": [{"key": "a", "name": "long one"}], "other": "x"}
    body = {"apiVersion": f"{group}/v1", "kind": "Gizmo", "metadata": {"name": "one"}, "spec": spec}
    await ctx.make(path, body)
    tight = definition("gizmos", "Gizmo", [version("v1", loose(True))], group=group)["spec"]
    must(await ctx.admin.patch(f"{CRDS}/{crd['metadata']['name']}", {"spec": tight}))
    # A new schema holds when it refuses what the old one took.
    async with asyncio.timeout(SERVED_WITHIN_S):
        probe = body | {"metadata": {"name": "probe"}}
        while (await ctx.admin.post(path, probe, dryRun="All")).status != 422:  # noqa: ASYNC110 (another process)
            await asyncio.sleep(LOOK_EVERY_S)
    await ctx.until_served(path)
    one = f"{path}/one"

    async def patched(change: dict[str, Any]) -> dict[str, Any]:
        # A list makes the cache of a real server current; judged against a stale object a patch would warn of its past.
        must(await ctx.admin.get(path))
        return (await ctx.admin.patch(one, change)).plain()

    return {
        "new object": (await ctx.admin.post(path, body | {"metadata": {"name": "two"}})).plain(),
        "labels": await patched({"metadata": {"labels": {"a": "b"}}}),
        "other field": await patched({"spec": {"other": "y"}}),
        "invalid to invalid": await patched({"spec": {"name": "other long"}}),
        "item added": await patched({"spec": {"entries": [{"key": "b", "name": "ok"}, {"key": "a", "name": "long one"}]}}),
        "item changed": await patched({"spec": {"entries": [{"key": "a", "name": "long two"}]}}),
        "valid": await patched({"spec": {"name": "ok", "amount": 1}}),
        "back": await patched({"spec": {"name": "too long"}}),
    }


@check(113, "two served versions")
async def check_113(ctx: Context) -> Any:
    old, new = (ctx.path("gadgets", group=f"{GROUP}/{name}") for name in ("v1alpha1", "v1"))

    def gadget(apiversion: str, name: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": f"{GROUP}/{apiversion}", "kind": "Gadget", "metadata": {"name": name}, "spec": spec}

    told: dict[str, Any] = {
        "old": (await ctx.admin.post(old, gadget("v1alpha1", "one", size=1, extra=2))).plain(),
        "old as new": (await ctx.admin.get(f"{new}/one")).plain(),
        "old again": (await ctx.admin.get(f"{old}/one")).plain(),
        "new": (await ctx.admin.post(new, gadget("v1", "two", size=1, extra=2))).plain(),
        "new list as old": (await ctx.admin.get(old)).plain(),
        "wrong version": (await ctx.admin.post(new, gadget("v1alpha1", "three"))).plain(),
        "patched by the other": (await ctx.admin.patch(f"{old}/two", {"spec": {"old": "x"}})).plain(),
        "group": (await ctx.admin.get(f"/apis/{GROUP}")).plain(),
    }
    async with ctx.admin.watch(old, resourceVersion="0") as watch:
        events = sorted(await watch.take(2), key=lambda event: str(event["object"]["metadata"]["name"]))
        told["watch"] = [(event["type"], event["object"]["apiVersion"]) for event in events]
    group = f"{ctx.tag}.conformance.applecart.dev"
    both = [version("v1", SIZE_ONLY), version("v2", SIZE_ONLY, storage=False)]
    name = (await ctx.make_cluster_wide(CRDS, definition("gizmos", "Gizmo", both, group=group)))["metadata"]["name"]
    await ctx.until_served(ctx.path("gizmos", group=f"{group}/v2"))
    swapped = [version("v1", SIZE_ONLY, storage=False), version("v2", SIZE_ONLY)]
    moved = must(await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"versions": swapped}}))
    told["stored versions"] = moved["status"]["storedVersions"]
    told["one dropped"] = (await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"versions": [swapped[1]]}})).plain()
    return told
