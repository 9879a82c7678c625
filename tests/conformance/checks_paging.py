"""Checks 38 to 44 and 49: pages, and lists of a chosen revision."""

from typing import Any

from tests.conformance.checks import check
from tests.conformance.checks_read import names
from tests.conformance.context import Context
from tests.conformance.kinds import config_map, widget
from tests.conformance.servers import COMPACT

FUTURE = "99999999"  # no server of a test gets that far


async def make_config_maps(ctx: Context, *wanted: str) -> list[str]:
    """Their revisions."""
    made = [await ctx.make(ctx.path("configmaps"), config_map(name, labels={"a": "b"})) for name in wanted]
    return [str(one["metadata"]["resourceVersion"]) for one in made]


@check(38, "paging with a selector has no remainingItemCount")
async def check_038(ctx: Context) -> Any:
    await make_config_maps(ctx, "a", "b", "c")
    path = ctx.path("configmaps")
    return {
        "plain": (await ctx.admin.get(path, limit=2)).plain(),
        "labels": (await ctx.admin.get(path, limit=2, labelSelector="a=b")).plain(),
        "fields": (await ctx.admin.get(path, limit=2, fieldSelector="metadata.name!=x")).plain(),
        "exactly all": (await ctx.admin.get(path, limit=3)).plain(),
        "zero": (await ctx.admin.get(path, limit=0)).plain(),
        "negative": (await ctx.admin.get(path, limit=-1)).plain(),
        "nonsense": (await ctx.admin.get(path, limit="x")).plain(),
    }


@check(39, "both pages share a revision")
async def check_039(ctx: Context) -> Any:
    told = {}
    await make_config_maps(ctx, "a", "b", "c")
    for name in ("a", "b", "c"):
        await ctx.make(ctx.widgets(), widget(name))
    for kind, path in (("built-in", ctx.path("configmaps")), ("custom", ctx.widgets())):
        first = (await ctx.admin.get(path, limit=2)).body
        token = first["metadata"]["continue"]
        # Neither a deletion nor an addition between the pages shows.
        await ctx.admin.delete(f"{path}/c")
        await ctx.make(path, config_map("d") if kind == "built-in" else widget("d"))
        second = (await ctx.admin.get(path, limit=2, continue_=token)).body
        told[kind] = {
            "names": [names(first), names(second)],
            "remaining": [page["metadata"].get("remainingItemCount") for page in (first, second)],
            "same": first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"],
            "metadata": sorted(second["metadata"]),
            "now": names((await ctx.admin.get(path)).body),
        }
    bad = ctx.path("configmaps")
    token = (await ctx.admin.get(bad, limit=1)).body["metadata"]["continue"]
    return {
        **told,
        "nonsense": (await ctx.admin.get(bad, limit=1, continue_="nonsense")).plain(),
        "with a revision": (await ctx.admin.get(bad, limit=1, resourceVersion="1", continue_=token)).plain(),
        "with revision 0": (await ctx.admin.get(bad, limit=1, resourceVersion="0", continue_=token)).plain(body=False),
    }


@check(40, "revision 0 ignores limit")
async def check_040(ctx: Context) -> Any:
    await make_config_maps(ctx, "a", "b", "c")
    path = ctx.path("configmaps")
    await ctx.admin.get(path)  # the cache of a real server has seen them after this
    answer = await ctx.admin.get(path, limit=1, resourceVersion="0")
    match = await ctx.admin.get(path, limit=1, resourceVersion="0", resourceVersionMatch="NotOlderThan")
    return {"plain": answer.plain(), "not older": names(match.body), "continue": "continue" in match.body["metadata"]}


@check(41, "resourceVersionMatch without resourceVersion is 422")
async def check_041(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await make_config_maps(ctx, "a", "b")
    token = (await ctx.admin.get(path, limit=1)).body["metadata"]["continue"]
    queries: dict[str, dict[str, Any]] = {
        "alone": {"resourceVersionMatch": "Exact"},
        "not older alone": {"resourceVersionMatch": "NotOlderThan"},
        "exact 0": {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        "unknown": {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
        "with a token": {"resourceVersionMatch": "Exact", "resourceVersion": "1", "continue": token, "limit": "1"},
        "initial events": {"sendInitialEvents": "true"},
    }
    told = {name: (await ctx.admin.get(path, **query)).plain() for name, query in queries.items()}
    told["custom"] = (await ctx.admin.get(ctx.widgets(), resourceVersionMatch="Exact")).plain()
    return told


@check(42, "a future revision has cause ResourceVersionTooLarge")
async def check_042(ctx: Context) -> Any:
    await make_config_maps(ctx, "a")
    path = ctx.path("configmaps")
    return {
        "list": (await ctx.admin.get(path, resourceVersion=FUTURE)).plain(),
        "one": (await ctx.admin.get(f"{path}/a", resourceVersion=FUTURE)).plain(),
        "exact": (await ctx.admin.get(path, resourceVersion=FUTURE, resourceVersionMatch="Exact")).plain(),
    }


@check(43, "a bad revision is 400")
async def check_043(ctx: Context) -> Any:
    await make_config_maps(ctx, "a")
    path = ctx.path("configmaps")
    told: dict[str, Any] = {one: (await ctx.admin.get(path, resourceVersion=one)).plain() for one in ("abc", "-1", "1.5")}
    told["one"] = (await ctx.admin.get(f"{path}/a", resourceVersion="abc")).refusal()
    told["custom"] = (await ctx.admin.get(ctx.widgets(), resourceVersion="abc")).plain()
    told["watch"] = (await ctx.admin.get(path, watch="true", resourceVersion="abc")).refusal()
    return told


@check(44, "an exact old revision returns the old list", needs=(COMPACT,), alone=True)
async def check_044(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    first, _ = await make_config_maps(ctx, "a", "b")
    await ctx.admin.patch(f"{path}/a", {"data": {"new": "yes"}})
    exact: dict[str, Any] = {"resourceVersion": first, "resourceVersionMatch": "Exact"}
    old = await ctx.admin.get(path, **exact)
    newer = await ctx.admin.get(path, resourceVersion=first, resourceVersionMatch="NotOlderThan")
    told = {
        "old": old.plain(),
        "of that revision": old.body["metadata"].get("resourceVersion") == first,
        "not older": names(newer.body),
    }
    await ctx.server.compact()
    return {**told, "forgotten": (await ctx.admin.get(path, **exact)).plain()}


@check(49, "an expired continue is 410 with a new token", needs=(COMPACT,), alone=True)
async def check_049(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    await make_config_maps(ctx, "a", "b", "c")
    first = (await ctx.admin.get(path, limit=1)).body
    await ctx.admin.delete(f"{path}/c")
    await ctx.make(path, config_map("d"))
    await ctx.server.compact()
    expired = await ctx.admin.get(path, limit=1, continue_=first["metadata"]["continue"])
    token = expired.body["metadata"].get("continue", "")
    rest = await ctx.admin.get(path, limit=10, continue_=token)
    return {"first": names(first), "expired": expired.plain(), "rest": rest.plain()}
