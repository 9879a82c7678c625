"""OpenAPI v2: what older tools read, and what it costs to keep it true."""

import json
from typing import Any

import pytest

from applecart.clock import Clock
from applecart.embedded.kinds.builtin import builtin_kinds
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.server.server import ADMIN
from applecart.embedded.surface import openapi, openapi_v2
from applecart.embedded.surface.openapi_v2 import OpenApiV2
from applecart.embedded.surface.served import VIRTUAL_KINDS, Served
from tests.embedded.schema.definition_documents import definition
from tests.embedded.surface.kinds import CUSTOM, GROUP, kind, schema_of
from tests.kube.embedded_api import serving

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ALL = (*builtin_kinds(), *VIRTUAL_KINDS, *CUSTOM)


def document(made: OpenApiV2) -> Any:
    return json.loads(made.document()[0])


def test_every_reference_leads_somewhere() -> None:
    metrics = kind("metrics.k8s.io", "PodMetrics", "pods", version="v1beta1")  # computed, and of no published type
    found = document(OpenApiV2((*ALL, metrics), schema_of))
    waiting: list[Any] = [found]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if isinstance(one.get("$ref"), str):
                _, part, name = one["$ref"].split("/")
                assert name in found[part], one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def test_every_operation_has_a_name_of_its_own() -> None:
    paths = document(OpenApiV2(ALL, schema_of))["paths"]
    names = [one["operationId"] for item in paths.values() for method, one in item.items() if method != "parameters"]
    assert len(set(names)) == len(names)


def test_terraform_finds_every_kind_by_its_group_version_and_kind() -> None:
    found = document(OpenApiV2(ALL, schema_of))["definitions"]
    known = [
        (each["group"], each["version"], each["kind"])
        for one in found.values()
        for each in one.get("x-kubernetes-group-version-kind", ())
    ]
    for one in ALL:
        assert (one.resource.group, one.resource.version, one.resource.kind) in known
    assert len(set(known)) == len(known)


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "object", "nullable": True, "properties": {"a": {}}}, {}),
        ({"type": "array", "x-kubernetes-preserve-unknown-fields": True}, {"x-kubernetes-preserve-unknown-fields": True}),
        ({"type": "integer", "default": 1, "anyOf": [{"minimum": 1}]}, {"type": "integer"}),
        (
            {"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "nullable": True}, "b": {}}},
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {}}},
        ),
        (
            {"type": "object", "required": ["a"], "additionalProperties": {"type": "string", "nullable": True}},
            {"type": "object", "additionalProperties": {}},
        ),
        (
            {"type": "object", "properties": {"default": {"type": "string"}, "not": {"type": "string"}}},
            {"type": "object", "properties": {"default": {"type": "string"}, "not": {"type": "string"}}},
        ),
    ],
)
def test_what_v2_cannot_say_is_left_out(schema: Any, shown: Any) -> None:
    whole = {"type": "object", "properties": {"spec": schema}}
    found = document(OpenApiV2(CUSTOM[2:], lambda one: whole))["definitions"]
    assert found[f"{'.'.join(reversed(GROUP.split('.')))}.v1.Anvil"]["properties"]["spec"] == shown


def test_only_what_changed_is_described_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    first = OpenApiV2(ALL, schema_of)
    first.document()
    described: list[str] = []

    def paths_of(one: Served) -> tuple[()]:
        described.append(one.resource.plural)
        return ()

    monkeypatch.setattr(openapi_v2, "paths_of", paths_of)
    between = OpenApiV2(ALL, schema_of, first)  # nobody asked
    second = OpenApiV2((*ALL, kind(GROUP, "Hammer", "hammers", is_custom=True)), schema_of, between)
    assert second.document() is second.document()
    assert described == ["hammers"]
    assert OpenApiV2(ALL, schema_of, first).document() == first.document()


@pytest.mark.parametrize("has_previous", [False, True])
def test_what_was_made_on_the_loop_is_not_made_again_beside_it(monkeypatch: pytest.MonkeyPatch, has_previous: bool) -> None:
    """To hash 10 MB is too much for the loop: all pieces were thrown away, also those of the document before."""
    previous = OpenApiV2(ALL, schema_of) if has_previous else None
    if previous:
        previous.document()
    made, described, paths_of = OpenApiV2(ALL, schema_of, previous), [], openapi_v2.paths_of

    def noted(one: Served) -> Any:
        described.append(one.resource.plural)
        return paths_of(one)

    monkeypatch.setattr(openapi_v2, "paths_of", noted)
    monkeypatch.setattr(openapi_v2, "HASHED_IN_A_STEP", 1)
    monkeypatch.setattr(openapi, "STEPS_OF_A_KIND", 1)
    with pytest.raises(TooMuchForTheLoop), on_the_loop():
        made.document()
    made.document()
    assert len(described) == (0 if has_previous else len(ALL))


async def test_a_client_that_has_the_document_gets_no_body_until_a_kind_comes(clock: Clock) -> None:
    async with serving(clock) as running:

        async def asked(
            method: str = "GET", path: str = "/openapi/v2", body: bytes = b"", headers: dict[str, str] | None = None
        ) -> Answer:
            told = {"content-type": "application/json", **(headers or {})}
            answer = await running.api.handle(ApiRequest(method, path, {}, ADMIN, told, body))
            assert isinstance(answer, Answer)
            return answer

        etag = (await asked()).headers["ETag"]
        known = {"if-none-match": etag}
        again = await asked(headers=known)
        assert (again.status, again.body) == (304, b"")
        assert (await asked(headers={"accept": "text/html"})).status == 406
        made = await asked("POST", DEFINITIONS, json.dumps(definition("pools", {"type": "object"})).encode())
        assert made.status == 201
        assert (await asked(headers=known)).status == 200
