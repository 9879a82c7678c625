"""The paths of OpenAPI documents."""

from typing import Any

import pytest

from applecart.embedded.surface.openapi_parts import paths_of
from applecart.embedded.surface.served import VIRTUAL_KINDS
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM, GROUP


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
