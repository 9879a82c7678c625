"""Checks 1 to 9: discovery, OpenAPI, health and version.

A real server serves more groups and resources than applecart does; only what both promise is compared. Of OpenAPI documents
only what kubectl reads is compared: built-in schemas are the real server's alone.
"""

import asyncio
import json
import re
from typing import Any

from tests.conformance.caller import STRATEGIC, Answer, Caller
from tests.conformance.checks import check
from tests.conformance.context import LOOK_EVERY_S, SERVED_WITHIN_S, Context
from tests.conformance.kinds import GROUP

GROUPS = (
    "apiextensions.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    GROUP,
)
CORE_RESOURCES = frozenset(
    {
        "bindings",
        "configmaps",
        "events",
        "namespaces",
        "namespaces/finalize",
        "namespaces/status",
        "nodes",
        "nodes/status",
        "pods",
        "pods/attach",
        "pods/binding",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/status",
        "secrets",
        "serviceaccounts",
        "serviceaccounts/token",
    }
)
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED_BETA = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


def by_name(entries: list[Any]) -> list[Any]:
    return sorted(entries, key=lambda entry: str(entry["name"]))


async def legacy_groups(caller: Caller) -> dict[str, Any]:
    answer = await caller.get("/apis")
    listed = answer.body
    return {**answer.plain(), "body": {**listed, "groups": by_name([one for one in listed["groups"] if one["name"] in GROUPS])}}


async def resources(caller: Caller, path: str, only: frozenset[str] | None = None) -> dict[str, Any]:
    answer = await caller.get(path)
    found = [one for one in answer.body["resources"] if only is None or one["name"] in only]
    return {**answer.plain(), "body": {**answer.body, "resources": by_name(found)}}


@check(1, "/api, /apis, /apis/{g} legacy shapes")
async def check_001(ctx: Context) -> Any:
    core = await ctx.admin.get("/api")
    groups = await legacy_groups(ctx.admin)
    versions = {one["name"]: one["preferredVersion"]["groupVersion"] for one in groups["body"]["groups"]}
    return {
        "core": core.plain(),
        "core with a slash": (await ctx.admin.get("/api/")).plain(),
        "core resources": await resources(ctx.admin, "/api/v1", CORE_RESOURCES),
        "groups": groups,
        "one by one": {name: (await ctx.admin.get(f"/apis/{name}")).plain() for name in GROUPS},
        "resources": {name: await resources(ctx.admin, f"/apis/{path}") for name, path in versions.items()},
    }


@check(2, "pods entries: shortNames, pods/eviction has group policy v1")
async def check_002(ctx: Context) -> Any:
    answer = await ctx.admin.get("/api/v1")
    wanted = {"pods", "pods/eviction", "pods/binding", "pods/status", "pods/log", "pods/exec"}
    return by_name([one for one in answer.body["resources"] if one["name"] in wanted])


def aggregated(answer: Answer) -> dict[str, Any]:
    body = answer.body
    if not isinstance(body, dict) or "items" not in body:
        return answer.plain()
    groups = []
    for group in body["items"]:
        name = group["metadata"].get("name", "")
        if name and name not in GROUPS:
            continue
        versions = [
            {**one, "resources": sorted(_promised(name, one["resources"]), key=lambda found: str(found["resource"]))}
            for one in group["versions"]
        ]
        groups.append({**group, "versions": versions})
    ordered = sorted(groups, key=lambda group: str(group["metadata"].get("name", "")))
    etag = re.sub(r"[0-9A-F]{128}|[0-9A-F]{64}", "HASH", answer.headers.get("etag", "none"))
    return {**answer.plain(), "etag": etag, "body": {**body, "items": ordered}}


def _promised(group: str, found: list[Any]) -> list[Any]:
    """Of the core group the resources that both serve, with their subresources in a fixed order."""
    kept = []
    for resource in found:
        name = resource["resource"]
        if not group and name not in CORE_RESOURCES:
            continue
        subs = [sub for sub in resource.get("subresources", []) if group or f"{name}/{sub['subresource']}" in CORE_RESOURCES]
        ordered = sorted(subs, key=lambda sub: str(sub["subresource"]))
        kept.append({**resource, "subresources": ordered} if ordered else resource)
    return kept


@check(3, "aggregated v2 kind, content type and ETag")
async def check_003(ctx: Context) -> Any:
    return {path: aggregated(await ctx.admin.get(path, accept=AGGREGATED)) for path in ("/api", "/apis")}


@check(4, "304 keeps the content type")
async def check_004(ctx: Context) -> Any:
    told = {}
    # The core group changes never, so another check's new kind cannot come between.
    first = await ctx.admin.get("/api", accept=AGGREGATED)
    for name, etag in (("same", first.headers["etag"]), ("other", '"0"')):
        again = await ctx.admin.get("/api", accept=AGGREGATED, headers={"If-None-Match": etag})
        told[name] = {
            **again.plain(body=again.status == 304),
            "same etag": again.headers.get("etag") == first.headers["etag"],
        }
    return told


@check(5, "unknown group or resource is 404")
async def check_005(ctx: Context) -> Any:
    paths = {
        "group": "/apis/none.example.invalid",
        "group version": "/apis/none.example.invalid/v1",
        "version of a group": "/apis/coordination.k8s.io/v9",
        "version of core": "/api/v9",
        "core resource": ctx.path("nothings"),
        "resource of a group": ctx.path("nothings", group="coordination.k8s.io/v1"),
        "custom resource": ctx.path("nothings", group=f"{GROUP}/v1"),
        "subresource": ctx.path("configmaps", "one", "nothing"),
        "path": "/nothing",
    }
    return {name: (await ctx.admin.get(path)).plain() for name, path in paths.items()}


@check(6, "/openapi/v3 hash URLs")
async def check_006(ctx: Context) -> Any:
    wanted = ["api/v1", "apis/coordination.k8s.io/v1", f"apis/{GROUP}/v1"]
    while True:
        index, listed = await _openapi_index(ctx)
        urls = {path: listed["paths"].get(path, {}).get("serverRelativeURL", "") for path in wanted}
        documents = {path: await ctx.admin.get(url) for path, url in urls.items() if url}
        if all(document.status == 200 for document in documents.values()):
            break  # else one was made anew meanwhile, and its address led elsewhere
    core, widgets = documents["api/v1"].body, documents[f"apis/{GROUP}/v1"].body
    of_widget = widgets["components"]["schemas"]["dev.applecart.conformance.v1.Widget"]
    wrong = await ctx.admin.get("/openapi/v3/api/v1", hash="0" * 128)
    return {
        "index": index.plain(body=False),
        "urls": {path: re.sub(r"hash=[0-9A-F]{64,128}", "hash=HASH", url) for path, url in urls.items()},
        "documents": {path: document.plain(body=False) for path, document in documents.items()},
        "etags": {path: "etag" in document.headers for path, document in documents.items()},
        "openapi": core["openapi"],
        "patch of a pod": _operation(core, "/api/v1/namespaces/{namespace}/pods/{name}", "patch"),
        "patch of a widget": _operation(widgets, f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}", "patch"),
        "spec and status of a widget": {name: of_widget["properties"][name] for name in ("spec", "status")},
        "kinds of a widget": of_widget["x-kubernetes-group-version-kind"],
        "wrong hash": {**wrong.plain(body=False), "headers": _without_hash(wrong)},
    }


async def _openapi_index(ctx: Context) -> tuple[Answer, Any]:
    """The list of documents, once it names that of a kind which was just installed."""
    async with asyncio.timeout(SERVED_WITHIN_S):
        while True:
            index = await ctx.admin.get("/openapi/v3")
            listed = index.body if isinstance(index.body, dict) else json.loads(index.body)  # a real server calls it text
            if f"apis/{GROUP}/v1" in listed["paths"]:
                return index, listed
            await asyncio.sleep(LOOK_EVERY_S)


def _operation(document: Any, path: str, method: str) -> dict[str, Any]:
    operation = document["paths"][path][method]
    return {
        "kind": operation["x-kubernetes-group-version-kind"],
        "action": operation["x-kubernetes-action"],
        "parameters": sorted(one["name"] for one in operation["parameters"] if one["in"] == "query"),
        "accepts": sorted(set(operation["requestBody"]["content"]) - {STRATEGIC}),  # not offered (`accepted.py`)
    }


def _without_hash(answer: Answer) -> dict[str, str]:
    told = dict(answer.plain().get("headers", {}))
    return {name: re.sub(r"hash=[0-9A-F]{64,128}", "hash=HASH", value) for name, value in told.items()}


@check(7, "healthz, readyz, livez say ok")
async def check_007(ctx: Context) -> Any:
    return {path: (await ctx.admin.get(path)).plain() for path in ("/healthz", "/readyz", "/livez")}


@check(8, "/version field set")
async def check_008(ctx: Context) -> Any:
    answer = await ctx.admin.get("/version")
    slash = await ctx.admin.get("/version/")
    return {
        **answer.plain(body=False),
        "fields": {name: type(value).__name__ for name, value in answer.body.items()},
        "major": answer.body["major"],
        "a version": bool(re.match(r"^v1\.\d+\.\d+", answer.body["gitVersion"])),
        "with a slash": slash.plain(body=False),
    }


@check(9, "v2beta1 aggregated for old clients")
async def check_009(ctx: Context) -> Any:
    told = {path: aggregated(await ctx.admin.get(path, accept=AGGREGATED_BETA)) for path in ("/api", "/apis")}
    both = await ctx.admin.get("/api", accept=f"{AGGREGATED},{AGGREGATED_BETA},application/json")
    return {**told, "both": aggregated(both), "nothing known": (await ctx.admin.get("/api", accept="text/html")).plain()}
