"""Ownership through creates, updates and patches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.managed_fields import blank_object, reset_fields, track_update
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.path_elements import path_text
from applecart.embedded.patching.values import copied
from applecart.embedded.times import stamp
from tests.embedded.patching.json_values import JSON, OBJECTS
from tests.embedded.patching.shapes import CONFIG_MAP, POD, PROBE, config_map, pod

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def track(old: dict[str, Any] | None, new: dict[str, Any], manager: str = "u1", **more: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"shape": CONFIG_MAP, "subresource": "", "now": NOW, "eager": True, "blank": {"metadata": {}}}
    track_update(old, new, manager=manager, api_version="v1", **{**options, **more})
    return new


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def entry(manager: str, fields: dict[str, Any], operation: str = "Apply") -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": stamp(NOW),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


APPLIED = config_map({"a": "1"}, managedFields=[entry("m1", {"f:data": {"f:a": {}}})])


def test_lazily_an_object_without_owners_stays_without() -> None:
    created = track(None, config_map({"a": "1"}), eager=False)
    assert created == config_map({"a": "1"})
    assert track(created, config_map({"a": "2"}), eager=False) == config_map({"a": "2"})


def test_lazily_an_object_with_owners_is_tracked() -> None:
    changed = track(APPLIED, merge(APPLIED, {"data": {"b": "1"}}), eager=False)
    assert owners(changed) == {"m1": {"f:data": {"f:a": {}}}, "u1": {"f:data": {"f:b": {}}}}


def test_eagerly_a_creator_owns_all_it_sets_but_nothing_of_the_servers() -> None:
    body = config_map(
        {"a": "1"}, namespace="n", uid="u", resourceVersion="1", generation=1, creationTimestamp="t", labels={"l": "1"}
    )
    created = track(None, body)
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "u1",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2026-05-01T12:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
        }
    ]


def test_eagerly_an_object_that_was_not_tracked_from_the_start_stays_so() -> None:
    assert owners(track(config_map({"a": "1"}), config_map({"a": "2"}))) == {}


def test_whoever_changes_a_field_owns_it_and_others_lose_it() -> None:
    changed = track(APPLIED, merge(APPLIED, {"data": {"a": "2"}}))
    assert owners(changed) == {"u1": {"f:data": {"f:a": {}}}}


def test_a_removed_field_is_nobodys() -> None:
    old = track(None, config_map({"a": "1", "b": "1"}), "u0")
    assert owners(track(old, merge(old, {"data": {"a": None}}))) == {"u0": {"f:data": {".": {}, "f:b": {}}}}


def test_an_updater_adds_to_what_it_had_and_its_time_moves() -> None:
    old = track(None, config_map({"a": "1"}))
    changed = track(old, merge(old, {"data": {"b": "1"}}), now=LATER)
    assert owners(changed) == {"u1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert changed["metadata"]["managedFields"][0]["time"] == stamp(LATER)


def test_a_write_without_a_change_leaves_entries_and_times_alone() -> None:
    old = track(None, config_map({"a": "1"}))
    assert track(old, merge(old, {}), "u2", now=LATER) == old


def test_a_client_that_knows_nothing_of_owners_does_not_lose_them() -> None:
    assert owners(track(APPLIED, config_map({"a": "1"}))) == {"m1": {"f:data": {"f:a": {}}}}


@pytest.mark.parametrize("sent", [[], [{}], [None], [{"manager": "", "fieldsV1": {}}]])
def test_a_client_may_clear_the_owners(sent: Any) -> None:
    assert "managedFields" not in track(APPLIED, config_map({"a": "2"}, managedFields=sent))["metadata"]


def test_a_client_may_rewrite_the_owners() -> None:
    sent = [entry("other", {"f:data": {"f:a": {}}}, "Update")]
    assert owners(track(APPLIED, config_map({"a": "1"}, managedFields=sent))) == {"other": {"f:data": {"f:a": {}}}}


def test_a_client_may_not_rewrite_the_owners_through_a_subresource() -> None:
    sent = [entry("other", {"f:data": {"f:a": {}}})]
    changed = track(APPLIED, config_map({"a": "1"}, managedFields=sent), subresource="status")
    assert owners(changed) == {"m1": {"f:data": {"f:a": {}}}}


@pytest.mark.parametrize("sent", ["x", 5, {}, [5], [{"manager": "x"}], [entry("x", {"bad": {}})], None])
def test_garbage_is_ignored(sent: Any) -> None:
    assert owners(track(APPLIED, config_map({"a": "1"}, managedFields=sent))) == {"m1": {"f:data": {"f:a": {}}}}


def test_owners_that_come_with_a_creation_are_kept_even_lazily() -> None:
    sent = [entry("m1", {"f:data": {"f:a": {}}})]
    created = track(None, config_map({"a": "1", "b": "1"}, managedFields=sent), eager=False)
    assert owners(created) == {"u1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}


def test_what_the_endpoint_ignores_is_not_owned() -> None:
    body = {**pod({"name": "main"}), "status": {"phase": "Running"}}
    created = track(None, body, shape=POD, blank=blank_object(POD), reset=("status", "spec.containers"))
    assert owners(created) == {}


def test_paths_that_are_ignored_may_be_deep() -> None:
    assert [path_text(path) for path in reset_fields(("spec", "metadata.labels")).paths()] == [".spec", ".metadata.labels"]


def test_structs_of_built_in_kinds_are_there_from_the_start() -> None:
    assert blank_object(POD) == {"metadata": {}, "spec": {}, "status": {}}
    body = {"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}
    assert owners(track(None, copied(body), shape=POD, blank=blank_object(POD))) == {"u1": {"f:spec": {"f:nodeName": {}}}}
    assert owners(track(None, copied(body), shape=PROBE, blank={})) == {"u1": {"f:spec": {".": {}, "f:nodeName": {}}}}


def test_a_manager_without_a_name_is_unknown() -> None:
    assert list(owners(track(None, config_map({"a": "1"}), ""))) == ["unknown"]


def test_a_subresource_has_its_own_entry() -> None:
    old = track(None, pod({"name": "main"}), shape=POD, blank=blank_object(POD))
    changed = merge(old, {"status": {"phase": "Running"}})
    track(old, changed, shape=POD, blank=blank_object(POD), subresource="status", reset=("spec",))
    assert [entry.get("subresource", "") for entry in changed["metadata"]["managedFields"]] == ["", "status"]


@pytest.mark.parametrize("metadata", [None, 5, [], "x"])
def test_an_object_without_metadata_is_left_alone(metadata: Any) -> None:
    assert track(None, {"metadata": metadata}) == {"metadata": metadata}


@given(OBJECTS, OBJECTS, JSON, JSON)
def test_any_objects_can_be_tracked(old: dict[str, Any], new: dict[str, Any], stored: Any, sent: Any) -> None:
    old["metadata"] = {"managedFields": stored}
    new["metadata"] = {"managedFields": sent}
    before = copied(old)
    track(old, new, shape=PROBE)
    assert old == before
    assert all(one["fieldsV1"] for one in new["metadata"].get("managedFields", []))
