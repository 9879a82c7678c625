"""Discovery documents. The contract tests compare every entry with a real server's."""

import pytest

from applecart.embedded.surface.discovery import Discovery, storage_version_hash
from applecart.embedded.surface.negotiation import DiscoveryAnswer
from applecart.embedded.surface.served import VIRTUAL_KINDS
from tests.embedded.surface.kinds import BUILT_IN, CUSTOM, GROUP, kind

ALL = (*BUILT_IN, *VIRTUAL_KINDS, *CUSTOM)
V2 = DiscoveryAnswer(shape="v2")


@pytest.fixture
def discovery() -> Discovery:
    return Discovery(ALL)


def test_a_resource_list_names_kinds_and_what_is_below_them(discovery: Discovery) -> None:
    listed = discovery.resource_list("", "v1")
    assert listed is not None
    assert "apiVersion" not in listed  # of the core group, as ever
    names = [entry["name"] for entry in listed["resources"]]
    assert names == sorted(names)
    entries = {entry["name"]: entry for entry in listed["resources"]}
    assert entries["pods/eviction"] == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }
    assert entries["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="


def test_a_kind_that_is_only_answered_has_no_storage_hash(discovery: Discovery) -> None:
    listed = discovery.resource_list("authentication.k8s.io", "v1")
    assert listed is not None
    assert [(entry["name"], "storageVersionHash" in entry) for entry in listed["resources"]] == [
        ("selfsubjectreviews", False),
        ("tokenreviews", False),
    ]


def test_two_views_of_one_kind_have_one_storage_hash() -> None:
    events = [one for one in BUILT_IN if one.resource.plural == "events"]
    assert [storage_version_hash(one) for one in events] == ["r2yiGXH7wu8="] * 2


def test_what_is_not_served_has_no_document(discovery: Discovery) -> None:
    assert discovery.resource_list("", "v2") is None
    assert discovery.resource_list("nowhere.dev", "v1") is None
    assert discovery.group("nowhere.dev") is None
    assert discovery.group("") is None


def test_a_group_prefers_its_most_stable_version(discovery: Discovery) -> None:
    group = discovery.group(GROUP)
    assert group is not None
    assert group["preferredVersion"] == {"groupVersion": f"{GROUP}/v1", "version": "v1"}
    assert [one["version"] for one in group["versions"]] == ["v1", "v1beta1"]


def test_a_custom_kind_that_is_going_away_keeps_the_verbs_it_has() -> None:
    leaving = kind(GROUP, "Gadget", "gadgets", is_custom=True, verbs=("get", "delete", "list", "watch", "deletecollection"))
    listed = Discovery([leaving]).resource_list(GROUP, "v1")
    assert listed is not None
    assert listed["resources"][0]["verbs"] == ["delete", "deletecollection", "get", "list", "watch"]


def test_nothing_served_is_an_empty_discovery() -> None:
    empty = Discovery([])
    assert empty.core_versions("h:1")["versions"] == []
    assert empty.group_list()["groups"] == []
    assert empty.aggregated(V2, is_core=True).document["items"] == []


def test_the_aggregated_document_holds_core_or_everything_else(discovery: Discovery) -> None:
    core = discovery.aggregated(V2, is_core=True).document["items"]
    assert [item["metadata"] for item in core] == [{}]
    named = [item["metadata"]["name"] for item in discovery.aggregated(V2, is_core=False).document["items"]]
    assert named == [group["name"] for group in discovery.group_list()["groups"]]


def test_a_client_that_knows_the_aggregated_document_is_told_so(discovery: Discovery) -> None:
    found = discovery.aggregated(V2, is_core=False)
    assert found.document["apiVersion"] == "apidiscovery.k8s.io/v2"
    assert found.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert found.is_known(found.headers["ETag"])
    assert not found.is_known(None)
    assert not found.is_known(found.etag.strip('"'))


def test_the_etag_changes_with_what_is_served_and_with_nothing_else() -> None:
    one, same = Discovery(ALL).aggregated(V2, is_core=False), Discovery(reversed(ALL)).aggregated(V2, is_core=False)
    more = Discovery((*ALL, kind("new.dev", "New", "news", is_custom=True))).aggregated(V2, is_core=False)
    assert one.etag == same.etag != more.etag
    assert one.etag.strip('"').isupper()
    assert len(one.etag) == 130
