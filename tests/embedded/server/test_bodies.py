"""What strict and lenient writes say of fields that are unknown or occur twice, in objects of custom kinds."""

from typing import Any

import msgspec
import pytest

from applecart.clock import Clock
from applecart.kube.transport import Request
from tests.embedded.schema.definition_documents import GROUP, definition
from tests.kube.embedded_api import serving

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZED = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
ABOUT = f'"apiVersion":"{GROUP}/v1","kind":"Drafts","metadata":{{"name":"a"}}'
MERGE = "application/merge-patch+json"
TWICE, UNKNOWN = 'duplicate field "spec.size"', 'unknown field "spec.color"'


@pytest.mark.parametrize(
    ("method", "path", "content_type", "body"),
    [
        ("POST", "", "application/json", f'{{{ABOUT},"spec":{{"size":1,"size":2,"color":"red"}}}}'),
        ("PATCH", "/there", MERGE, '{"spec":{"size":1,"size":2,"color":"red"}}'),
    ],
)
async def test_what_is_unknown_or_twice_is_refused_or_told_in_custom_objects(
    clock: Clock, method: str, path: str, content_type: str, body: str
) -> None:
    async with serving(clock, ["ci"]) as running:

        async def asks(method: str, path: str, body: Any, content_type: str, validation: str) -> tuple[int, str, str]:
            raw = body.encode() if isinstance(body, str) else msgspec.json.encode(body)
            asked = Request(method, path, (("fieldValidation", validation),), body=raw, content_type=content_type)
            answer = await running.transport().send(asked)
            return answer.status, msgspec.json.decode(answer.body).get("message", ""), answer.headers.get("warning", "")

        drafts = f"/apis/{GROUP}/v1/drafts"
        there = {"apiVersion": f"{GROUP}/v1", "kind": "Drafts", "metadata": {"name": "there"}}
        for where, made in ((DEFINITIONS, definition("drafts", SIZED)), (drafts, there)):
            assert (await asks("POST", where, made, "application/json", "Ignore"))[0] == 201
        code, message, _ = await asks(method, drafts + path, body, content_type, "Strict")
        assert (code >= 400, TWICE in message, UNKNOWN in message) == (True, True, True)
        code, _, told = await asks(method, drafts + path, body, content_type, "Warn")
        escaped = [one.replace('"', '\\"') for one in (TWICE, UNKNOWN)]
        assert (code < 300, [one in told for one in escaped]) == (True, [True, True])
