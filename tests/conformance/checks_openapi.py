"""Check 146: OpenAPI v2, which Terraform and other old tools read: custom kinds whole, built-in ones without their texts."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.conformance.caller import Answer
from tests.conformance.checks import check
from tests.conformance.checks_crd import CRDS
from tests.conformance.context import LOOK_EVERY_S, SERVED_WITHIN_S, Context, must
from tests.conformance.kinds import GROUP, SIZE_ONLY, definition, version

V2 = "/openapi/v2"
LOOKS = 50
# What our server does not serve is not offered either.
NOT_OURS = {"ignoreStoreReadErrorWithClusterBreakingPotential", "pretty", "shardSelector"}
TEXTS = ("description", "required", "default", "enum", "x-kubernetes-unions")  # of built-in kinds: nobody's facts but Go's
BUILT_IN = ("Pod", "Node", "Secret", "Event", "ConfigMap", "Namespace", "Service", "ServiceAccount")
ODD = {
    "type": "object",
    "properties": {
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
        "none": {"type": "array", "nullable": True, "items": {"type": "string"}},
        "maps": {"type": "object", "additionalProperties": {"type": "integer", "nullable": True}},
        "any": {"type": "integer", "anyOf": [{"minimum": 1}], "allOf": [{"maximum": 5}], "not": {"minimum": 3}},
        "anyOf": {"type": "string", "default": "x"},
        "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {"type": "object"}}},
        "needs": {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
        },
    },
}


@check(146, "/openapi/v2 of custom and built-in kinds, while versions come and go")
async def check_146(ctx: Context) -> Any:
    first = await _until(ctx, lambda document: f"/apis/{GROUP}/v1/widgets" in document["paths"])
    group = f"{ctx.tag}.odd.dev"
    ctx.aliases[ctx.tag.capitalize()] = "Tag"
    told: dict[str, Any] = {
        "root": {name: value for name, value in first.body.items() if name in ("swagger", "security")},
        "shared": _of_group(first.body, GROUP),
        "known": await _told_again(ctx, first.headers["etag"]),
        "text": (await ctx.admin.get(V2, accept="text/html")).status,
        "any": (await ctx.admin.get(V2, accept="*/*")).content_type,
        "built in": {name: _facts(one) for name, one in _reached(first.body["definitions"]).items()},
        "patch of a pod": first.body["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]["consumes"],
    }
    odd = definition("oddities", "Oddity", [version("v1", {"spec": ODD})], group=group)
    name = (await ctx.make_cluster_wide(CRDS, odd))["metadata"]["name"]
    one, two = (f"/apis/{group}/{served}/oddities" for served in ("v1", "v2"))
    told["made"] = _of_group((await _until(ctx, lambda document: one in document["paths"])).body, group)
    both = [version("v1", {"spec": ODD}, storage=False), version("v2", SIZE_ONLY)]
    must(await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"versions": both}}))
    told["two versions"] = sorted(_of_group((await _until(ctx, lambda document: two in document["paths"])).body, group))
    both[0]["served"] = False
    must(await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"versions": both}}))
    told["one is gone"] = sorted(_of_group((await _until(ctx, lambda document: one not in document["paths"])).body, group))
    for third in ("v3alpha1", "v3beta1"):
        versions = [*both, version(third, SIZE_ONLY, storage=False)]
        must(await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"versions": versions}}))
        served = await _until(ctx, _has(f"/apis/{group}/{third}/oddities"))
        told[f"with {third}"] = sorted(_of_group(served.body, group))
    must(await ctx.admin.patch(f"{CRDS}/{name}", {"spec": {"names": {"listKind": "Oddments"}}}))
    renamed = await _until(ctx, lambda document: any("Oddments" in one for one in document["definitions"]))
    told["lists have another name"] = _of_group(renamed.body, group)
    must(await ctx.admin.delete(f"{CRDS}/{name}"))
    told["all are gone"] = _of_group((await _until(ctx, lambda document: two not in document["paths"])).body, group)
    return told


def _has(path: str) -> Callable[[Any], bool]:
    return lambda document: path in document["paths"]


async def _told_again(ctx: Context, etag: str) -> int:
    """What a client is answered that has the document; it may be put together anew meanwhile, for kinds of other checks."""
    answer = await ctx.admin.get(V2, headers={"If-None-Match": etag})
    for _ in range(LOOKS):
        if answer.status == 304:
            break
        await asyncio.sleep(LOOK_EVERY_S)
        answer = await ctx.admin.get(V2, headers={"If-None-Match": answer.headers["etag"]})
    return answer.status


async def _until(ctx: Context, holds: Callable[[Any], bool]) -> Answer:
    """A real server puts the document together about a second after a change."""
    async with asyncio.timeout(SERVED_WITHIN_S):
        while True:
            answer = await ctx.admin.get(V2)
            if isinstance(answer.body, dict) and holds(answer.body):
                return answer
            await asyncio.sleep(LOOK_EVERY_S)


def _of_group(document: Any, group: str) -> dict[str, Any]:
    shared, kinds = document["parameters"], "x-kubernetes-group-version-kind"
    return {
        **{
            name: _schema(one)
            for name, one in document["definitions"].items()
            if any(each["group"] == group for each in one.get(kinds, ()))
        },
        **{
            path: {
                method: _operation(one, item.get("parameters", []), shared)
                for method, one in item.items()
                if method != "parameters"
            }
            for path, item in document["paths"].items()
            if path.startswith(f"/apis/{group}/")
        },
    }


def _schema(one: Any) -> Any:
    """What describes identity is another project's text."""
    if isinstance(one, dict) and isinstance(one.get("properties"), dict):
        one = {**one, "properties": {name: _schema(inner) for name, inner in one["properties"].items()}}
        for name in ("apiVersion", "kind", "metadata", "items"):
            if name in one["properties"]:
                one["properties"][name] = {key: v for key, v in one["properties"][name].items() if key != "description"}
    return one


def _operation(one: Any, of_path: list[Any], shared: Any) -> Any:
    """Where a parameter stands, and what it is for, is each server's own."""
    parameters = {}
    for each in (*one.get("parameters", []), *of_path):
        said = shared[each["$ref"].rsplit("/", 1)[1]] if "$ref" in each else each
        if said["name"] not in NOT_OURS:
            parameters[said["name"]] = {key: value for key, value in said.items() if key not in ("name", "description")}
    return {**one, "parameters": parameters}


def _reached(definitions: Any) -> dict[str, Any]:
    """The definitions of the built-in kinds, and all that these refer to."""
    found: dict[str, Any] = {}
    waiting = [f"io.k8s.api.core.v1.{kind}" for kind in BUILT_IN]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += [text.rsplit("/", 1)[1] for text in _references(definitions[name])]
    return found


def _references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [one for each in value for one in _references(each)]
    if not isinstance(value, dict):
        return []
    return [one for key, each in value.items() for one in ([each] if key == "$ref" else _references(each))]


def _facts(value: Any) -> Any:
    if isinstance(value, list):
        return [_facts(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {key: _facts(one) for key, one in each.items()} if name == "properties" else _facts(each)
        for name, each in value.items()
        if name not in TEXTS
    }
