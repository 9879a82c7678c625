"""Who may have which name."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from applecart.embedded.schema.naming import TakenNames, is_established, status_with_names, taken_names

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
NAMES = {"plural": "pools", "singular": "pool", "kind": "Pool", "listKind": "PoolList", "shortNames": ["po", "pl"]}


def crd(name: str = "pools.x.dev", group: str = "x.dev", **names: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"group": group, "names": {**NAMES, **names}}}


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def test_free_names_are_accepted_and_establish_the_definition() -> None:
    status = status_with_names(crd(categories=["all"]), TakenNames(), NOW)
    assert status["acceptedNames"] == {**NAMES, "categories": ["all"]}
    assert is_established({"status": status})


@pytest.mark.parametrize(
    ("taken", "reason", "message"),
    [
        (TakenNames(frozenset({"pools"})), "PluralConflict", '"pools" is already in use'),
        (TakenNames(frozenset({"pool"})), "SingularConflict", '"pool" is already in use'),
        (TakenNames(frozenset({"po"})), "ShortNamesConflict", '"po" is already in use'),
        (TakenNames(frozenset({"po", "pl"})), "ShortNamesConflict", '["po" is already in use, "pl" is already in use]'),
        (TakenNames(kinds=frozenset({"Pool"})), "KindConflict", '"Pool" is already in use'),
        (TakenNames(kinds=frozenset({"PoolList"})), "ListKindConflict", '"PoolList" is already in use'),
    ],
)
def test_a_taken_name_keeps_a_definition_from_being_established(taken: TakenNames, reason: str, message: str) -> None:
    status = status_with_names(crd(), taken, NOW)
    assert conditions(status) == {"NamesAccepted": ("False", reason), "Established": ("False", "NotAccepted")}
    assert status["conditions"][0]["message"] == message


def test_what_is_not_taken_is_accepted_beside_a_conflict() -> None:
    status = status_with_names(crd(), TakenNames(kinds=frozenset({"Pool"})), NOW)
    assert status["acceptedNames"]["plural"] == "pools"
    assert status["acceptedNames"]["kind"] == ""


def test_an_established_definition_stays_so_when_it_asks_for_a_taken_name() -> None:
    first = status_with_names(crd(), TakenNames(), NOW)
    later = status_with_names({**crd(shortNames=["taken"]), "status": first}, TakenNames(frozenset({"taken"})), NOW)
    assert conditions(later) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert later["acceptedNames"]["shortNames"] == ["po", "pl"]


def test_names_a_definition_has_are_never_taken_from_it() -> None:
    first = status_with_names(crd(), TakenNames(), NOW)
    again = status_with_names({**crd(), "status": first}, TakenNames(frozenset({"pools", "po"}), frozenset({"Pool"})), NOW)
    assert conditions(again)["NamesAccepted"] == ("True", "NoConflicts")


def test_a_freed_name_establishes_whoever_waited_for_it_and_dates_it() -> None:
    waiting = status_with_names(crd(), TakenNames(frozenset({"po"})), NOW)
    later = NOW + timedelta(hours=1)
    status = status_with_names({**crd(), "status": waiting}, TakenNames(), later)
    assert is_established({"status": status})
    assert {one["lastTransitionTime"] for one in status["conditions"]} == {"2026-11-16T13:00:00Z"}


def test_a_condition_that_does_not_change_keeps_its_date() -> None:
    first = status_with_names(crd(), TakenNames(), NOW)
    again = status_with_names({**crd(), "status": first}, TakenNames(), NOW + timedelta(days=1))
    assert again == first


def test_only_other_definitions_of_the_same_group_take_names() -> None:
    others = [
        {**crd("a.x.dev"), "status": {"acceptedNames": {"plural": "as", "kind": "A", "shortNames": ["x"]}}},
        {**crd("b.y.dev", "y.dev"), "status": {"acceptedNames": {"plural": "bs", "kind": "B"}}},
        {**crd(), "status": {"acceptedNames": NAMES}},
        crd("new.x.dev"),
    ]
    assert taken_names(others, "x.dev", but="pools.x.dev") == TakenNames(frozenset({"as", "x"}), frozenset({"A"}))
