"""Checks 30 to 37 and 45 to 48: reading, selectors, Tables and other forms of an answer."""

from typing import Any

from tests.conformance.caller import JSON, TABLE
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import GROUP, config_map, pod, secret, widget

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def names(body: Any) -> Any:
    """Of the items of a list; a refusal is told whole."""
    return [item["metadata"]["name"] for item in body["items"]] if "items" in body else body


@check(30, "404 Status exact")
async def check_030(ctx: Context) -> Any:
    paths = {
        "core": ctx.path("configmaps", "none"),
        "group": ctx.path("leases", "none", group="coordination.k8s.io/v1"),
        "custom": ctx.widgets("none"),
        "cluster-wide": "/api/v1/nodes/none",
        "subresource": ctx.path("pods", "none", "status"),
        "custom subresource": ctx.widgets("none", "scale"),
        "custom cluster-wide": f"/apis/{GROUP}/v1/realms/none",
        "odd name": ctx.path("configmaps", "NOT_A_NAME"),
        "namespace": "/api/v1/namespaces/none",
    }
    return {name: (await ctx.admin.get(path)).plain() for name, path in paths.items()}


@check(31, "an empty list has items: []")
async def check_031(ctx: Context) -> Any:
    paths = (ctx.path("configmaps"), ctx.path("pods"), ctx.widgets(), ctx.path("leases", group="coordination.k8s.io/v1"))
    return [(await ctx.admin.get(path)).plain() for path in paths]


@check(32, "items of built-in lists omit kind")
async def check_032(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1"}))
    await ctx.make(ctx.path("secrets"), secret("one"))
    await ctx.make(ctx.widgets(), widget("one"))
    paths = (ctx.path("configmaps"), ctx.path("secrets"), ctx.widgets())
    return [(await ctx.admin.get(path)).plain() for path in paths]


LABEL_SELECTORS = (
    "tier=web",
    "tier==web",
    "tier!=web",
    "tier in (web,db)",
    "tier notin (web)",
    "tier",
    "!tier",
    "tier=web,zone=a",
    "zone in (a),!tier",
    " tier = web , zone ",
    "tier=",
    "tier in (web,)",
    "size>3",
    "size<3",
    "",
)


async def make_labelled(ctx: Context) -> None:
    labelled = {
        "a": {"tier": "web", "zone": "a", "size": "5"},
        "b": {"tier": "web", "zone": "b", "size": "2"},
        "c": {"tier": "db", "zone": "a"},
        "d": {"zone": "a"},
        "e": {"tier": ""},
    }
    for name, labels in labelled.items():
        await ctx.make(ctx.path("configmaps"), config_map(name, labels=labels))


@check(33, "seven forms of label selector")
async def check_033(ctx: Context) -> Any:
    await make_labelled(ctx)
    path = ctx.path("configmaps")
    return {one: names((await ctx.admin.get(path, labelSelector=one)).body) for one in LABEL_SELECTORS}


@check(34, "a bad selector is 400")
async def check_034(ctx: Context) -> Any:
    bad = ("a b", "=", "a in", "a in (", "!", "a=b=c", "a in (b", "-a=b", "a=b c", "a=,,", "a notin b", "a>b", f"{'a' * 64}=b")
    told: dict[str, Any] = {one: (await ctx.admin.get(ctx.path("configmaps"), labelSelector=one)).plain() for one in bad}
    for one in ("a", "=b", "metadata.name", "metadata.name=a,b"):
        told[f"field {one}"] = (await ctx.admin.get(ctx.path("configmaps"), fieldSelector=one)).plain()
    told["custom"] = (await ctx.admin.get(ctx.widgets(), labelSelector="a in (")).plain()
    return told


@check(35, "metadata.name selector")
async def check_035(ctx: Context) -> Any:
    await make_labelled(ctx)
    for name in ("a", "b"):
        await ctx.make(ctx.widgets(), widget(name))
    selectors = (
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        f"metadata.namespace={ctx.namespace}",
        "metadata.namespace=other",
        f"metadata.name=b,metadata.namespace={ctx.namespace}",
        "metadata.name=a,metadata.name=b",
        "metadata.name=",
    )
    told: dict[str, Any] = {}
    for one in selectors:
        told[one] = names((await ctx.admin.get(ctx.path("configmaps"), fieldSelector=one)).body)
        told[f"custom {one}"] = names((await ctx.admin.get(ctx.widgets(), fieldSelector=one)).body)
    both = await ctx.admin.get(ctx.path("configmaps"), fieldSelector="metadata.name=a", labelSelector="tier=db")
    told["with labels"] = names(both.body)
    return told


@check(36, "an unknown field label is 400 with its text")
async def check_036(ctx: Context) -> Any:
    paths = {
        "configmaps": ctx.path("configmaps"),
        "pods": ctx.path("pods"),
        "nodes": "/api/v1/nodes",
        "namespaces": "/api/v1/namespaces",
        "secrets": ctx.path("secrets"),
        "events": ctx.path("events"),
        "leases": ctx.path("leases", group="coordination.k8s.io/v1"),
        "roles": ctx.path("roles", group="rbac.authorization.k8s.io/v1"),
        "widgets": ctx.widgets(),
        "crds": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    }
    return {name: (await ctx.admin.get(path, fieldSelector="spec.bogus=x")).plain() for name, path in paths.items()}


@check(37, "Pods by spec.nodeName and status.phase")
async def check_037(ctx: Context) -> Any:
    path = ctx.path("pods")
    await ctx.make(path, pod("a", nodeName="mac-1"))
    await ctx.make(path, pod("b", nodeName="mac-2", restartPolicy="Never"))
    await ctx.make(path, pod("c", schedulerName="mine", serviceAccountName="account"))
    must(await ctx.admin.patch(f"{path}/a/status", {"status": {"phase": "Running", "podIP": "10.0.0.7"}}))
    must(await ctx.admin.patch(f"{path}/b/status", {"status": {"phase": "Succeeded"}}))
    await ctx.make(ctx.path("secrets"), secret("plain"))
    selectors = (
        "spec.nodeName=mac-1",
        "spec.nodeName=",
        "spec.nodeName!=mac-1",
        "status.phase!=Succeeded",
        "status.phase=Pending",
        "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
        "spec.restartPolicy=Never",
        "spec.schedulerName=mine",
        "spec.serviceAccountName=account",
        "status.podIP=10.0.0.7",
        "status.nominatedNodeName=",
        "spec.hostNetwork=false",
    )
    told = {one: names((await ctx.admin.get(path, fieldSelector=one)).body) for one in selectors}
    told["secrets"] = names((await ctx.admin.get(ctx.path("secrets"), fieldSelector="type=Opaque")).body)
    told["no secrets"] = names((await ctx.admin.get(ctx.path("secrets"), fieldSelector="type!=Opaque")).body)
    return told


@check(45, "Table columns for ConfigMap")
async def check_045(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1", "b": "2"}))
    path = ctx.path("configmaps")
    return {
        "list": (await ctx.admin.get(path, accept=TABLE)).plain(),
        "one": (await ctx.admin.get(f"{path}/one", accept=TABLE)).plain(),
        "objects": (await ctx.admin.get(path, accept=TABLE, includeObject="Object")).plain(),
        "no objects": (await ctx.admin.get(path, accept=TABLE, includeObject="None")).plain(),
        "bad": (await ctx.admin.get(path, accept=TABLE, includeObject="Some")).plain(),
        "missing": (await ctx.admin.get(f"{path}/none", accept=TABLE)).plain(),
        "empty": (await ctx.admin.get(ctx.path("secrets"), accept=TABLE)).plain(),
        "fallback": (await ctx.admin.get(path, accept=f"{TABLE},application/json")).plain(body=False),
        "leases": (await ctx.admin.get(ctx.path("leases", group="coordination.k8s.io/v1"), accept=TABLE)).plain(),
    }


@check(46, "Pod Table cells")
async def check_046(ctx: Context) -> Any:
    path = ctx.path("pods")
    for name in ("fresh", "running", "failed", "gated", "waiting"):
        extra = {"schedulingGates": [{"name": "example.com/hold"}]} if name == "gated" else {"nodeName": "mac-1"}
        await ctx.make(path, pod(name, **({} if name == "fresh" else extra)))
    running = {"name": "main", "image": "i", "imageID": "i", "ready": True, "restartCount": 2, "state": {"running": {}}}
    waiting = {**running, "ready": False, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    ready = {"type": "Ready", "status": "True"}
    states: dict[str, Any] = {
        "running": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [running], "conditions": [ready]},
        "failed": {"phase": "Failed", "reason": "Evicted", "message": "no room"},
        "waiting": {"phase": "Pending", "containerStatuses": [waiting]},
    }
    for name, status in states.items():
        must(await ctx.admin.patch(f"{path}/{name}/status", {"status": status}))
    answer = await ctx.admin.get(path, accept=TABLE)
    must(await ctx.admin.delete(f"{path}/running"))
    deleting = await ctx.admin.get(f"{path}/running", accept=TABLE)
    return {"all": answer.plain(), "deleting": [{"cells": row["cells"]} for row in deleting.body["rows"]]}


@check(47, "PartialObjectMetadata")
async def check_047(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one", {"a": "1"}, labels={"a": "b"}))
    await ctx.make(ctx.widgets(), widget("one"))
    path = ctx.path("configmaps")
    return {
        "one": (await ctx.admin.get(f"{path}/one", accept=PARTIAL)).plain(),
        "list": (await ctx.admin.get(path, accept=PARTIAL_LIST)).plain(),
        "custom one": (await ctx.admin.get(ctx.widgets("one"), accept=PARTIAL)).plain(),
        "custom list": (await ctx.admin.get(ctx.widgets(), accept=PARTIAL_LIST)).plain(),
        "list as one": (await ctx.admin.get(path, accept=PARTIAL)).plain(),
        "one as list": (await ctx.admin.get(f"{path}/one", accept=PARTIAL_LIST)).plain(),
        "patched": (
            await ctx.admin.call(
                "PATCH", f"{path}/one", {"data": {"b": "2"}}, content_type="application/merge-patch+json", accept=PARTIAL
            )
        ).plain(),
    }


@check(48, "Accept xml is 406")
async def check_048(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    path = ctx.path("configmaps", "one")
    accepts = {
        "xml": "application/xml",
        "several": "text/html, application/xml;q=0.9",
        "with json": "application/xml, application/json",
        "with any": "application/xml, */*",
        "any of application": "application/*",
        "none": None,
        "table of v9": "application/json;as=Table;v=v9;g=meta.k8s.io",
        "nonsense": "nonsense",
    }
    told = {name: (await ctx.admin.get(path, accept=accept)).plain() for name, accept in accepts.items()}
    told["custom"] = (await ctx.admin.get(ctx.widgets(), accept="application/xml")).plain()
    yaml = await ctx.admin.get(path, accept="application/yaml")
    told["yaml"] = {"status": yaml.status, "type": yaml.content_type, "kind": "kind: ConfigMap" in str(yaml.body)}
    write = await ctx.admin.call("POST", ctx.path("configmaps"), config_map("two"), content_type=JSON, accept="application/xml")
    told["write"] = write.plain()
    told["written"] = (await ctx.admin.get(ctx.path("configmaps", "two"))).plain(body=False)
    return told
