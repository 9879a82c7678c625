"""Checks 10 to 29: creating objects."""

import json
import re
from typing import Any

import yaml

from tests.conformance.caller import JSON
from tests.conformance.checks import check
from tests.conformance.context import Context
from tests.conformance.kinds import config_map, lease, node, pod, secret, widget

GENERATED_ALPHABET = re.compile(r"^[bcdfghjklmnpqrstvwxz2456789]{5}$")
OVER_ONE_MEBIBYTE = (1 << 20) + 1


@check(10, "metadata keys set on create")
async def check_010(ctx: Context) -> Any:
    kinds = {
        "configmaps": config_map("one", {"a": "1"}, labels={"a": "b"}, annotations={"c": "d"}),
        "secrets": secret("one"),
        "pods": pod("one"),
        "serviceaccounts": {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "one"}},
    }
    told = {name: (await ctx.admin.post(ctx.path(name), body)).plain() for name, body in kinds.items()}
    told["widgets"] = (await ctx.admin.post(ctx.widgets(), widget("one"))).plain()
    told["leases"] = (await ctx.admin.post(ctx.path("leases", group="coordination.k8s.io/v1"), lease("one"))).plain()
    name = ctx.name("one")
    told["nodes"] = (await ctx.admin.post("/api/v1/nodes", node(name))).plain()
    ctx.remove_later(f"/api/v1/nodes/{name}")
    told["namespaces"] = (await ctx.admin.get(f"/api/v1/namespaces/{ctx.namespace}")).plain()
    # What a caller may not choose itself.
    claimed: dict[str, Any] = {"uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "selfLink": "/mine"}
    told["chosen"] = (await ctx.admin.post(ctx.path("configmaps"), config_map("two", **claimed))).plain()
    return told


@check(11, "duplicate is 409 with text and details")
async def check_011(ctx: Context) -> Any:
    await ctx.make(ctx.path("configmaps"), config_map("one"))
    await ctx.make(ctx.widgets(), widget("one"))
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), config_map("one"))).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one"))).plain(),
        "namespace": (
            await ctx.admin.post(
                "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ctx.namespace}}
            )
        ).plain(),
    }


@check(12, "generateName alphabet")
async def check_012(ctx: Context) -> Any:
    told = []
    for _ in range(5):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
        answer = await ctx.admin.post(ctx.path("configmaps"), body)
        name = answer.body["metadata"]["name"]
        ctx.alias(name, "made")
        told.append({**answer.plain(), "alphabet": bool(GENERATED_ALPHABET.match(name.removeprefix("made-")))})
    return told


@check(13, "a generateName of 62 characters gives a name of 63")
async def check_013(ctx: Context) -> Any:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "m" * 61 + "-"}}
    answer = await ctx.admin.post(ctx.path("configmaps"), body)
    name = answer.body["metadata"]["name"]
    return {"status": answer.status, "length": len(name), "stem": name[:58], "kept": answer.body["metadata"]["generateName"]}


@check(14, "no name is 422")
async def check_014(ctx: Context) -> Any:
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}
    custom = widget("one")
    del custom["metadata"]["name"]
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), nameless)).plain(),
        "without metadata": (await ctx.admin.post(ctx.path("configmaps"), {"apiVersion": "v1", "kind": "ConfigMap"})).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), custom)).plain(),
    }


@check(15, "an invalid name is 422 with cause FieldValueInvalid")
async def check_015(ctx: Context) -> Any:
    names = ("Upper", "a_b", "-a", "a" * 254, "a..b", "a/b", "..")
    told: dict[str, Any] = {name: (await ctx.admin.post(ctx.path("configmaps"), config_map(name))).plain() for name in names}
    told["custom"] = (await ctx.admin.post(ctx.widgets(), widget("Upper"))).plain()
    told["account"] = (
        await ctx.admin.post(
            ctx.path("serviceaccounts"), {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "saX"}}
        )
    ).plain()
    bad: dict[str, Any] = {"labels": {"a b": "c", "ok": "no no"}, "annotations": {"x y": ""}, "finalizers": ["nothing here"]}
    told["metadata"] = (await ctx.admin.post(ctx.path("configmaps"), config_map("one", **bad))).plain()
    told["custom metadata"] = (await ctx.admin.post(ctx.widgets(), widget("one", metadata=bad))).plain()
    return told


@check(16, "namespace mismatch is 400")
async def check_016(ctx: Context) -> Any:
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), config_map("one", namespace="other"))).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one", metadata={"namespace": "other"}))).plain(),
    }


@check(17, "missing namespace is 404")
async def check_017(ctx: Context) -> Any:
    missing = ctx.path("configmaps", namespace="nowhere")
    of_widgets = ctx.path("widgets", group="conformance.applecart.dev/v1", namespace="nowhere")
    return {
        "built-in": (await ctx.admin.post(missing, config_map("one"))).plain(),
        "custom": (await ctx.admin.post(of_widgets, widget("one"))).plain(),
        "list": (await ctx.admin.get(missing)).plain(),
    }


@check(18, "kind mismatch is 400")
async def check_018(ctx: Context) -> Any:
    path = ctx.path("configmaps")
    bodies = {
        "other kind": secret("one"),
        "no kind": {"metadata": {"name": "one"}},
        "no version": {"kind": "ConfigMap", "metadata": {"name": "one"}},
        "unknown version": {"apiVersion": "v9", "kind": "ConfigMap", "metadata": {"name": "one"}},
        "unknown kind": {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "one"}},
        "custom kind": widget("one"),
        "options": {"apiVersion": "v1", "kind": "DeleteOptions"},
    }
    told: dict[str, Any] = {name: (await ctx.admin.post(path, body)).plain() for name, body in bodies.items()}
    told["custom"] = (await ctx.admin.post(ctx.widgets(), config_map("one"))).plain()
    told["custom of another version"] = (
        await ctx.admin.post(ctx.widgets(), {**widget("one"), "apiVersion": "conformance.applecart.dev/v2"})
    ).plain()
    return told


@check(19, "a set resourceVersion is refused")
async def check_019(ctx: Context) -> Any:
    refused = {
        "built-in": await ctx.admin.post(ctx.path("configmaps"), config_map("one", resourceVersion="1")),
        "custom": await ctx.admin.post(ctx.widgets(), widget("one", metadata={"resourceVersion": "1"})),
    }
    return {  # 500 is 400 here (`accepted.py`)
        **{name: (answer.status >= 400, answer.body["message"]) for name, answer in refused.items()},
        "no number": (await ctx.admin.post(ctx.path("configmaps"), config_map("one", resourceVersion="abc"))).plain(),
    }


@check(20, "bad JSON is 400")
async def check_020(ctx: Context) -> Any:
    bodies = {
        "half": b'{"apiVersion": "v1"',
        "empty": b"",
        "list": b"[]",
        "null": b"null",
        "wrong type": json.dumps({**config_map("one"), "data": {"a": 1}}).encode(),
        "metadata is text": b'{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}',
        "data is a list": b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":["a"]}',
    }
    told = {name: (await ctx.admin.call("POST", ctx.path("configmaps"), body)).plain() for name, body in bodies.items()}
    told["custom"] = (await ctx.admin.call("POST", ctx.widgets(), b'{"apiVersion": "v1"')).plain()
    return told


@check(21, "an unknown body type is 415")
async def check_021(ctx: Context) -> Any:
    body = json.dumps(config_map("one")).encode()
    kinds = {"xml": "application/xml", "text": "text/plain", "nonsense": "nonsense", "none": None}
    told = {
        name: (await ctx.admin.call("POST", ctx.path("configmaps"), body, content_type=kind)).plain()
        for name, kind in kinds.items()
    }
    of_widget = json.dumps(widget("one")).encode()
    told["custom"] = (await ctx.admin.call("POST", ctx.widgets(), of_widget, content_type="application/xml")).plain()
    told["charset"] = (
        await ctx.admin.call("POST", ctx.path("secrets"), secret("one"), content_type="application/json; charset=utf-8")
    ).plain()
    return told


@check(22, "YAML body")
async def check_022(ctx: Context) -> Any:
    text = yaml.safe_dump(config_map("one", {"a": "1"})).encode()
    of_widget = yaml.safe_dump(widget("one", nickname="joe")).encode()
    bad = b"apiVersion: v1\nkind: [\n"
    return {
        "built-in": (await ctx.admin.call("POST", ctx.path("configmaps"), text, content_type="application/yaml")).plain(),
        "custom": (await ctx.admin.call("POST", ctx.widgets(), of_widget, content_type="application/yaml")).plain(),
        "bad": (await ctx.admin.call("POST", ctx.path("configmaps"), bad, content_type="application/yaml")).plain(),
    }


@check(23, "a dryRun reply has no resourceVersion")
async def check_023(ctx: Context) -> Any:
    told = {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), config_map("one", {"a": "1"}), dryRun="All")).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one"), dryRun="All")).plain(),
        "invalid": (await ctx.admin.post(ctx.path("configmaps"), config_map("A"), dryRun="All")).plain(),
        "unknown value": (await ctx.admin.post(ctx.path("configmaps"), config_map("one"), dryRun="Some")).plain(),
    }
    told["stored"] = (await ctx.admin.get(ctx.path("configmaps", "one"))).plain()
    return told


UNKNOWN = {**config_map("one", {"a": "1"}), "bogus": 1}
DOUBLED = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","name":"two"},"data":{"a":"1","a":"2"}}'


@check(24, "Strict: an unknown field is 400")
async def check_024(ctx: Context) -> Any:
    deep = pod("one")
    deep["spec"]["containers"][0]["imagee"] = "x"
    deep["spec"]["bogus"] = {"a": 1}
    strict = {"fieldValidation": "Strict"}
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), UNKNOWN, **strict)).plain(),
        "deep": (await ctx.admin.post(ctx.path("pods"), deep, **strict)).plain(),
        "doubled": (await ctx.admin.call("POST", ctx.path("configmaps"), DOUBLED, query=strict)).plain(),
        "unknown value": (await ctx.admin.post(ctx.path("configmaps"), UNKNOWN, fieldValidation="Never")).plain(),
    }


@check(25, "Ignore drops unknown fields")
async def check_025(ctx: Context) -> Any:
    ignore = {"fieldValidation": "Ignore"}
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), UNKNOWN, **ignore)).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one", bogus=1), **ignore)).plain(),
        "doubled": (await ctx.admin.call("POST", ctx.path("configmaps"), DOUBLED, query=ignore)).plain(),
    }


@check(26, "Warn header text")
async def check_026(ctx: Context) -> Any:
    deep = pod("one")
    deep["spec"]["containers"][0]["imagee"] = "x"
    deep["spec"]["bogus"] = {"a": 1}
    return {
        "built-in": (await ctx.admin.post(ctx.path("configmaps"), UNKNOWN, fieldValidation="Warn")).plain(),
        "default": (await ctx.admin.post(ctx.path("pods"), deep)).plain(),
        "custom": (await ctx.admin.post(ctx.widgets(), widget("one", bogus=1, other=2))).plain(),
        "doubled": (await ctx.admin.call("POST", ctx.path("configmaps"), DOUBLED)).plain(),
    }


@check(27, "Pod defaults")
async def check_027(ctx: Context) -> Any:
    rich = pod("two", restartPolicy="Never", nodeSelector={"a": "b"}, terminationGracePeriodSeconds=5)
    rich["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
    rich["spec"]["containers"] = [
        {
            "name": "main",
            "image": "example.invalid/app",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
            "readinessProbe": {"httpGet": {"port": 80}},
        }
    ]
    rich["spec"]["volumes"] = [{"name": "v"}, {"name": "s", "secret": {"secretName": "x"}}]
    return {
        "plain": (await ctx.admin.post(ctx.path("pods"), pod("one"))).plain(),
        "rich": (await ctx.admin.post(ctx.path("pods"), rich)).plain(),
        "empty": (
            await ctx.admin.post(ctx.path("pods"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "three"}})
        ).plain(),
    }


@check(28, "Secret stringData")
async def check_028(ctx: Context) -> Any:
    both = secret("one", stringData={"a": "text", "b": "new"}, data={"b": "b2xk", "c": "AA=="})
    return {
        "merged": (await ctx.admin.post(ctx.path("secrets"), both)).plain(),
        "bad base64": (await ctx.admin.post(ctx.path("secrets"), secret("two", data={"a": "!"}))).plain(),
        "bad key": (await ctx.admin.post(ctx.path("secrets"), secret("two", stringData={"a b": "x"}))).plain(),
        "type needs keys": (await ctx.admin.post(ctx.path("secrets"), secret("two", type="kubernetes.io/tls"))).plain(),
    }


@check(29, "a ConfigMap over 1 MiB is 422")
async def check_029(ctx: Context) -> Any:
    large = config_map("one", {"a": "x" * OVER_ONE_MEBIBYTE})
    annotated = config_map("two", annotations={"a": "x" * (256 * 1024 + 1)})
    huge = b'{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"' + b"x" * (3 << 20) + b'"}}'
    return {
        "large": (await ctx.admin.post(ctx.path("configmaps"), large)).plain(),
        "annotations": (await ctx.admin.post(ctx.path("configmaps"), annotated)).plain(),
        "huge": (await ctx.admin.call("POST", ctx.path("configmaps"), huge, content_type=JSON)).plain(),
    }
