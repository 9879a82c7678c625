"""Checks 127 to 130 and 139: binding, status subresources, immutable fields, methods that do not exist."""

from typing import Any

from tests.conformance.caller import MERGE, STRATEGIC
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, node, pod, widget


def binding(name: str, target: str, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": target},
        **more,
    }


@check(127, "binding sets nodeName and PodScheduled; a second one is 409")
async def check_127(ctx: Context) -> Any:
    for name in ("one", "two", "gated", "dying"):
        gates = {"schedulingGates": [{"name": "example.com/hold"}]} if name == "gated" else {}
        await ctx.make(
            ctx.path("pods"), pod(name, metadata={"finalizers": ["example.com/x"]} if name == "dying" else None, **gates)
        )
    must(await ctx.admin.delete(ctx.path("pods", "dying")))

    def path(name: str) -> str:
        return ctx.path("pods", name, "binding")

    annotated = {**binding("two", "mac-2"), "metadata": {"name": "two", "annotations": {"a": "b"}}}
    return {
        "bound": (await ctx.admin.post(path("one"), binding("one", "mac-1"))).plain(),
        "pod": (await ctx.admin.get(ctx.path("pods", "one"))).plain(),
        "again": (await ctx.admin.post(path("one"), binding("one", "mac-2"))).plain(),
        "same again": (await ctx.admin.post(path("one"), binding("one", "mac-1"))).plain(),
        "by the collection": (await ctx.admin.post(ctx.path("bindings"), annotated)).plain(),
        "annotated": (await ctx.admin.get(ctx.path("pods", "two"))).plain(),
        "gated": (await ctx.admin.post(path("gated"), binding("gated", "mac-1"))).plain(),
        "deleting": (await ctx.admin.post(path("dying"), binding("dying", "mac-1"))).plain(),
        "missing": (await ctx.admin.post(path("none"), binding("none", "mac-1"))).plain(),
        "no target": (await ctx.admin.post(path("gated"), {**binding("gated", ""), "target": {}})).refusal(),
        "wrong kind": (
            await ctx.admin.post(path("gated"), {**binding("gated", "x"), "target": {"kind": "Pod", "name": "x"}})
        ).refusal(),
        "other name": (await ctx.admin.post(path("gated"), binding("other", "mac-1"))).plain(),
    }


@check(128, "a Pod's spec is immutable")
async def check_128(ctx: Context) -> Any:
    await ctx.make(ctx.path("pods"), pod("one"))
    path = ctx.path("pods", "one")
    steps: dict[str, Any] = {
        "node": {"spec": {"nodeName": "mac-1"}},
        "restart policy": {"spec": {"restartPolicy": "Never"}},
        "env": {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}},
        "image": {"spec": {"containers": [{"name": "main", "image": "example.invalid/app:2"}]}},
        "no image": {"spec": {"containers": [{"name": "main", "image": ""}]}},
        "deadline": {"spec": {"activeDeadlineSeconds": 100}},
        "longer deadline": {"spec": {"activeDeadlineSeconds": 200}},
        "toleration added": {"spec": {"tolerations": [{"key": "new", "operator": "Exists"}]}},
        "grace": {"spec": {"terminationGracePeriodSeconds": 1}},
        "labels": {"metadata": {"labels": {"a": "b"}}},
    }
    return {name: (await ctx.admin.patch(path, step, STRATEGIC)).plain() for name, step in steps.items()}


@check(129, "a Pod's status ignores spec")
async def check_129(ctx: Context) -> Any:
    await ctx.make(ctx.path("pods"), pod("one", nodeName="mac-1"))
    path = ctx.path("pods", "one", "status")
    change: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["example.com/x"]},
        "spec": {"activeDeadlineSeconds": 5},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    return {
        "patch": (await ctx.admin.patch(path, change, STRATEGIC)).plain(),
        "condition": (
            await ctx.admin.patch(path, {"status": {"conditions": [{"type": "Mine", "status": "False"}]}}, STRATEGIC)
        ).plain(),
        "by the main path": (await ctx.admin.patch(ctx.path("pods", "one"), {"status": {"phase": "Failed"}})).plain(),
        "bad phase": (await ctx.admin.patch(path, {"status": {"phase": 5}})).plain(),
        "get": (await ctx.admin.get(path)).plain(),
    }


@check(130, "a Node's status keeps a change of metadata")
async def check_130(ctx: Context) -> Any:
    name = ctx.name("mac")
    await ctx.make_cluster_wide("/api/v1/nodes", node(name))
    path = f"/api/v1/nodes/{name}"
    change: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
        "spec": {"unschedulable": True, "providerID": "x://1"},
        "status": {"capacity": {"cpu": "8"}},
    }
    return {
        "status": (await ctx.admin.patch(f"{path}/status", change)).plain(),
        "main": (await ctx.admin.patch(path, {"spec": {"providerID": "x://1"}, "status": {"capacity": {"cpu": "9"}}})).plain(),
        "provider changed": (await ctx.admin.patch(path, {"spec": {"providerID": "x://2"}})).plain(),
        "bad quantity": (await ctx.admin.patch(f"{path}/status", {"status": {"capacity": {"cpu": "many"}}})).plain(),
        "bad label": (await ctx.admin.patch(path, {"metadata": {"labels": {"a b": "c"}}})).plain(),
        "namespace finalize": (
            await ctx.admin.put(
                f"/api/v1/namespaces/{ctx.namespace}/finalize",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ctx.namespace}, "spec": {"finalizers": []}},
            )
        ).plain(),
    }


@check(139, "a method that does not exist is 405")
async def check_139(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.widgets(), widget("one"))
    calls = {
        "put a collection": ("PUT", ctx.path("configmaps")),
        "patch a collection": ("PATCH", ctx.path("configmaps")),
        "post an object": ("POST", ctx.path("configmaps", "one")),
        "post all namespaces": ("POST", "/api/v1/configmaps"),
        "get a binding": ("GET", ctx.path("pods", "one", "binding")),
        "get a review": ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        "delete a status": ("DELETE", ctx.path("pods", "one", "status")),
        "put a custom collection": ("PUT", ctx.widgets()),
        "delete a custom scale": ("DELETE", ctx.widgets("one", "scale")),
        "delete namespaces": ("DELETE", "/api/v1/namespaces"),
        "post discovery": ("POST", "/api"),
        "options": ("OPTIONS", ctx.path("configmaps")),
        "post health": ("POST", "/healthz"),
    }
    told = {}
    for name, (method, path) in calls.items():
        body: Any = None if method in ("GET", "DELETE", "OPTIONS") else {}
        answer = await ctx.admin.call(method, path, body, content_type=MERGE if method == "PATCH" else "application/json")
        told[name] = answer.plain()
    return told
