"""Checks 131 to 138 and 140: who somebody is and what they may do."""

from typing import Any

from tests.conformance.checks import check
from tests.conformance.checks_garbage import eventually
from tests.conformance.context import Context, must
from tests.conformance.kinds import config_map, lease, node, pod, secret

RBAC = "rbac.authorization.k8s.io/v1"
API_GROUP = "rbac.authorization.k8s.io"
ACCESS = "/apis/authorization.k8s.io/v1"
REVIEWS = "/apis/authentication.k8s.io/v1"


def role(name: str, *rules: dict[str, Any], kind: str = "Role") -> dict[str, Any]:
    return {"apiVersion": RBAC, "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(","), "verbs": verbs.split(","), **more}


def role_binding(name: str, role_name: str, user: str, *, role_kind: str = "Role", kind: str = "RoleBinding") -> dict[str, Any]:
    return {
        "apiVersion": RBAC,
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": API_GROUP, "kind": role_kind, "name": role_name},
        "subjects": [{"apiGroup": API_GROUP, "kind": "User", "name": user}],
    }


@check(131, "anonymous is 403, health is 200")
async def check_131(ctx: Context) -> Any:
    nobody = ctx.anonymous()
    paths = (
        "/healthz",
        "/readyz",
        "/livez",
        "/version",
        "/api",
        "/apis",
        "/api/v1/nodes",
        "/openapi/v3",
        "/nothing",
        "/metrics",
    )
    told: dict[str, Any] = {}
    for path in paths:
        answer = await nobody.get(path)
        told[path] = answer.plain(body=path != "/version")
    told["pods"] = (await nobody.get(ctx.path("pods"))).plain()
    told["write"] = (await nobody.post(ctx.path("configmaps"), config_map("one"))).plain()
    return told


@check(132, "a bad token is 401")
async def check_132(ctx: Context) -> Any:
    tokens = {"nonsense": "nonsense", "of three parts": "a.b.c", "like a bootstrap token": "abcdef.0123456789abcdef"}
    told: dict[str, Any] = {}
    for name, token in tokens.items():
        told[name] = (await ctx.with_token(token).get(ctx.path("pods"))).plain()
        told[f"{name} for health"] = (await ctx.with_token(token).get("/healthz")).plain()
    told["basic"] = (await ctx.anonymous().get("/api/v1/nodes", headers={"Authorization": "Basic YTpi"})).plain()
    told["empty"] = (await ctx.anonymous().get("/api/v1/nodes", headers={"Authorization": "Bearer "})).plain()
    return told


@check(133, "text of an RBAC denial")
async def check_133(ctx: Context) -> Any:
    user = ctx.as_user("mallory", "team-a")
    calls: dict[str, tuple[str, str, Any]] = {
        "list": ("GET", ctx.path("pods"), None),
        "get": ("GET", ctx.path("pods", "one"), None),
        "list everywhere": ("GET", "/api/v1/pods", None),
        "subresource": ("GET", ctx.path("pods", "one", "log"), None),
        "group": ("GET", ctx.path("leases", group="coordination.k8s.io/v1"), None),
        "custom": ("GET", ctx.widgets("one"), None),
        "cluster-wide": ("DELETE", "/api/v1/nodes/one", None),
        "create": ("POST", ctx.path("configmaps"), config_map("one")),
        "collection": ("DELETE", ctx.path("configmaps"), None),
        "path": ("GET", "/metrics", None),
        "post path": ("POST", "/healthz", {}),
        "watch": ("GET", f"{ctx.path('pods')}?watch=true", None),
        "unknown resource": ("GET", ctx.path("nothings"), None),
        "namespace": ("GET", f"/api/v1/namespaces/{ctx.namespace}", None),
    }
    told: dict[str, Any] = {name: (await user.call(method, path, body)).plain() for name, (method, path, body) in calls.items()}
    await ctx.make(ctx.path("roles", group=RBAC), role("reader", rule("get,list", "configmaps", resourceNames=["one"])))
    await ctx.make(ctx.path("rolebindings", group=RBAC), role_binding("reader", "reader", "mallory"))
    await ctx.make(ctx.path("rolebindings", group=RBAC), role_binding("broken", "missing", "mallory"))
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    told["allowed"] = (await _until_allowed(user, ctx.path("configmaps", "one"))).plain(body=False)
    told["other name"] = (await user.get(ctx.path("configmaps", "two"))).plain()
    told["by name"] = (await user.get(ctx.path("configmaps"), fieldSelector="metadata.name=one")).plain(body=False)
    told["all"] = (await user.get(ctx.path("configmaps"))).plain()
    return told


async def _until_allowed(caller: Any, path: str) -> Any:
    """RBAC of a real server follows a write after a moment."""

    async def is_allowed() -> bool:
        return bool((await caller.get(path)).status == 200)

    await eventually(is_allowed)
    return await caller.get(path)


async def make_nodes(ctx: Context) -> tuple[str, str]:
    mine, other = ctx.name("mac-a"), ctx.name("mac-b")
    for name in (mine, other):
        await ctx.make_cluster_wide("/api/v1/nodes", node(name))
    return mine, other


@check(134, "a node may not touch another node")
async def check_134(ctx: Context) -> Any:
    mine, other = await make_nodes(ctx)
    me = ctx.as_node(mine)
    fresh = ctx.name("mac-c")
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    ctx.remove_later(f"{leases}/{mine}")
    await ctx.make(ctx.path("pods"), pod("mine", nodeName=mine))
    await ctx.make(ctx.path("pods"), pod("theirs", nodeName=other))
    status = {"status": {"phase": "Running"}}
    restricted = {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}
    return {
        "own": (await me.get(f"/api/v1/nodes/{mine}")).plain(),
        "other": (await me.get(f"/api/v1/nodes/{other}")).plain(body=False),
        "patch other": (await me.patch(f"/api/v1/nodes/{other}", {"metadata": {"labels": {"a": "b"}}})).plain(),
        "status of other": (await me.patch(f"/api/v1/nodes/{other}/status", {"status": {"capacity": {"cpu": "1"}}})).plain(),
        "own status": (await me.patch(f"/api/v1/nodes/{mine}/status", {"status": {"capacity": {"cpu": "1"}}})).plain(),
        "own label": (await me.patch(f"/api/v1/nodes/{mine}", {"metadata": {"labels": {"a": "b"}}})).plain(),
        "restricted label": (await me.patch(f"/api/v1/nodes/{mine}", restricted)).plain(),
        "kubernetes label": (
            await me.patch(f"/api/v1/nodes/{mine}", {"metadata": {"labels": {"x.kubernetes.io/a": "b"}}})
        ).plain(),
        "taints": (
            await me.patch(f"/api/v1/nodes/{mine}", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
        ).plain(),
        "create other": (await me.post("/api/v1/nodes", node(fresh))).plain(),
        "delete other": (await me.delete(f"/api/v1/nodes/{other}")).plain(),
        "delete own": (await me.delete(f"/api/v1/nodes/{mine}")).plain(),
        "own lease": (await me.post(leases, lease(mine))).plain(),
        "other lease": (await me.post(leases, lease(other))).plain(),
        "lease elsewhere": (await me.post(ctx.path("leases", group="coordination.k8s.io/v1"), lease(mine))).plain(),
        "own pod": (await me.patch(ctx.path("pods", "mine", "status"), status)).plain(),
        "other pod": (await me.patch(ctx.path("pods", "theirs", "status"), status)).plain(),
        "label by status": (await me.patch(ctx.path("pods", "mine", "status"), {"metadata": {"labels": {"a": "b"}}})).plain(),
        "update own pod": (await me.patch(ctx.path("pods", "mine"), {"metadata": {"labels": {"a": "b"}}})).plain(),
        "delete other pod": (await me.delete(ctx.path("pods", "theirs"))).plain(),
        "delete own pod": (await me.delete(ctx.path("pods", "mine"))).plain(body=False),
        "stranger": (await ctx.as_user(f"system:node:{mine}").get(f"/api/v1/nodes/{mine}")).plain(),
        "nameless": (await ctx.as_user("kubelet", "system:nodes").get("/api/v1/nodes")).plain(),
    }


@check(135, "a node lists no secrets and reads those of its Pods")
async def check_135(ctx: Context) -> Any:
    mine, other = await make_nodes(ctx)
    me = ctx.as_node(mine)
    for name in ("used", "unused"):
        await ctx.make(ctx.path("secrets"), secret(name))
        await ctx.make(ctx.path("configmaps"), config_map(name))
    volumes = [{"name": "s", "secret": {"secretName": "used"}}, {"name": "c", "configMap": {"name": "used"}}]
    await ctx.make(ctx.path("pods"), pod("one", nodeName=mine, volumes=volumes))
    allowed = await _until_allowed(me, ctx.path("secrets", "used"))
    return {
        "list": (await me.get(ctx.path("secrets"))).plain(),
        "list all": (await me.get("/api/v1/secrets")).plain(),
        "used": allowed.plain(body=False),
        "used by name": (await me.get(ctx.path("secrets"), fieldSelector="metadata.name=used")).plain(body=False),
        "unused": (await me.get(ctx.path("secrets", "unused"))).plain(),
        "by another": (await ctx.as_node(other).get(ctx.path("secrets", "used"))).plain(),
        "map": (await me.get(ctx.path("configmaps", "used"))).plain(body=False),
        "unused map": (await me.get(ctx.path("configmaps", "unused"))).plain(),
        "write": (await me.patch(ctx.path("secrets", "used"), {"data": {}})).plain(),
        "missing": (await me.get(ctx.path("secrets", "none"))).plain(),
    }


@check(136, "a node lists its own Pods only")
async def check_136(ctx: Context) -> Any:
    mine, other = await make_nodes(ctx)
    me = ctx.as_node(mine)
    await ctx.make(ctx.path("pods"), pod("one", nodeName=mine))
    await ctx.make(ctx.path("pods"), pod("two", nodeName=other))
    own = await me.get("/api/v1/pods", fieldSelector=f"spec.nodeName={mine}")
    return {
        "all": (await me.get("/api/v1/pods")).plain(),
        "own": [own.status, [item["metadata"]["name"] for item in own.body["items"]]],
        "of another": (await me.get("/api/v1/pods", fieldSelector=f"spec.nodeName={other}")).plain(),
        "in a namespace": (await me.get(ctx.path("pods"))).plain(),
        "watch": (await me.get("/api/v1/pods", watch="true")).plain(),
        "own pod": (await me.get(ctx.path("pods", "one"))).plain(body=False),
        "other pod": (await me.get(ctx.path("pods", "two"))).plain(),
        "nodes": (await me.get("/api/v1/nodes")).plain(body=False),
        "mirror": (await me.post(ctx.path("pods"), pod("three", nodeName=mine))).plain(),
    }


@check(137, "access reviews")
async def check_137(ctx: Context) -> Any:
    user = ctx.as_user("alice", "team-a")
    await ctx.make(
        ctx.path("roles", group=RBAC), role("reader", rule("get", "pods"), rule("list", "leases", "coordination.k8s.io"))
    )
    await ctx.make(ctx.path("rolebindings", group=RBAC), role_binding("reader", "reader", "alice"))
    await ctx.make(ctx.path("pods"), pod("one"))
    await _until_allowed(user, ctx.path("pods", "one"))

    def review(kind: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}

    may = {"namespace": ctx.namespace, "verb": "get", "resource": "pods"}
    may_not = {**may, "verb": "delete"}
    own, others = f"{ACCESS}/selfsubjectaccessreviews", f"{ACCESS}/subjectaccessreviews"
    local = f"{ACCESS}/namespaces/{ctx.namespace}/localsubjectaccessreviews"
    rules = await user.post(f"{ACCESS}/selfsubjectrulesreviews", review("SelfSubjectRulesReview", namespace=ctx.namespace))
    if rules.status == 201:
        for name in ("resourceRules", "nonResourceRules"):
            rules.body["status"][name].sort(key=str)
    return {
        "allowed": (await user.post(own, review("SelfSubjectAccessReview", resourceAttributes=may))).plain(),
        "denied": (await user.post(own, review("SelfSubjectAccessReview", resourceAttributes=may_not))).plain(),
        "path": (
            await user.post(own, review("SelfSubjectAccessReview", nonResourceAttributes={"path": "/api", "verb": "get"}))
        ).plain(),
        "neither": (await user.post(own, review("SelfSubjectAccessReview"))).plain(),
        "admin": (await ctx.admin.post(own, review("SelfSubjectAccessReview", resourceAttributes=may_not))).plain(),
        "of another": (
            await ctx.admin.post(others, review("SubjectAccessReview", user="alice", resourceAttributes=may))
        ).plain(),
        "by nobody": (await ctx.admin.post(others, review("SubjectAccessReview", resourceAttributes=may))).plain(),
        "not by alice": (await user.post(others, review("SubjectAccessReview", user="x", resourceAttributes=may))).plain(),
        "local": (
            await ctx.admin.post(local, review("LocalSubjectAccessReview", user="alice", resourceAttributes=may))
        ).plain(),
        "rules": rules.plain(),
        "who": (
            await user.post(
                f"{REVIEWS}/selfsubjectreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            )
        ).plain(),
    }


@check(138, "TokenRequest, TokenReview, and using the token")
async def check_138(ctx: Context) -> Any:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    await ctx.make(ctx.path("serviceaccounts"), account)
    made = await ctx.make(ctx.path("pods"), pod("one", serviceAccountName="robot"))
    path = ctx.path("serviceaccounts", "robot", "token")

    def request(**spec: Any) -> dict[str, Any]:
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}

    def review(token: str, **spec: Any) -> dict[str, Any]:
        return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, **spec}}

    bound = {"kind": "Pod", "apiVersion": "v1", "name": "one", "uid": made["metadata"]["uid"]}
    answers = {
        "plain": await ctx.admin.post(path, request()),
        "bound": await ctx.admin.post(path, request(boundObjectRef=bound, expirationSeconds=600)),
        "audience": await ctx.admin.post(path, request(audiences=["else"])),
    }
    tokens = {name: must(answer)["status"]["token"] for name, answer in answers.items()}
    for name, token in tokens.items():
        ctx.alias(token, f"token {name}")
    told: dict[str, Any] = {name: answer.plain() for name, answer in answers.items()}
    told["too short"] = (await ctx.admin.post(path, request(expirationSeconds=10))).plain()
    told["wrong uid"] = (await ctx.admin.post(path, request(boundObjectRef={**bound, "uid": "x"}))).plain()
    told["missing pod"] = (await ctx.admin.post(path, request(boundObjectRef={**bound, "name": "none"}))).plain()
    told["missing account"] = (await ctx.admin.post(ctx.path("serviceaccounts", "none", "token"), request())).plain()
    for name, token in tokens.items():
        told[f"review of {name}"] = (await ctx.admin.post(f"{REVIEWS}/tokenreviews", review(token))).plain()
        told[f"use of {name}"] = (await ctx.with_token(token).get(ctx.path("configmaps"))).plain()
    told["review for an audience"] = (
        await ctx.admin.post(f"{REVIEWS}/tokenreviews", review(tokens["audience"], audiences=["else", "x"]))
    ).plain()
    told["review of nonsense"] = (await ctx.admin.post(f"{REVIEWS}/tokenreviews", review("nonsense"))).plain()
    told["review of nothing"] = (await ctx.admin.post(f"{REVIEWS}/tokenreviews", review(""))).plain()
    must(await ctx.admin.delete(ctx.path("pods", "one")))
    must(await ctx.admin.delete(ctx.path("serviceaccounts", "robot")))

    async def is_refused() -> bool:
        return (await ctx.with_token(tokens["plain"]).get("/healthz")).status == 401

    told["refused after deletion"] = await eventually(is_refused)
    return told


@check(140, "RBAC escalation is refused")
async def check_140(ctx: Context) -> Any:
    user = ctx.as_user("eve")
    roles, bindings = ctx.path("roles", group=RBAC), ctx.path("rolebindings", group=RBAC)
    manage = rule("create,update,patch,get", "roles,rolebindings", API_GROUP)
    await ctx.make(roles, role("manager", manage, rule("get", "pods")))
    await ctx.make(roles, role("strong", rule("*", "secrets")))
    await ctx.make(bindings, role_binding("manager", "manager", "eve"))
    await _until_allowed(user, f"{roles}/strong")
    bind = rule("bind", "roles", API_GROUP, resourceNames=["strong"])
    told: dict[str, Any] = {
        "within": (await user.post(roles, role("weak", rule("get", "pods")))).plain(),
        "beyond": (await user.post(roles, role("mine", rule("get,list", "pods,secrets"), rule("*", "*", "*")))).plain(),
        "by patch": (await user.patch(f"{roles}/weak", {"rules": [rule("delete", "pods")]})).plain(),
        "bind": (await user.post(bindings, role_binding("mine", "strong", "eve"))).plain(),
        "bind weak": (await user.post(bindings, role_binding("weak", "weak", "eve"))).plain(),
        "bind cluster-admin": (
            await user.post(bindings, role_binding("all", "cluster-admin", "eve", role_kind="ClusterRole"))
        ).plain(),
        "bind missing": (await user.post(bindings, role_binding("none", "missing", "eve"))).plain(),
        "escalate own": (await user.patch(f"{roles}/manager", {"rules": [manage, bind]})).plain(),
        "cluster role": (await user.post(f"/apis/{RBAC}/clusterroles", role(ctx.name("x"), kind="ClusterRole"))).plain(),
        "role changed": (await ctx.admin.patch(f"{bindings}/manager", {"roleRef": {"name": "strong"}})).plain(),
        "bad subject": (
            await ctx.admin.post(bindings, {**role_binding("bad", "weak", "eve"), "subjects": [{"kind": "Robot", "name": "x"}]})
        ).plain(),
        "no verbs": (await ctx.admin.post(roles, role("bad", {"apiGroups": [""], "resources": ["pods"], "verbs": []}))).plain(),
    }
    must(await ctx.admin.patch(f"{roles}/manager", {"rules": [manage, bind, rule("get", "pods")]}))

    async def may_bind() -> bool:
        answer = await user.post(bindings, role_binding("allowed", "strong", "eve"), dryRun="All")
        return answer.status == 201

    told["bind allowed"] = await eventually(may_bind)
    return told
