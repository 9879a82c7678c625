from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.entries import (
    APPLY,
    OLD_UPDATES,
    UPDATE,
    UPDATERS_LIMIT,
    BadEntries,
    Entries,
    Entry,
    Owner,
    cap_updaters,
    entries_or_none,
    read_entries,
    write_entries,
)
from applecart.embedded.patching.field_set import FieldSet
from applecart.embedded.patching.path_elements import field
from applecart.embedded.times import stamp
from tests.embedded.patching.json_values import JSON

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


def owning(name: str, time: str = "", api_version: str = "v1") -> Entry:
    return Entry(FieldSet([field(name)]), api_version, time)


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
