"""Owners as they are written down, and through plain writes."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applecart.api.meta import stamp
from applecart.embedded.patching.field_set import FieldSet, field, path_text
from applecart.embedded.patching.managed_fields import (
    APPLY,
    NEVER_OWNED,
    OLD_UPDATES,
    UPDATE,
    UPDATERS_LIMIT,
    BadEntries,
    Entries,
    ManagerEntry,
    Owner,
    Writer,
    cap_updaters,
    entries_or_none,
    read_entries,
    reset_fields,
    track_update,
    write_entries,
)
from applecart.embedded.patching.merge import merge
from applecart.embedded.patching.values import copied
from tests.embedded.patching.json_values import JSON, OBJECTS
from tests.embedded.patching.shapes import CONFIG_MAP, POD, PROBE, config_map, pod

START = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = {
    "manager": "m",
    "operation": "Apply",
    "apiVersion": "v1",
    "time": "2026-01-01T00:00:00Z",
    "fieldsType": "FieldsV1",
    "fieldsV1": {"f:data": {"f:a": {}}},
    "subresource": "status",
}


def at(minutes: int) -> str:
    return stamp(START + timedelta(minutes=minutes))


def owning(name: str, time: str = "", api_version: str = "v1") -> ManagerEntry:
    return ManagerEntry(FieldSet([field(name)]), api_version, time)


def updater(name: str, api_version: str = "v1") -> Owner:
    return Owner(name, UPDATE, api_version, "")


def test_entries_are_read_and_written_alike() -> None:
    assert write_entries(read_entries([GOOD])) == [GOOD]
    assert list(write_entries(read_entries([GOOD]))[0]) == list(GOOD)


def test_an_applier_is_one_owner_in_all_versions_and_an_updater_one_per_version() -> None:
    entries = read_entries(
        [{**GOOD, "apiVersion": version, "operation": how} for how in (APPLY, UPDATE) for version in ("v1", "v2")]
    )
    assert [(owner.operation, owner.api_version) for owner in entries] == [(APPLY, ""), (UPDATE, "v1"), (UPDATE, "v2")]
    assert entries[Owner("m", APPLY, "", "status")].api_version == "v2"


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "Frob"},
        {"operation": None},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsType": ""},
        {"manager": 5},
        {"time": 5},
        {"subresource": []},
        {"fieldsV1": {"bad": {}}},
        {"fieldsV1": 5},
    ],
)
def test_one_bad_entry_makes_all_bad(change: dict[str, Any]) -> None:
    with pytest.raises(BadEntries):
        read_entries([GOOD, {**GOOD, **change}])


@pytest.mark.parametrize("entries", ["x", 5, {}, [5], [None], [[]]])
def test_anything_else_is_no_list_of_entries(entries: Any) -> None:
    with pytest.raises(BadEntries):
        read_entries(entries)
    assert entries_or_none(entries) == {}


@given(JSON)
def test_anything_can_be_read_as_entries_or_none(entries: Any) -> None:
    write_entries(entries_or_none(entries))
    write_entries(entries_or_none([{**GOOD, "fieldsV1": entries}]))
    write_entries(entries_or_none([{**GOOD, "time": entries}]))


def test_appliers_come_first_then_the_oldest_then_by_name() -> None:
    entries: Entries = {
        updater("z"): owning("a", at(0)),
        updater("a"): owning("a", at(1)),
        Owner("late", APPLY, "", ""): owning("a", at(9)),
        Owner("timeless", APPLY, "", ""): owning("a"),
        Owner("b", UPDATE, "v1", "status"): owning("a", at(1)),
        Owner("b", UPDATE, "v1", ""): owning("a", at(1)),
        updater("odd"): owning("a", "no time"),
    }
    written = [(entry["manager"], entry.get("subresource", "")) for entry in write_entries(entries)]
    assert written == [("timeless", ""), ("late", ""), ("odd", ""), ("z", ""), ("a", ""), ("b", ""), ("b", "status")]


def test_entries_of_one_second_come_by_name_whatever_its_fractions() -> None:
    """A client may send fractions; the real server compares whole seconds."""
    entries: Entries = {
        updater("a"): owning("a", "2026-05-01T12:00:00.9Z"),
        updater("b"): owning("a", "2026-05-01T12:00:00.1Z"),
    }
    assert [entry["manager"] for entry in write_entries(entries)] == ["a", "b"]


def test_an_entry_without_a_time_is_written_without_one() -> None:
    assert "time" not in write_entries({updater("a"): owning("a")})[0]


def test_the_oldest_updaters_are_merged_beyond_the_limit() -> None:
    entries: Entries = {updater(f"u{number:02}"): owning(f"f{number}", at(number)) for number in range(UPDATERS_LIMIT + 2)}
    entries[Owner("applier", APPLY, "", "")] = owning("z", at(0))
    capped = cap_updaters(entries)
    assert len([owner for owner in capped if owner.operation == UPDATE]) == UPDATERS_LIMIT
    assert capped[updater(OLD_UPDATES)].fields == FieldSet(map(field, ("f0", "f1", "f2")))
    assert capped[updater(OLD_UPDATES)].time == at(2)
    assert Owner("applier", APPLY, "", "") in capped


def test_of_equally_old_updaters_the_first_by_name_are_merged() -> None:
    entries: Entries = {updater(f"u{number:02}"): owning(f"f{number}", at(0)) for number in range(UPDATERS_LIMIT, -1, -1)}
    assert cap_updaters(entries)[updater(OLD_UPDATES)].fields == FieldSet(map(field, ("f0", "f1")))


def test_few_updaters_are_left_alone() -> None:
    entries: Entries = {updater(f"u{number}"): owning("a", at(number)) for number in range(UPDATERS_LIMIT)}
    assert cap_updaters(entries) == entries


def test_merging_goes_on_in_the_same_bucket_and_loses_no_field() -> None:
    entries: Entries = {}
    for number in range(40):
        entries[updater(f"u{number:02}", "v1" if number % 3 else "v2")] = owning(f"f{number}", at(number))
        entries = cap_updaters(entries)
        assert len(entries) <= UPDATERS_LIMIT + 1
    owned = {path for entry in entries.values() for path in entry.fields.paths()}
    assert owned == {(field(f"f{number}"),) for number in range(40)}


def test_a_bucket_that_is_younger_than_another_updater_is_not_lost() -> None:
    entries: Entries = {updater(f"u{number}"): owning(f"f{number}", at(number)) for number in range(UPDATERS_LIMIT)}
    entries[updater(OLD_UPDATES)] = owning("old", at(0))  # "ancient-changes" comes before "u0"
    entries[updater("a")] = owning("a", "")
    owned = {path for entry in cap_updaters(entries).values() for path in entry.fields.paths()}
    assert owned == {(field(name),) for name in ("a", "old", *(f"f{number}" for number in range(UPDATERS_LIMIT)))}


NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
BLANK_POD: dict[str, Any] = {"metadata": {}, "spec": {}, "status": {}}


def track(old: dict[str, Any] | None, new: dict[str, Any], manager: str = "u1", **more: Any) -> dict[str, Any]:
    track_update(
        old, new, Writer(manager, **{"shape": CONFIG_MAP, "api_version": "v1", "now": NOW, "blank": {"metadata": {}}, **more})
    )
    tracked: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(new))  # as it is stored and read again
    return tracked


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


def test_a_creator_owns_all_it_sets_but_nothing_of_the_servers() -> None:
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


def test_an_object_without_owners_has_none_until_somebody_applies() -> None:
    assert owners(track(config_map({"a": "1"}), config_map({"a": "2"}))) == {}


def test_whoever_changes_a_field_owns_it_and_others_lose_it() -> None:
    changed = track(APPLIED, merge(copied(APPLIED), {"data": {"a": "2"}}))
    assert owners(changed) == {"u1": {"f:data": {"f:a": {}}}}


def test_a_removed_field_is_nobodys() -> None:
    old = track(None, config_map({"a": "1", "b": "1"}), "u0")
    assert owners(track(old, merge(copied(old), {"data": {"a": None}}))) == {"u0": {"f:data": {".": {}, "f:b": {}}}}


def test_an_updater_adds_to_what_it_had_and_its_time_moves() -> None:
    old = track(None, config_map({"a": "1"}))
    changed = track(old, merge(copied(old), {"data": {"b": "1"}}), now=LATER)
    assert owners(changed) == {"u1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}
    assert changed["metadata"]["managedFields"][0]["time"] == stamp(LATER)


def test_an_updater_that_takes_one_field_and_removes_another_keeps_only_what_is_there() -> None:
    old = track(None, config_map({"a": "1", "b": "1"}))
    changed = track(old, merge(copied(old), {"data": {"a": None, "c": "1"}}))
    assert owners(changed) == {"u1": {"f:data": {".": {}, "f:b": {}, "f:c": {}}}}


def test_a_write_without_a_change_leaves_entries_and_times_alone() -> None:
    old = track(None, config_map({"a": "1"}))
    assert track(old, merge(copied(old), {}), "u2", now=LATER) == old


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


def test_what_is_the_servers_own_is_lost_by_whoever_claimed_it_once_it_changes() -> None:
    claimed = entry("u1", {"f:metadata": {"f:generation": {}}, "f:data": {"f:b": {}}}, "Update")
    old = config_map({"a": "1", "b": "1"}, generation=1, managedFields=[claimed])
    changed = track(old, merge(copied(old), {"data": {"a": "2"}, "metadata": {"generation": 2}}))
    assert owners(changed) == {"u1": {"f:data": {"f:a": {}, "f:b": {}}}}


def test_owners_that_come_with_a_creation_keep_what_the_creator_does_not_take() -> None:
    sent = [entry("m1", {"f:data": {"f:a": {}}})]
    created = track(None, config_map({"a": "1", "b": "1"}, managedFields=sent))
    assert owners(created) == {"u1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}}


def test_what_the_endpoint_ignores_is_not_owned() -> None:
    body = {**pod({"name": "main"}), "status": {"phase": "Running"}}
    created = track(None, body, shape=POD, blank=BLANK_POD, reset=("status", "spec.containers"))
    assert owners(created) == {}


def test_paths_that_are_ignored_may_be_deep() -> None:
    assert [path_text(path) for path in reset_fields(("spec", "metadata.labels")).paths()] == [".spec", ".metadata.labels"]


def test_structs_of_built_in_kinds_are_there_from_the_start() -> None:
    body = {"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}
    assert owners(track(None, copied(body), shape=POD, blank=BLANK_POD)) == {"u1": {"f:spec": {"f:nodeName": {}}}}
    assert owners(track(None, copied(body), shape=PROBE, blank={})) == {"u1": {"f:spec": {".": {}, "f:nodeName": {}}}}


def test_a_manager_without_a_name_is_unknown() -> None:
    assert list(owners(track(None, config_map({"a": "1"}), ""))) == ["unknown"]


def test_a_subresource_has_its_own_entry() -> None:
    old = track(None, pod({"name": "main"}), shape=POD, blank=BLANK_POD)
    changed = merge(copied(old), {"status": {"phase": "Running"}})
    changed = track(old, changed, shape=POD, blank=BLANK_POD, subresource="status", reset=("spec",))
    assert [entry.get("subresource", "") for entry in changed["metadata"]["managedFields"]] == ["", "status"]


@pytest.mark.parametrize("metadata", [None, 5, [], "x"])
def test_an_object_without_metadata_is_left_alone(metadata: Any) -> None:
    assert track(None, {"metadata": metadata}) == {"metadata": metadata}


ITEMS = st.lists(
    st.fixed_dictionaries({}, optional={"name": st.sampled_from(["a", "b", "a b", 'a"', "é"]), "env": JSON}), max_size=3
)
METADATA = st.fixed_dictionaries(
    {},
    optional={"name": st.text(), "labels": JSON, "finalizers": JSON, "ownerReferences": JSON, "creationTimestamp": st.none()},
)
BLANK = {"metadata": {"creationTimestamp": None}, "spec": {"containers": None}, "status": {}}


@example({}, {}, [{"name": "a b"}, {"name": "a"}], {})  # in another order than as texts
@example({}, {}, [{"name": "a", "env": "x"}, {"name": "a"}], {})
@example({}, {}, None, {})
@example({}, {"containers": {"a": None}}, None, {})  # nothing that a list holds
@given(METADATA, OBJECTS, ITEMS | st.none(), OBJECTS)
def test_a_creation_is_written_down_as_a_comparison_with_nothing_finds_it(
    metadata: dict[str, Any], spec: dict[str, Any], containers: Any, status: dict[str, Any]
) -> None:
    spec = {**spec, "containers": containers} if containers is not None else spec
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    for writer in (
        Writer("m", POD, "v1", START, blank=BLANK),
        Writer("m", POD, "v1", START, blank=BLANK, reset=("status",)),
        Writer("m", PROBE, "v1", START),
    ):
        found = (writer.changes(None, obj).taken - NEVER_OWNED).written()
        assert list(walked(json.loads(writer.text_of_new(obj) or "{}"))) == list(walked(found))


def walked(fields: dict[str, Any], at: str = "") -> Iterator[str]:
    for name, below in fields.items():
        yield f"{at} {name}"
        yield from walked(below, f"{at} {name}")


@given(OBJECTS, OBJECTS, JSON, JSON)
def test_any_objects_can_be_tracked(old: dict[str, Any], new: dict[str, Any], stored: Any, sent: Any) -> None:
    old["metadata"] = {"managedFields": stored}
    new["metadata"] = {"managedFields": sent}
    before = copied(old)
    tracked = track(old, new, shape=PROBE)
    assert old == before
    assert all(one["fieldsV1"] for one in tracked["metadata"].get("managedFields", []))
