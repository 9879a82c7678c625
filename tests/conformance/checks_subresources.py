"""Checks 127 to 130, 139 and 142 to 144: binding, eviction under a budget, what Pods get from a ServiceAccount, status
subresources, immutable fields, methods that do not exist."""

from typing import Any

from tests.conformance.caller import MERGE, STRATEGIC
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, node, pod, widget
from tests.conformance.servers import CONTROLLERS


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


@check(142, "an eviction is counted by the Pod's disruption budget")
async def check_142(ctx: Context) -> Any:
    """The budgets' status is written by the check: what the controller of them writes is another question."""
    budgets = ctx.path("poddisruptionbudgets", group="policy/v1")

    async def budget(name: str, policy: str = "", more: Any = None, **status: Any) -> None:
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
        if policy:
            spec["unhealthyPodEvictionPolicy"] = policy
        body = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": name},
            "spec": {**spec, **(more or {})},
        }
        await ctx.make(budgets, body)
        must(await ctx.admin.patch(f"{budgets}/{name}/status", {"status": {"observedGeneration": 1, **status}}))

    async def running(name: str, app: str, ready: str = "True", phase: str = "Running") -> None:
        await ctx.make(ctx.path("pods"), pod(name, metadata={"labels": {"app": app}}, nodeName="mac-1"))
        conditions = [{"type": "Ready", "status": ready}]
        must(
            await ctx.admin.patch(
                ctx.path("pods", name, "status"), {"status": {"phase": phase, "conditions": conditions}}, STRATEGIC
            )
        )

    async def evict(name: str, **query: Any) -> Any:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ctx.namespace}}
        return (await ctx.admin.post(ctx.path("pods", name, "eviction"), body, **query)).plain()

    failed = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": "no scale",
        "observedGeneration": 1,
    }
    since = {"lastTransitionTime": "2026-01-02T03:04:05Z"}
    await budget("free", disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
    await budget("full", disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1, expectedPods=1)
    await budget("spare", disruptionsAllowed=0, currentHealthy=3, desiredHealthy=1, expectedPods=3)
    await budget("unsynced", conditions=[{**failed, **since}])
    await budget("odd", currentHealthy=2, conditions=[{**failed, **since, "reason": "Odd"}])
    await budget("unseen", observedGeneration=0, disruptionsAllowed=1)
    await budget("ill", currentHealthy=0, desiredHealthy=1, disruptionsAllowed=0)
    await budget("always", "AlwaysAllow", currentHealthy=0, desiredHealthy=1, disruptionsAllowed=0)
    await budget("selected-by-nothing", more={"selector": None}, disruptionsAllowed=0)
    told: dict[str, Any] = {}
    for app in ("free", "full", "spare", "unsynced", "odd", "unseen", "none"):
        await running(app, app)
    for name, app in (("ill", "ill"), ("always", "always"), ("spare-ill", "spare")):
        await running(name, app, ready="False")
    for name, phase in (("pending", "Pending"), ("done", "Succeeded"), ("broken", "Failed")):
        await running(name, "full", phase=phase)
    told["dry"] = await evict("free", dryRun="All")
    for name in (
        "free",
        "full",
        "spare",
        "unsynced",
        "odd",
        "unseen",
        "none",
        "ill",
        "always",
        "spare-ill",
        "pending",
        "done",
        "broken",
    ):
        told[name] = await evict(name)
    told["charged"] = (await ctx.admin.get(f"{budgets}/free")).plain()
    await running("free-two", "free")
    told["spent"] = await evict("free-two")
    await budget("everything", more={"selector": {}}, disruptionsAllowed=9)
    told["two budgets"] = await evict("full")
    return told


@check(
    143,
    "a Pod gets the imagePullSecrets of its ServiceAccount unless it names its own, and its tolerations in order",
    needs=(CONTROLLERS,),
)
async def check_143(ctx: Context) -> Any:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "puller"}}
    await ctx.make(ctx.path("serviceaccounts"), {**account, "imagePullSecrets": [{"name": "one"}, {"name": "two"}]})
    await ctx.make(ctx.path("serviceaccounts"), {**account, "metadata": {"name": "plain"}})
    told = {}
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": ctx.name("vm")}, "handler": "vm"}
    tolerated = {"scheduling": {"tolerations": [{"key": "vm", "operator": "Exists"}]}}
    await ctx.make_cluster_wide("/apis/node.k8s.io/v1/runtimeclasses", {**runtime, **tolerated})
    specs: dict[str, dict[str, Any]] = {
        "placed": {"runtimeClassName": ctx.name("vm"), "tolerations": [{"key": "own", "operator": "Exists"}]},
        "given": {"serviceAccountName": "puller"},
        "kept": {"serviceAccountName": "puller", "imagePullSecrets": [{"name": "own"}]},
        "empty": {"serviceAccountName": "puller", "imagePullSecrets": []},
        "none": {"serviceAccountName": "plain"},
        "missing": {"serviceAccountName": "absent"},
    }
    for name, spec in specs.items():
        answer = await ctx.admin.post(ctx.path("pods"), pod(name, automountServiceAccountToken=False, **spec))
        told[name] = answer.plain()
    return told


@check(144, "the Service of the API itself is there from the start")
async def check_144(ctx: Context) -> Any:
    answer = (await ctx.admin.get(ctx.path("services", "kubernetes", namespace="default"))).plain()
    for port in answer["body"]["spec"]["ports"] if answer["status"] == 200 else ():
        del port["targetPort"]  # where a server listens is its own affair
    return answer
