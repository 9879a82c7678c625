"""Checks 93 to 95: what becomes of dependents, of a namespace's content and of the objects of a kind that is removed.

The first two need controllers beside the API: kube-controller-manager on the real side, applecart's own on the embedded one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.conformance.checks import check
from tests.conformance.checks_delete import options
from tests.conformance.context import LOOK_EVERY_S, Context, must
from tests.conformance.kinds import SIZE_ONLY, config_map, definition, pod, version, widget
from tests.conformance.servers import CONTROLLERS

SETTLED_WITHIN_S = 60.0  # controllers look again after failures; a busy machine needs its time
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def eventually(holds: Callable[[], Awaitable[bool]]) -> bool:
    try:
        async with asyncio.timeout(SETTLED_WITHIN_S):
            while not await holds():  # noqa: ASYNC110 (another process, nothing to wait on)
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        return False
    return True


async def is_gone(ctx: Context, path: str) -> bool:
    return (await ctx.admin.get(path)).status == 404


def unordered(document: Any) -> Any:
    """Without its revision: controllers work side by side, and which of them writes first means nothing."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    return {**document, "metadata": metadata}


def owner_of(document: Any, *, blocks: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": document["metadata"]["name"],
        "uid": document["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
        "controller": True,
    }


@check(93, "orphan, foreground and background collection", needs=(CONTROLLERS,))
async def check_093(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    told: dict[str, Any] = {}
    for policy in ("Orphan", "Foreground", "Background"):
        name = policy.lower()
        owner = await ctx.make(ctx.widgets(), widget(name))
        child = f"{path}/{name}-child"
        await ctx.make(path, config_map(f"{name}-child", ownerReferences=[owner_of(owner)]))
        held = f"{path}/{name}-held"
        await ctx.make(path, config_map(f"{name}-held", finalizers=["example.com/x"], ownerReferences=[owner_of(owner)]))
        deleted = await ctx.admin.delete(ctx.widgets(name), options(propagationPolicy=policy))
        outcome: dict[str, Any] = {"reply": deleted.plain()}
        if policy == "Orphan":
            outcome["owner gone"] = await eventually(lambda name=name: is_gone(ctx, ctx.widgets(name)))  # type: ignore[misc]
            outcome["children"] = [unordered((await ctx.admin.get(one)).body) for one in (child, held)]
        else:
            outcome["child gone"] = await eventually(lambda child=child: is_gone(ctx, child))  # type: ignore[misc]

            async def is_deleting(held: str = held) -> bool:
                return "deletionTimestamp" in (await ctx.admin.get(held)).body["metadata"]

            outcome["held is deleting"] = await eventually(is_deleting)
            outcome["owner while held"] = (await ctx.admin.get(ctx.widgets(name))).status
            must(await ctx.admin.patch(held, {"metadata": {"finalizers": None}}))
            outcome["held gone"] = await eventually(lambda held=held: is_gone(ctx, held))  # type: ignore[misc]
            outcome["owner gone"] = await eventually(lambda name=name: is_gone(ctx, ctx.widgets(name)))  # type: ignore[misc]
        told[policy] = outcome
    one, two = [await ctx.make(path, config_map(name)) for name in ("first", "second")]
    refs = [owner_of(one), {**owner_of(two), "controller": False}]
    await ctx.make(path, config_map("shared", ownerReferences=refs))
    must(await ctx.admin.delete(f"{path}/first"))

    async def has_one_owner() -> bool:
        return len((await ctx.admin.get(f"{path}/shared")).body["metadata"]["ownerReferences"]) == 1

    told["one of two owners"] = [await eventually(has_one_owner), unordered((await ctx.admin.get(f"{path}/shared")).body)]
    stranger = {**owner_of(one), "uid": "11111111-2222-3333-4444-555555555555", "name": "never"}
    await ctx.make(path, config_map("lost", ownerReferences=[stranger]))
    told["owner that never was"] = await eventually(lambda: is_gone(ctx, f"{path}/lost"))
    return told


@check(94, "namespace cascade", needs=(CONTROLLERS,))
async def check_094(ctx: Context) -> Any:
    namespace = f"/api/v1/namespaces/{ctx.namespace}"
    objects = [ctx.path("configmaps", "one"), ctx.widgets("one"), ctx.path("pods", "one")]

    async def has_its_account() -> bool:
        return (await ctx.admin.get(ctx.path("serviceaccounts", "default"))).status == 200

    async def has_its_authority() -> bool:
        return (await ctx.admin.get(ctx.path("configmaps", "kube-root-ca.crt"))).status == 200

    given = [await eventually(has_its_account), await eventually(has_its_authority)]
    authority = (await ctx.admin.get(ctx.path("configmaps", "kube-root-ca.crt"))).body
    account = (await ctx.admin.get(ctx.path("serviceaccounts", "default"))).body
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.widgets(), widget("one"))
    await ctx.make(ctx.path("pods"), pod("one"))
    await ctx.make(ctx.path("configmaps"), config_map("held", finalizers=["example.com/x"]))
    deleted = await ctx.admin.delete(namespace)
    emptied = [await eventually(lambda one=one: is_gone(ctx, one)) for one in objects]  # type: ignore[misc]
    while_held = (await ctx.admin.get(namespace)).body
    refused = await ctx.admin.post(ctx.path("configmaps"), config_map("late"))
    must(await ctx.admin.patch(ctx.path("configmaps", "held"), {"metadata": {"finalizers": None}}))
    return {
        "given": given,
        "authority": {**unordered(authority), "data": sorted(authority["data"])},
        "account": unordered(account),
        "reply": deleted.plain(),
        "emptied": emptied,
        "while held": [while_held["status"]["phase"], while_held["spec"]],
        "refused": refused.plain(),
        "gone": await eventually(lambda: is_gone(ctx, namespace)),
    }


@check(95, "removing a CRD removes its objects and endpoints")
async def check_095(ctx: Context) -> Any:
    group = f"{ctx.tag}.conformance.applecart.dev"
    crd = definition("gizmos", "Gizmo", [version("v1", SIZE_ONLY)], group=group)
    await ctx.make(CRDS, crd)
    path = ctx.path("gizmos", group=f"{group}/v1")
    await ctx.until_served(path)

    def gizmo(name: str, **metadata: Any) -> dict[str, Any]:
        return {"apiVersion": f"{group}/v1", "kind": "Gizmo", "metadata": {"name": name, **metadata}}

    await ctx.make(path, gizmo("plain"))
    await ctx.make(path, gizmo("held", finalizers=["example.com/x"]))
    one = f"{CRDS}/gizmos.{group}"
    deleted = await ctx.admin.delete(one)
    emptied = await eventually(lambda: is_gone(ctx, f"{path}/plain"))

    async def is_terminating() -> bool:
        conditions = (await ctx.admin.get(one)).body["status"]["conditions"]
        return any(found["type"] == "Terminating" and found["status"] == "True" for found in conditions)

    terminating = await eventually(is_terminating)
    while_held = await ctx.admin.get(one)
    # The definition says that it terminates a moment before the endpoint refuses new objects.
    late: list[Any] = []

    async def is_refused() -> bool:
        late.append(await ctx.admin.post(path, gizmo(f"late-{len(late)}")))
        return bool(late[-1].status != 201)

    refused = await eventually(is_refused)
    must(await ctx.admin.patch(f"{path}/held", {"metadata": {"finalizers": None}}))
    gone = await eventually(lambda: is_gone(ctx, one))
    return {
        "reply": deleted.plain(),
        "emptied": emptied,
        "terminating": terminating,
        "finalizers": while_held.body["metadata"]["finalizers"],
        "conditions": sorted(
            ({key: found[key] for key in ("type", "status", "reason")} for found in while_held.body["status"]["conditions"]),
            key=lambda found: str(found["type"]),
        ),
        "late": [refused, late[-1].status, late[-1].body.get("reason")],
        "gone": gone,
        "endpoint gone": await eventually(lambda: is_gone(ctx, path)),
        "group gone": await eventually(lambda: is_gone(ctx, f"/apis/{group}")),
    }
