"""Checks 114 to 122: what a watch tells, and how it is asked."""

from typing import Any

from tests.conformance.caller import TABLE
from tests.conformance.checks import check
from tests.conformance.checks_read import PARTIAL
from tests.conformance.context import Context, must
from tests.conformance.kinds import GROUP, config_map, widget

ANCIENT = "1"  # older than anything that a running server remembers


async def current_revision(ctx: Context, path: str) -> str:
    return str(must(await ctx.admin.get(path))["metadata"]["resourceVersion"])


@check(114, "from a revision: MODIFIED, DELETED, rising revisions")
async def check_114(ctx: Context) -> Any:
    told = {}
    for path, body in ((ctx.path("configmaps"), config_map("one", {"a": "1"})), (ctx.widgets(), widget("one"))):
        made = await ctx.make(path, body)
        must(await ctx.admin.patch(f"{path}/one", {"metadata": {"labels": {"n": "1"}}}))
        async with ctx.admin.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
            # One change before the watch began and two after; the same labels again are no event.
            must(await ctx.admin.patch(f"{path}/one", {"metadata": {"labels": {"n": "1"}}}))
            must(await ctx.admin.patch(f"{path}/one", {"metadata": {"labels": {"n": "2"}}}))
            must(await ctx.admin.delete(f"{path}/one"))
            await ctx.make(path, body)
            events = await watch.take(4)
        told[body["kind"]] = {"type": watch.content_type, "events": events}
    return told


@check(115, "revision 0 and none: ADDED")
async def check_115(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await ctx.make(path, config_map("a"))
    await ctx.make(path, config_map("b"))
    told = {}
    for name, query in (("zero", {"resourceVersion": "0"}), ("none", {}), ("empty", {"resourceVersion": ""})):
        async with ctx.admin.watch(path, **query) as watch:
            told[name] = sorted(await watch.take(2), key=lambda event: str(event["object"]["metadata"]["name"]))
            must(await ctx.admin.patch(f"{path}/a", {"data": {name: "1"}}))
            told[f"then {name}"] = [event["type"] for event in await watch.take(1)]
    return told


@check(116, "410 is an ERROR event")
async def check_116(ctx: Context) -> Any:
    # Of kinds that came after the first revision: a fresh real server remembers everything of those that it began with.
    told = {}
    await ctx.make(ctx.widgets(), widget("one"))
    for path in (ctx.widgets(), f"/apis/{GROUP}/v1/widgets", f"/apis/{GROUP}/v1/realms"):
        must(await ctx.admin.get(path))
        async with ctx.admin.watch(path, resourceVersion=ANCIENT) as watch:
            events = await watch.drain()
        told[path] = {"status": watch.status, "type": watch.content_type, "events": events}
    return told


@check(117, "leaving a selector is DELETED with the old labels")
async def check_117(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    revision = await current_revision(ctx, path)
    async with ctx.admin.watch(path, resourceVersion=revision, labelSelector="in=yes") as watch:
        await ctx.make(path, config_map("one", {"a": "1"}))
        labels: tuple[dict[str, Any], ...] = ({"in": "yes"}, {"more": "1"}, {"in": "no"}, {"in": None}, {"in": "yes"})
        for change in labels:
            must(await ctx.admin.patch(f"{path}/one", {"metadata": {"labels": change}, "data": {"n": str(change)}}))
        must(await ctx.admin.delete(f"{path}/one"))
        by_label = await watch.take(5)
    revision = await current_revision(ctx, ctx.widgets())
    async with ctx.admin.watch(ctx.widgets(), resourceVersion=revision, fieldSelector="spec.color=blue") as watch:
        await ctx.make(ctx.widgets(), widget("one"))
        for color in ("blue", "red", "green", "blue"):
            must(await ctx.admin.patch(ctx.widgets("one"), {"spec": {"color": color}}))
        by_field = await watch.take(3)
    return {"labels": by_label, "fields": by_field}


@check(118, "timeoutSeconds ends the watch cleanly")
async def check_118(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await ctx.make(path, config_map("one"))
    async with ctx.admin.watch(path, timeoutSeconds="1") as watch:
        events = await watch.drain()
    bad = await ctx.admin.get(path, watch="true", timeoutSeconds="x")
    spelled = {}
    for spelling in ("1", "True", "yes", ""):
        async with ctx.admin.watch(path, timeoutSeconds="1", watch=spelling) as watch:
            spelled[spelling] = [event["type"] for event in await watch.take(1)]
    plain = {no: (await ctx.admin.get(path, watch=no)).body["kind"] for no in ("0", "false", "False")}
    return {"events": events, "bad": bad.plain(), "spelled": spelled, "no watch": plain}


@check(119, "watching one object by its path is a plain GET")
async def check_119(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.widgets(), widget("one"))
    told = [(await ctx.admin.get(path, watch="1")).plain() for path in (ctx.path("configmaps", "one"), ctx.widgets("one"))]
    async with ctx.admin.watch(ctx.path("configmaps"), fieldSelector="metadata.name=one") as watch:
        told.append({"by selector": await watch.take(1)})
    return told


@check(120, "a Table watch tells its columns once")
async def check_120(ctx: Context) -> Any:
    told: dict[str, Any] = {}
    for path, body in ((ctx.path("configmaps"), config_map("one")), (ctx.widgets(), widget("one"))):
        await ctx.make(path, body)
        async with ctx.admin.watch(path, accept=TABLE, resourceVersion="0") as watch:
            first = await watch.take(1)
            must(await ctx.admin.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}}))
            must(await ctx.admin.delete(f"{path}/one"))
            told[body["kind"]] = {"type": watch.content_type, "events": [*first, *await watch.take(2)]}
    await ctx.make(ctx.path("configmaps"), config_map("two"))
    async with ctx.admin.watch(ctx.path("configmaps"), accept=PARTIAL, resourceVersion="0") as watch:
        told["metadata"] = {"type": watch.content_type, "events": await watch.take(1)}
    async with ctx.admin.watch(ctx.path("configmaps"), accept="application/xml") as watch:
        told["xml"] = watch.refused.plain() if watch.refused else watch.status
    return told


@check(121, "resourceVersionMatch on a watch is 422")
async def check_121(ctx: Context) -> Any:
    queries: dict[str, dict[str, str]] = {
        "match": {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        "exact": {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
        "initial without match": {"sendInitialEvents": "true"},
        "initial exact": {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
        "no initial without match": {"sendInitialEvents": "false"},
        "continue": {"continue": "x"},
        "limit": {"limit": "1"},
        "bad selector": {"labelSelector": "a in ("},
        "bad field": {"fieldSelector": "spec.bogus=1"},
    }
    told: dict[str, Any] = {}
    for name, query in queries.items():
        async with ctx.admin.watch(ctx.path("configmaps"), timeoutSeconds="1", **query) as watch:
            told[name] = watch.refused.plain() if watch.refused else {"status": watch.status}
    async with ctx.admin.watch(ctx.widgets(), resourceVersionMatch="NotOlderThan", resourceVersion="1") as watch:
        told["custom"] = watch.refused.plain() if watch.refused else {"status": watch.status}
    return told


@check(122, "DELETED has a newer revision")
async def check_122(ctx: Context) -> Any:
    told = {}
    for path, body in (
        (ctx.path("configmaps"), config_map("one", finalizers=["example.com/x"])),
        (ctx.widgets(), widget("one")),
    ):
        made = await ctx.make(path, body)
        async with ctx.admin.watch(path, resourceVersion=made["metadata"]["resourceVersion"]) as watch:
            held = "finalizers" in body["metadata"]
            must(await ctx.admin.delete(f"{path}/one"))
            if held:
                must(await ctx.admin.patch(f"{path}/one", {"metadata": {"finalizers": None}}))
            told[body["kind"]] = [made, *await watch.take(2 if held else 1)]
    return told
