"""Discovery and negotiation beside a real server: the same entries, and the same answer to every Accept header."""

from typing import Any

import pytest

from applecart.embedded.kinds.builtin import builtin_kinds
from applecart.embedded.refusals import Refusal
from applecart.embedded.surface.discovery import Discovery
from applecart.embedded.surface.negotiation import choose_answer, choose_discovery, refuse_wrong_number
from applecart.embedded.surface.served import VIRTUAL_KINDS, version_document
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM, DEFINITIONS, GROUP
from tests.embedded.tables.real_api import RealApi, settle
from tests.kubernetes.cluster import FullCluster
from tests.kubernetes.recipe import DEFAULT_KUBE

pytestmark = pytest.mark.kubernetes

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ALL = (*BUILT_IN, *VIRTUAL_KINDS, *CUSTOM)
GROUP_VERSIONS = sorted({(kind.resource.group, kind.resource.version) for kind in ALL})


@pytest.fixture(scope="module")
def real(real_cluster: FullCluster) -> RealApi:
    """With the custom kinds installed."""
    api = RealApi(real_cluster)
    for definition in DEFINITIONS:
        api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    settle(lambda: all(api.call("GET", f"/apis/{GROUP}/v1/{plural}")[0] == 200 for plural in ("anvils", "gadgets")))
    settle(lambda: has_both(api.get("/apis", V2)) and len(resources(api)) == len(("gadgets", "status", "scale", "anvils")))
    return api


def resources(api: RealApi) -> list[Any]:
    code, _, document = api.call("GET", f"/apis/{GROUP}/v1")
    return list(document["resources"]) if code == 200 else []


def has_both(aggregated: Any) -> bool:
    groups = [item for item in aggregated["items"] if item["metadata"].get("name") == GROUP]
    return bool(groups) and len(groups[0]["versions"]) == 2 and len(groups[0]["versions"][0]["resources"]) == 2


def base(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def by_name(entries: list[Any], key: str) -> dict[str, Any]:
    return {entry[key]: entry for entry in entries}


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_every_entry_of_a_resource_list_is_the_real_one(real: RealApi, group: str, version: str) -> None:
    theirs = real.get(base(group, version))
    ours = Discovery(ALL).resource_list(group, version)
    assert ours is not None
    real_entries = by_name(theirs["resources"], "name")
    for entry in ours["resources"]:
        assert list(entry.items()) == list(real_entries[entry["name"]].items())
    assert {**ours, "resources": []} == {**theirs, "resources": []}
    known = by_name(ours["resources"], "name")
    if group != GROUP:  # custom kinds are listed there as they come
        assert list(known) == [name for name in real_entries if name in known]


def test_every_built_in_kind_of_the_server_is_listed_as_the_real_one(real: RealApi) -> None:
    kinds = builtin_kinds()
    for group, version in {(kind.resource.group, kind.resource.version) for kind in kinds}:
        ours = Discovery(kinds).resource_list(group, version)
        assert ours is not None
        real_entries = by_name(real.get(base(group, version))["resources"], "name")
        for entry in ours["resources"]:
            assert entry == real_entries[entry["name"]]


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_every_aggregated_entry_is_the_real_one(real: RealApi, path: str) -> None:
    code, headers, theirs = real.call("GET", path, Accept=V2)
    assert code == 200
    ours = Discovery(ALL).aggregated(choose_discovery(V2), is_core=path == "/api")
    assert {name: headers[name.lower()] for name in ours.headers if name != "ETag"} == {
        name: text for name, text in ours.headers.items() if name != "ETag"
    }
    assert len(ours.etag) == len(headers["etag"])
    document = ours.document
    assert {**document, "items": []} == {**theirs, "items": []}
    real_groups = {item["metadata"].get("name", ""): item for item in theirs["items"]}
    names = [item["metadata"].get("name", "") for item in document["items"]]
    assert names == [name for name in real_groups if name in names]
    for item in document["items"]:
        found = real_groups[item["metadata"].get("name", "")]
        assert item["metadata"] == {name: value for name, value in found["metadata"].items() if value is not None}
        assert [version["version"] for version in item["versions"]] == [version["version"] for version in found["versions"]]
        for version, real_version in zip(item["versions"], found["versions"], strict=True):
            assert {**version, "resources": []} == {**real_version, "resources": []}
            entries = by_name(real_version["resources"], "resource")
            for entry in version["resources"]:
                expected = entries[entry["resource"]]
                served = {sub["subresource"] for sub in entry.get("subresources", [])}
                if served:
                    expected["subresources"] = [sub for sub in expected["subresources"] if sub["subresource"] in served]
                else:
                    expected.pop("subresources", None)
                assert list(entry.items()) == list(expected.items())


def test_the_groups_are_the_real_ones_in_their_order(real: RealApi) -> None:
    theirs = real.get("/apis")
    ours = Discovery(ALL).group_list()
    names = {group["name"] for group in ours["groups"]}
    assert ours == {**theirs, "groups": [group for group in theirs["groups"] if group["name"] in names]}
    for name in names:
        assert Discovery(ALL).group(name) == real.get(f"/apis/{name}")


def test_the_core_versions_are_the_real_ones(real: RealApi, real_cluster: FullCluster) -> None:
    assert Discovery(ALL).core_versions(real_cluster.url.removeprefix("https://")) == real.get("/api")


def test_version_has_the_fields_of_the_real_server(real: RealApi, kube: str) -> None:
    theirs = real.get("/version")
    ours = version_document()
    assert list(ours) == list(theirs)
    if kube != DEFAULT_KUBE:
        return
    for field in ("major", "minor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor", "platform"):
        assert ours[field] == theirs[field]
    assert ours["gitVersion"] == f"{theirs['gitVersion']}+embedded"


META = "g=meta.k8s.io"
ACCEPTED = [
    "application/json",
    "application/yaml",
    "*/*",
    "application/vnd.kubernetes.protobuf,application/json",
    "text/html, */*;q=0.1",
    "application/xml,application/json;q=0.2",
    "application/json;charset=utf-8",
    "application/json;q=x",
    "application/json;sv=v1",
    "application/json;stream=watch",
    "application/json;pretty=1",
    f"application/json;as=Table;v=v1;{META}",
    f"application/yaml;as=Table;v=v1;{META}",
    f"application/json;as=Table;v=v1beta1;{META}",
    f"application/json;as=Table;v=v1;{META},application/json;as=Table;v=v1beta1;{META},application/json",
    f"application/json;as=Table;v=v9;{META},application/json",
    f"application/json;q=0.5,application/json;as=Table;v=v1;{META};q=0.4",
    f"application/json;as=PartialObjectMetadataList;v=v1;{META}",
    f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;{META},application/json",
]
REFUSED = [
    "application/xml",
    "text/*",
    "junk",
    "application/json;v=v1",
    "application/json;sv=v2",
    "application/json;stream=other",
    f"application/json;as=Table;v=v2;{META}",
    f"application/json;as=Other;v=v1;{META}",
    "application/json;as=Table;v=v1",
    f"application/vnd.kubernetes.protobuf;as=Table;v=v1;{META}",
    f"application/json;as=PartialObjectMetadata;v=v1;{META}",
]
SHAPES = {"Table": "table", "PartialObjectMetadataList": "metadata list"}


@pytest.mark.parametrize("accept", ACCEPTED)
@pytest.mark.parametrize("is_custom", [False, True])
def test_an_accepted_header_chooses_the_real_answer(real: RealApi, accept: str, is_custom: bool) -> None:
    path = f"/apis/{GROUP}/v1/anvils" if is_custom else "/api/v1/namespaces"
    code, headers, document = real.call("GET", path, Accept=accept)
    ours = choose_answer(accept, version="v1", is_custom=is_custom, is_list=True)
    assert code == 200
    if headers["content-type"] == "application/vnd.kubernetes.protobuf":
        assert ours.media_type == "application/json"  # ours answers none and takes the next best
        return
    assert ours.media_type == headers["content-type"]
    if not ours.is_yaml:
        assert ours.shape == SHAPES.get(document["kind"], "object")
        if ours.shape != "object":
            assert document["apiVersion"] == f"meta.k8s.io/{ours.meta_version}"


@pytest.mark.parametrize("accept", REFUSED)
@pytest.mark.parametrize("is_custom", [False, True])
def test_a_refused_header_gets_the_real_refusal(real: RealApi, accept: str, is_custom: bool) -> None:
    kind = next(one for one in (CUSTOM if is_custom else BUILT_IN) if one.resource.plural in ("anvils", "namespaces"))
    code, _, document = real.call("GET", f"{base(kind.resource.group, 'v1')}/{kind.resource.plural}", Accept=accept)
    with pytest.raises(Refusal) as caught:
        refuse_wrong_number(choose_answer(accept, version="v1", is_custom=is_custom, is_list=True), kind, is_list=True)
    assert caught.value.code == code == 406
    assert caught.value.document() == document


@pytest.mark.parametrize("accept", ["application/xml", f"application/json;as=PartialObjectMetadataList;v=v1;{META}"])
def test_a_refusal_for_one_object_is_the_real_one(real: RealApi, accept: str) -> None:
    kind = next(one for one in BUILT_IN if one.resource.plural == "namespaces")
    code, _, document = real.call("GET", "/api/v1/namespaces/default", Accept=accept)
    with pytest.raises(Refusal) as caught:
        refuse_wrong_number(choose_answer(accept), kind, is_list=False)
    assert (caught.value.code, caught.value.document()) == (code, document)


def test_a_watch_in_yaml_is_refused_as_by_the_real_server(real: RealApi) -> None:
    code, _, text = real.call("GET", "/api/v1/namespaces?watch=1&timeoutSeconds=1", Accept="application/yaml")
    with pytest.raises(Refusal) as caught:
        choose_answer("application/yaml", is_list=True, is_watch=True)
    assert code == caught.value.code
    assert caught.value.message in " ".join(text.decode().split())
