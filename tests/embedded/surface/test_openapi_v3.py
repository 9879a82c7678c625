"""OpenAPI documents and how they are sent."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from applecart.clock import Clock
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.server.server import ADMIN
from applecart.embedded.surface.openapi_v3 import OpenApi, paths_of
from applecart.embedded.surface.served import VIRTUAL_KINDS
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM, GADGET_SCHEMA, GROUP, kind, schema_of
from tests.kube.embedded_api import serving

ALL = (*BUILT_IN, *VIRTUAL_KINDS, *CUSTOM)
PROTOBUF = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"


@pytest.fixture
def openapi() -> OpenApi:
    return OpenApi(ALL, schema_of)


def body(openapi: OpenApi, path: str) -> bytes:
    found = openapi.document(path)
    assert found is not None
    return found[0]


def document(openapi: OpenApi, path: str) -> Any:
    return json.loads(body(openapi, path))


def hash_of(openapi: OpenApi, path: str) -> str:
    url: str = json.loads(openapi.index())["paths"][path]["serverRelativeURL"]
    assert url.startswith(f"/openapi/v3/{path}?hash=")
    return url.partition("=")[2]


def test_the_index_leads_to_one_document_for_each_group_and_version(openapi: OpenApi) -> None:
    paths = json.loads(openapi.index())["paths"]
    assert {"api/v1", "apis/policy/v1", f"apis/{GROUP}/v1", f"apis/{GROUP}/v1beta1"} < set(paths)
    for path in paths:
        assert openapi.document(path) == (body(openapi, path), hash_of(openapi, path))


Ask = Callable[..., Awaitable[Answer]]


@pytest.fixture
async def asked(clock: Clock) -> AsyncIterator[Ask]:
    async with serving(clock) as running:

        async def ask(path: str = "/api/v1", asked_hash: str = "", **headers: str) -> Answer:
            query = {"hash": asked_hash} if asked_hash else {}
            told = {name.replace("_", "-"): value for name, value in headers.items()}
            answer = await running.api.handle(ApiRequest("GET", f"/openapi/v3{path}", query, ADMIN, told))
            assert isinstance(answer, Answer)
            return answer

        yield ask


async def test_an_address_with_its_hash_is_kept_for_good(asked: Ask, clock: Clock) -> None:
    digest = (await asked()).headers["ETag"].strip('"')
    answer = await asked(asked_hash=digest)
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "public, immutable")
    expires = parsedate_to_datetime(answer.headers["Expires"])
    assert expires - clock.now() == pytest.approx(timedelta(days=365), abs=timedelta(seconds=1))
    assert "Cache-Control" not in (await asked()).headers


async def test_an_address_with_an_old_hash_leads_to_the_new_one(asked: Ask) -> None:
    answer = await asked(asked_hash="OLD")
    assert (answer.status, answer.body) == (301, b"")
    paths = json.loads((await asked("")).body)["paths"]
    assert answer.headers["Location"] == paths["api/v1"]["serverRelativeURL"]


async def test_a_client_that_has_the_document_gets_no_body(asked: Ask) -> None:
    etag = (await asked()).headers["ETag"]
    again = await asked(if_none_match=etag)
    assert (again.status, again.body, again.headers["ETag"]) == (304, b"", etag)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("", 200),
        ("application/json", 200),
        ("application/json, */*", 200),
        (f"{PROTOBUF},application/json", 200),
        (PROTOBUF, 406),
    ],
)
async def test_documents_are_json_only(asked: Ask, accept: str, status: int) -> None:
    assert (await asked(accept=accept)).status == status


def test_what_is_not_served_has_no_document(openapi: OpenApi) -> None:
    assert openapi.document("apis/nowhere.dev/v1") is None


def test_a_custom_kind_is_described_by_its_schema(openapi: OpenApi) -> None:
    before = json.dumps(GADGET_SCHEMA)
    schemas = document(openapi, f"apis/{GROUP}/v1")["components"]["schemas"]
    gadget = schemas["com.example.surface.v1.Gadget"]
    assert gadget["description"] == GADGET_SCHEMA["description"]
    assert gadget["properties"]["spec"] == GADGET_SCHEMA["properties"]["spec"]
    assert gadget["properties"]["metadata"]["allOf"][0]["$ref"].endswith("ObjectMeta")
    assert gadget["x-kubernetes-group-version-kind"] == [{"group": GROUP, "kind": "Gadget", "version": "v1"}]
    assert schemas["com.example.surface.v1.GadgetList"]["required"] == ["items"]
    assert json.dumps(GADGET_SCHEMA) == before


def test_every_reference_leads_somewhere(openapi: OpenApi) -> None:
    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*(references(inner) for inner in value.values()))
        return set().union(*(references(inner) for inner in value)) if isinstance(value, list) else set()

    for path in json.loads(openapi.index())["paths"]:
        found = document(openapi, path)
        for reference in references(found):
            _, _, where, name = reference.split("/")
            assert name in found["components"][where]


def test_documents_of_built_in_kinds_are_small(openapi: OpenApi) -> None:
    assert len(body(openapi, "api/v1")) < 150_000  # a tenth of what the real server sends


def test_a_new_kind_changes_its_own_document_only() -> None:
    first = OpenApi(ALL, schema_of)
    first.index()
    second = OpenApi((*ALL, kind(GROUP, "Hammer", "hammers", is_custom=True)), schema_of, first)
    assert hash_of(second, "api/v1") == hash_of(first, "api/v1")
    assert hash_of(second, f"apis/{GROUP}/v1") != hash_of(first, f"apis/{GROUP}/v1")
    assert body(second, "api/v1") is body(first, "api/v1")


def test_a_kind_that_was_replaced_is_described_anew() -> None:
    first = OpenApi(CUSTOM, schema_of)
    first.index()
    replaced = [kind(GROUP, "Anvil", "anvils", namespaced=False, is_custom=True) if one is CUSTOM[2] else one for one in CUSTOM]
    second = OpenApi(replaced, lambda one: {"type": "object", "description": "Another."}, first)
    assert hash_of(second, f"apis/{GROUP}/v1") != hash_of(first, f"apis/{GROUP}/v1")
    assert hash_of(second, f"apis/{GROUP}/v1beta1") == hash_of(first, f"apis/{GROUP}/v1beta1")


def test_a_schema_of_any_shape_is_taken_as_it_is() -> None:
    """Schemas are checked when a CRD is installed; a document must come out whatever was let in."""
    for schema in ({}, {"properties": 5}, {"properties": {"metadata": {"type": "object"}}}, {"x": [1, None]}):
        made = OpenApi(CUSTOM, lambda one, schema=schema: schema)  # type: ignore[misc]
        assert json.loads(body(made, f"apis/{GROUP}/v1"))["components"]["schemas"]


def paths(plural: str) -> dict[str, dict[str, Any]]:
    found = next(one for one in (*BUILT_IN, *VIRTUAL_KINDS, *CUSTOM) if one.resource.plural == plural)
    return dict(paths_of(found, "some.Schema"))


def methods(item: dict[str, Any]) -> list[str]:
    return [name for name in item if name != "parameters"]


def test_a_namespaced_kind_is_listed_everywhere_and_written_in_a_namespace() -> None:
    found = paths("secrets")
    assert {path: methods(item) for path, item in found.items()} == {
        "/api/v1/secrets": ["get"],
        "/api/v1/namespaces/{namespace}/secrets": ["get", "post", "delete"],
        "/api/v1/namespaces/{namespace}/secrets/{name}": ["get", "put", "patch", "delete"],
    }
    assert [one["name"] for one in found["/api/v1/namespaces/{namespace}/secrets/{name}"]["parameters"]] == [
        "name",
        "namespace",
    ]


def test_a_kind_of_the_cluster_has_no_namespace() -> None:
    assert list(paths("anvils")) == [f"/apis/{GROUP}/v1/anvils", f"/apis/{GROUP}/v1/anvils/{{name}}"]


def test_verbs_that_a_kind_lacks_have_no_method() -> None:
    assert methods(paths("namespaces")["/api/v1/namespaces"]) == ["get", "post"]
    (path, item), *more = paths("localsubjectaccessreviews").items()
    assert path == "/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews"
    assert (methods(item), more) == (["post"], [])


def test_what_is_below_an_object_is_about_its_own_kind() -> None:
    found = paths("pods")
    eviction = found["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert eviction["x-kubernetes-group-version-kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    status = found["/api/v1/namespaces/{namespace}/pods/{name}/status"]["patch"]
    assert status["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}


@pytest.mark.parametrize("plural", [one.resource.plural for one in (*BUILT_IN, *CUSTOM)])
def test_every_write_takes_field_validation_a_dry_run_and_a_manager(plural: str) -> None:
    for item in paths(plural).values():
        for method in {"post", "put", "patch"} & item.keys():
            taken = {one["name"] for one in item[method]["parameters"] if one["in"] == "query"}
            assert {"dryRun", "fieldManager", "fieldValidation"} <= taken


def test_no_path_offers_strategic_merge_patches() -> None:
    """kubectl would compute them from schemas that are not there; without the offer it uses its own."""
    for one in (*BUILT_IN, *CUSTOM):
        for _, item in paths_of(one, "some.Schema"):
            if "patch" in item:
                assert list(item["patch"]["requestBody"]["content"]) == [
                    "application/json-patch+json",
                    "application/merge-patch+json",
                    "application/apply-patch+yaml",
                ]
