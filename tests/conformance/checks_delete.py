"""Checks 79 to 92: deletion, finalizers, grace and preconditions."""

from typing import Any

from tests.conformance.caller import MERGE
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, pod, widget

HOLD = ["example.com/hold"]


def options(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **more}


@check(79, "the reply is a Status with the uid")
async def check_079(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.path("configmaps"), config_map("two"))
    await ctx.make(ctx.widgets(), widget("one"))
    return {
        "built-in": (await ctx.admin.delete(ctx.path("configmaps", "one"))).plain(),
        "again": (await ctx.admin.delete(ctx.path("configmaps", "one"))).plain(),
        "custom": (await ctx.admin.delete(ctx.widgets("one"))).plain(),
        "bad options": (
            await ctx.admin.delete(ctx.path("configmaps", "two"), {"kind": "ConfigMap", "apiVersion": "v1"})
        ).plain(),
        "half options": (await ctx.admin.call("DELETE", ctx.path("configmaps", "two"), b'{"kind":')).plain(),
        "empty options": (await ctx.admin.delete(ctx.path("configmaps", "two"), {})).plain(),
    }


@check(80, "a finalizer holds; removing the last one deletes")
async def check_080(ctx: Context) -> Any:
    told = {}
    bodies = (
        (ctx.path("configmaps"), config_map("one", finalizers=[*HOLD, "example.com/two"])),
        (ctx.widgets(), widget("one", metadata={"finalizers": [*HOLD, "example.com/two"]})),
    )
    for path, body in bodies:
        await ctx.make(path, body)
        one = f"{path}/one"
        told[body["kind"]] = [
            (await ctx.admin.delete(one)).plain(),
            (await ctx.admin.delete(one)).plain(),
            (await ctx.admin.patch(one, {"metadata": {"finalizers": HOLD}})).plain(),
            (await ctx.admin.patch(one, {"metadata": {"labels": {"still": "here"}}})).plain(),
            (await ctx.admin.patch(one, {"metadata": {"finalizers": None}})).plain(),
            (await ctx.admin.get(one)).plain(),
        ]
    held = await ctx.make(ctx.path("configmaps"), config_map("put", finalizers=HOLD))
    must(await ctx.admin.delete(ctx.path("configmaps", "put")))
    freed = {**held, "metadata": {key: value for key, value in held["metadata"].items() if key in ("name", "uid")}}
    told["put"] = [
        (await ctx.admin.put(ctx.path("configmaps", "put"), freed)).plain(),
        (await ctx.admin.get(ctx.path("configmaps", "put"))).plain(body=False),
    ]
    return told


@check(81, "adding a finalizer while deleting is 422 and names it")
async def check_081(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", finalizers=HOLD))
    await ctx.make(ctx.widgets(), widget("one", metadata={"finalizers": HOLD}))
    told = {}
    for path in (ctx.path("configmaps", "one"), ctx.widgets("one")):
        must(await ctx.admin.delete(path))
        more = {"metadata": {"finalizers": [*HOLD, "example.com/new", "example.com/newer"]}}
        told[path.split("/")[-2]] = [
            (await ctx.admin.patch(path, more)).plain(),
            (await ctx.admin.patch(path, {"metadata": {"finalizers": ["example.com/other"]}})).plain(),
            (await ctx.admin.patch(path, {"metadata": {"deletionTimestamp": None}})).plain(),
        ]
    return told


@check(82, "creating again while deleting says that it is being deleted")
async def check_082(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", finalizers=HOLD))
    await ctx.make(ctx.widgets(), widget("one", metadata={"finalizers": HOLD}))
    must(await ctx.admin.delete(ctx.path("configmaps", "one")))
    must(await ctx.admin.delete(ctx.widgets("one")))
    other = ctx.name("dying")
    await ctx.make_namespace(other)
    ctx.alias(other, "dying")
    gone = await ctx.admin.delete(f"/api/v1/namespaces/{other}")
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), config_map("one"))).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one"))).plain(),
        "namespace": gone.plain(),
        "in a namespace that ends": (await ctx.admin.post(ctx.path("configmaps", namespace=other), config_map("one"))).plain(),
        "put into it": (
            await ctx.admin.put(
                ctx.path("roles", "one", group="rbac.authorization.k8s.io/v1", namespace=other),
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "one"}, "rules": []},
            )
        ).plain(),
    }


@check(83, "uid and revision preconditions are 409")
async def check_083(ctx: Context) -> Any:
    made = await ctx.make(ctx.path("configmaps"), config_map("one"))
    of_widget = await ctx.make(ctx.widgets(), widget("one"))
    await ctx.make(ctx.path("pods"), pod("one"))
    path = ctx.path("configmaps", "one")
    wrong = {"uid": "11111111-2222-3333-4444-555555555555"}
    old = {"resourceVersion": "1"}
    right = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    both = {"uid": of_widget["metadata"]["uid"], "resourceVersion": "1"}
    return {
        "uid": (await ctx.admin.delete(path, options(preconditions=wrong))).plain(),
        "revision": (await ctx.admin.delete(path, options(preconditions=old))).plain(),
        "custom": (await ctx.admin.delete(ctx.widgets("one"), options(preconditions=both))).plain(),
        "pod": (await ctx.admin.delete(ctx.path("pods", "one"), options(preconditions=wrong))).plain(),
        "missing": (await ctx.admin.delete(ctx.path("pods", "none"), options(preconditions=wrong))).plain(),
        "right": (await ctx.admin.delete(path, options(preconditions=right))).plain(),
    }


@check(84, "an unscheduled Pod goes at once")
async def check_084(ctx: Context) -> Any:
    told = {}
    for name, phase in (("waiting", ""), ("finished", "Succeeded"), ("failed", "Failed")):
        await ctx.make(ctx.path("pods"), pod(name, nodeName="mac-1" if phase else ""))
        path = ctx.path("pods", name)
        if phase:
            must(await ctx.admin.patch(f"{path}/status", {"status": {"phase": phase}}))
        told[name] = [(await ctx.admin.delete(path)).plain(), (await ctx.admin.get(path)).plain()]
    return told


@check(85, "a scheduled Pod goes gracefully, then with 0")
async def check_085(ctx: Context) -> Any:
    await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1"))
    path = ctx.path("pods", "one")
    await ctx.make(ctx.path("pods"), pod("held", nodeName="mac-1", metadata={"finalizers": HOLD}))
    held = ctx.path("pods", "held")
    return {
        "graceful": (await ctx.admin.delete(path)).plain(),
        "still there": (await ctx.admin.get(path)).plain(),
        "with 0": (await ctx.admin.delete(path, options(gracePeriodSeconds=0))).plain(),
        "gone": (await ctx.admin.get(path)).plain(),
        "held": (await ctx.admin.delete(held, options(gracePeriodSeconds=3))).plain(),
        "held with 0": (await ctx.admin.delete(held, options(gracePeriodSeconds=0))).plain(),
        "freed": (await ctx.admin.patch(held, {"metadata": {"finalizers": None}})).plain(),
        "freed and gone": (await ctx.admin.get(held)).plain(body=False),
    }


@check(86, "grace only shortens")
async def check_086(ctx: Context) -> Any:
    await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1", terminationGracePeriodSeconds=100))
    path = ctx.path("pods", "one")
    graces: list[Any] = [60, 60, 90, None, 30, 1]
    told = []
    for grace in graces:
        body = options() if grace is None else options(gracePeriodSeconds=grace)
        answer = await ctx.admin.delete(path, body)
        told.append([grace, answer.plain()])
    told.append(["query", (await ctx.admin.delete(path, gracePeriodSeconds=5)).plain()])
    told.append(["negative", (await ctx.admin.delete(path, options(gracePeriodSeconds=-1))).plain()])
    return told


@check(87, "Pod generation")
async def check_087(ctx: Context) -> Any:
    path = ctx.path("pods", "one")
    made = await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1", activeDeadlineSeconds=500))
    steps: list[Any] = [
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"containers": [{"name": "main", "image": "example.invalid/app:2"}]}},
        {"spec": {"activeDeadlineSeconds": 400}},
    ]
    kind = "application/strategic-merge-patch+json"
    told = [made["metadata"]["generation"]]
    told += [must(await ctx.admin.patch(path, step, kind))["metadata"]["generation"] for step in steps]
    told.append(must(await ctx.admin.patch(f"{path}/status", {"status": {"phase": "Running"}}))["metadata"]["generation"])
    deleted = must(await ctx.admin.delete(path))
    again = must(await ctx.admin.delete(path, options(gracePeriodSeconds=5)))
    return [*told, deleted["metadata"], again["metadata"]]


@check(88, "generation of a custom resource grows on delete")
async def check_088(ctx: Context) -> Any:
    made = await ctx.make(ctx.widgets(), widget("one", metadata={"finalizers": HOLD}))
    plain = await ctx.make(ctx.path("configmaps"), config_map("one", finalizers=HOLD))
    return {
        "before": made["metadata"],
        "after": (await ctx.admin.delete(ctx.widgets("one"))).plain(),
        "map before": plain["metadata"],
        "map after": (await ctx.admin.delete(ctx.path("configmaps", "one"))).plain(),
    }


@check(89, "propagation policies and their finalizers")
async def check_089(ctx: Context) -> Any:
    told = {}
    path = ctx.path("configmaps")
    for policy in ("Foreground", "Orphan", "Background", "Never"):
        name = policy.lower()
        await ctx.make(path, config_map(name))
        told[policy] = (await ctx.admin.delete(f"{path}/{name}", options(propagationPolicy=policy))).plain()
    await ctx.make(path, config_map("query"))
    told["query"] = (await ctx.admin.delete(f"{path}/query", propagationPolicy="Foreground")).plain()
    await ctx.make(path, config_map("old"))
    told["orphanDependents"] = (await ctx.admin.delete(f"{path}/old", options(orphanDependents=True))).plain()
    both = options(orphanDependents=True, propagationPolicy="Orphan")
    told["both"] = (await ctx.admin.delete(f"{path}/old", both)).plain()
    await ctx.make(path, config_map("switch", finalizers=["orphan", *HOLD]))
    told["switch"] = (await ctx.admin.delete(f"{path}/switch", options(propagationPolicy="Foreground"))).plain()
    await ctx.make(path, config_map("kept", finalizers=["foregroundDeletion"]))
    told["kept"] = (await ctx.admin.delete(f"{path}/kept")).plain()
    await ctx.make(path, config_map("beaten", finalizers=["orphan"]))
    told["beaten"] = (await ctx.admin.delete(f"{path}/beaten", options(propagationPolicy="Background"))).plain()
    await ctx.make(ctx.widgets(), widget("one"))
    told["custom"] = (await ctx.admin.delete(ctx.widgets("one"), options(propagationPolicy="Foreground"))).plain()
    await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1"))
    told["pod"] = (await ctx.admin.delete(ctx.path("pods", "one"), options(propagationPolicy="Foreground"))).plain()
    return told


@check(90, "deletecollection by label")
async def check_090(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    for name, labels in (("a", {"go": "yes"}), ("b", {"go": "yes"}), ("c", {})):
        await ctx.make(path, config_map(name, labels=labels))
        await ctx.make(ctx.widgets(), widget(name, metadata={"labels": labels}))
    await ctx.make(path, config_map("held", labels={"go": "yes"}, finalizers=HOLD))
    return {
        "by label": (await ctx.admin.delete(path, labelSelector="go=yes")).plain(),
        "left": (await ctx.admin.get(path)).plain(),
        "by field": (await ctx.admin.delete(path, fieldSelector="metadata.name=c")).plain(),
        "nothing": (await ctx.admin.delete(path, labelSelector="go=never")).plain(),
        "custom": (await ctx.admin.delete(ctx.widgets(), labelSelector="go=yes")).plain(),
        "custom left": [one["metadata"]["name"] for one in (await ctx.admin.get(ctx.widgets())).body["items"]],
        "dry": (await ctx.admin.delete(ctx.widgets(), dryRun="All")).plain(),
        "all namespaces": (await ctx.admin.delete("/api/v1/configmaps")).plain(),
    }


@check(91, "dryRun delete")
async def check_091(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.path("configmaps"), config_map("held", finalizers=HOLD))
    await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1"))
    paths = [ctx.path("configmaps", "one"), ctx.path("configmaps", "held"), ctx.path("pods", "one")]
    told = [(await ctx.admin.delete(path, dryRun="All")).plain() for path in paths]
    told += [(await ctx.admin.delete(path, options(dryRun=["All"]))).plain(body=False) for path in paths]
    told += [(await ctx.admin.get(path)).plain() for path in paths]
    return [*told, (await ctx.admin.delete(paths[0], options(dryRun=["Some"]))).plain()]


@check(92, "eviction is 201")
async def check_092(ctx: Context) -> Any:
    def eviction(name: str, **more: Any) -> dict[str, Any]:
        return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ctx.namespace}, **more}

    for name in ("one", "two", "free"):
        await ctx.make(ctx.path("pods"), pod(name, nodeName="" if name == "free" else "mac-1"))
    quick = {"gracePeriodSeconds": 0}
    return {
        "evicted": (await ctx.admin.post(ctx.path("pods", "one", "eviction"), eviction("one"))).plain(),
        "deleting": (await ctx.admin.get(ctx.path("pods", "one"))).plain(),
        "again": (await ctx.admin.post(ctx.path("pods", "one", "eviction"), eviction("one"))).plain(),
        "at once": (await ctx.admin.post(ctx.path("pods", "two", "eviction"), eviction("two", deleteOptions=quick))).plain(),
        "gone": (await ctx.admin.get(ctx.path("pods", "two"))).plain(body=False),
        "dry": (await ctx.admin.post(ctx.path("pods", "free", "eviction"), eviction("free"), dryRun="All")).plain(),
        "unscheduled": (await ctx.admin.post(ctx.path("pods", "free", "eviction"), eviction("free"))).plain(),
        "missing": (await ctx.admin.post(ctx.path("pods", "none", "eviction"), eviction("none"))).plain(),
        "other name": (await ctx.admin.post(ctx.path("pods", "one", "eviction"), eviction("other"))).plain(),
        "beta": (
            await ctx.admin.post(ctx.path("pods", "one", "eviction"), {**eviction("one"), "apiVersion": "policy/v1beta1"})
        ).plain(),
        "method": (await ctx.admin.patch(ctx.path("pods", "one", "eviction"), {}, MERGE)).plain(),
    }
