"""Check 145: what strict and lenient writes, above all of custom objects, say of fields that are unknown or occur twice."""

import re
from typing import Any

from tests.conformance.caller import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Answer
from tests.conformance.checks import check
from tests.conformance.context import Context, must
from tests.conformance.kinds import WIDGET, widget

YAML = "application/yaml"
HEAD = f'"apiVersion":"{WIDGET}","kind":"Widget"'
CHANGES: dict[str, tuple[str, str]] = {
    "merge twice": (MERGE, '{"spec":{"size":2,"size":3},"spec":{"size":4}}'),
    "merge unknown": (MERGE, '{"spec":{"zz":1,"aa":{"b":1}},"metadata":{"labelz":{"a":"b"}},"top":1}'),
    "merge both": (MERGE, '{"spec":{"zz":1,"size":2,"size":3},"metadata":{"labels":{"a":"b","a":"c"}}}'),
    "merge free": (MERGE, '{"spec":{"free":{"x":1,"x":2}}}'),
    "merge list": (MERGE, '{"spec":{"parts":[{"name":"a","bogus":1},{"name":"b","name":"c"}]}}'),
    "json unknown": (JSON_PATCH, '[{"op":"add","path":"/spec/zz","value":{"a":1,"a":2}}]'),
    "json member of an operation": (JSON_PATCH, '[{"op":"add","path":"/spec/size","value":3,"bogus":1}]'),
    "json twice": (JSON_PATCH, '[{"op":"add","path":"/spec/size","value":3,"value":4}]'),
    "apply twice": (APPLY, f'{{{HEAD},"spec":{{"size":2,"size":3}}}}'),
    "apply unknown": (APPLY, f'{{{HEAD},"spec":{{"size":2,"zz":1}}}}'),
    "apply unknown at the top": (APPLY, f'{{{HEAD},"spec":{{"size":2}},"top":1}}'),
    "apply unknown in metadata": (APPLY, f'{{{HEAD},"metadata":{{"labelz":{{}}}},"spec":{{"size":2}}}}'),
    "apply in yaml": (APPLY, f"apiVersion: {WIDGET}\nkind: Widget\nspec:\n  size: 2\n  size: 3\n  color: red\n"),
    "apply in yaml, unknown": (APPLY, f"apiVersion: {WIDGET}\nkind: Widget\nspec:\n  size: 2\n  zz: 3\n"),
}
NAMED = '{HEAD,"metadata":{"name":"NAME"},'
IN_YAML = "apiVersion: WIDGET\nkind: Widget\nmetadata:\n  name: NAME\n"
MANY = [f'"u{number:03}"' for number in range(120)]
BODIES: dict[str, tuple[str, str]] = {
    "twice": (JSON, NAMED + '"spec":{"size":1,"size":2}}'),
    "twice the same": (JSON, NAMED + '"spec":{"size":2,"size":2}}'),
    "three times": (JSON, NAMED + '"spec":{"size":1,"size":2,"size":3}}'),
    "type twice": (JSON, NAMED + '"kind":"Widget","spec":{"size":1}}'),
    "metadata twice": (JSON, NAMED + '"metadata":{"name":"NAME"},"spec":{"size":1}}'),
    "in metadata": (JSON, '{HEAD,"metadata":{"name":"NAME","name":"NAME","labels":{"a":"b","a":"c"},"z":1},"spec":{"size":1}}'),
    "unknown": (JSON, NAMED + '"zz":1,"spec":{"yy":1,"size":1,"bb":{"c":1}},"aa":[1]}'),
    "unknown in items": (JSON, NAMED + '"spec":{"size":1,"parts":[{"name":"a","z":1},{"name":"b","y":1,"x":1}]}}'),
    "unknown twice": (JSON, NAMED + '"spec":{"size":1,"zz":1,"zz":2}}'),
    "twice inside unknown": (JSON, NAMED + '"spec":{"size":1,"zz":{"a":1,"a":2}}}'),
    "twice inside free": (JSON, NAMED + '"spec":{"size":1,"free":{"a":1,"a":2,"l":[{"b":1,"b":2}]}}}'),
    "twice in items": (JSON, NAMED + '"spec":{"size":1,"parts":[{"name":"a","count":1,"count":2}]}}'),
    "twice and unknown": (JSON, NAMED + '"aa":1,"spec":{"size":1,"color":"red","zz":1,"color":"blue"}}'),
    "escaped": (JSON, NAMED + '"spec":{"size":1,"s\\u0069ze":2,"settings":{"a.b":"1","a.b":"2"}}}'),
    "status": (JSON, NAMED + '"spec":{"size":1},"status":{"phase":"a","zz":1,"phase":"b"}}'),
    "managed fields": (JSON, '{HEAD,"metadata":{"name":"NAME","managedFields":[{"manager":"a","zz":1}]},"spec":{"size":1}}'),
    "wrong case": (JSON, '{HEAD,"metadata":{"name":"NAME","Labels":{}},"spec":{"size":1,"Color":"red"}}'),
    "many": (JSON, NAMED + '"spec":{"size":1,' + ",".join(f"{one}:1" for one in MANY) + "}}"),
    "many twice": (JSON, NAMED + '"spec":{"size":1,"settings":{' + ",".join(f'{one}:"1",{one}:"2"' for one in MANY) + "}}}"),
    "yaml twice": (YAML, IN_YAML + "spec:\n  size: 1\n  size: 2\n"),
    "yaml twice and unknown": (YAML, IN_YAML + "  zz: 1\nspec:\n  size: 1\n  yy: 1\n  color: red\n  color: blue\n"),
    "yaml unknown": (YAML, IN_YAML + "zz: 1\nspec:\n  size: 1\n  yy: 1\n"),
    "yaml twice in two places": (YAML, IN_YAML + "  labels:\n    a: b\n    a: c\nspec:\n  size: 1\n  size: 2\n  size: 3\n"),
    "yaml twice outside": (YAML, IN_YAML + "spec:\n  size: 1\nspec:\n  size: 2\n  size: 3\n"),
    "yaml numbers": (YAML, IN_YAML + "spec:\n  size: 1\n  settings:\n    1: a\n    1: b\n    yes: c\n    yes: d\n"),
    "json as yaml": (YAML, NAMED + '"spec":{"size":1,"size":2}}'),
}


@check(145, "unknown and repeated fields of custom objects")
async def check_145(ctx: Context) -> Any:
    told: dict[str, Any] = {}
    for validation in ("Strict", "Warn"):
        asked = {"fieldValidation": validation}
        for number, (name, (content_type, text)) in enumerate(BODIES.items()):
            at = f"w{number}-{validation.lower()}"
            body = text.replace("HEAD", HEAD).replace("WIDGET", WIDGET).replace("NAME", at).encode()
            made = await ctx.admin.call("POST", ctx.widgets(), body, content_type=content_type, query=asked)
            told[f"create {name} {validation}"] = _said(made)
            if made.status != 201:
                must(await ctx.admin.post(ctx.widgets(), widget(at)))
            revision = (await ctx.admin.get(ctx.widgets(at))).body["metadata"]["resourceVersion"]
            changed = body.replace(b'"size":1', b'"size":5') if content_type == JSON else body.replace(b"size: 1", b"size: 5")
            changed = changed.replace(b'"metadata":{', f'"metadata":{{"resourceVersion":"{revision}",'.encode())
            changed = changed.replace(b"metadata:\n", f"metadata:\n  resourceVersion: '{revision}'\n".encode())
            for sub in ("", "status"):
                put = await ctx.admin.call("PUT", ctx.widgets(at, sub), changed, content_type=content_type, query=asked)
                told[f"update {sub} {name} {validation}"] = _said(put)
                if put.status == 200:
                    changed = changed.replace(revision.encode(), put.body["metadata"]["resourceVersion"].encode())
                    revision = put.body["metadata"]["resourceVersion"]
        for number, (name, (content_type, text)) in enumerate(CHANGES.items()):
            at = f"p{number}-{validation.lower()}"
            must(await ctx.admin.post(ctx.widgets(), widget(at)))
            query = {**asked, **({"fieldManager": "me", "force": "true"} if content_type == APPLY else {})}
            for sub in ("", "status"):
                patched = await ctx.admin.call(
                    "PATCH", ctx.widgets(at, sub), text.encode(), content_type=content_type, query=query
                )
                told[f"patch {sub} {name} {validation}"] = _said(patched)
        told[f"built in {validation}"] = await _built_in(ctx, asked)
    must(await ctx.admin.delete(ctx.widgets()))
    return told


async def _built_in(ctx: Context, asked: dict[str, str]) -> dict[str, Any]:
    """The same ways with a kind whose type is known."""
    name = f"m-{asked['fieldValidation'].lower()}"
    path, head = ctx.path("configmaps"), f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n"
    twice = f"{head}zz: 1\ndata:\n  a: b\n  a: c\n"
    made = await ctx.admin.call("POST", path, twice.encode(), content_type=YAML, query=asked)
    if made.status != 201:
        must(await ctx.admin.call("POST", path, head.encode(), content_type=YAML))
    changes = {
        STRATEGIC: '{"data":{"a":"1","a":"2"},"zz":{"b":1,"b":2}}',
        MERGE: '{"data":{"a":"3","a":"4"},"zz":{"b":1,"b":2}}',
        JSON_PATCH: '[{"op":"add","path":"/data","value":{"a":"5","a":"6"},"x":1},{"op":"add","path":"/zz","value":1}]',
        APPLY: f"{head}data:\n  c: d\n  c: e\n",
    }
    told = {"create": _said(made)}
    for content_type, text in changes.items():
        query = {**asked, **({"fieldManager": "me", "force": "true"} if content_type == APPLY else {})}
        answer = await ctx.admin.call("PATCH", f"{path}/{name}", text.encode(), content_type=content_type, query=query)
        told[content_type] = _said(answer)
    return told


def _said(answer: Answer) -> dict[str, Any]:
    """The object itself is other checks' business."""
    if answer.status >= 400:  # a real server answers some with 500 (`accepted.py`)
        refusal = answer.refusal()
        # A real server prints a strategic patch as Go prints a map.
        refusal["message"] = re.sub(r'"map\[.*\]"', "an object", refusal["message"])
        return {"warning": answer.headers.get("warning"), **refusal}
    return {"status": answer.status, "warning": answer.headers.get("warning")}
