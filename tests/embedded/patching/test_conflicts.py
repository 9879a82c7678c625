import pytest

from applecart.embedded.patching.conflicts import Conflict, conflicts_beyond, find_conflicts, refuse_conflicts
from applecart.embedded.patching.entries import APPLY, UPDATE, Entries, Entry, Owner
from applecart.embedded.patching.field_set import NOTHING, FieldSet, Path
from applecart.embedded.patching.ownership import Changes
from applecart.embedded.patching.path_elements import field, key

A: Path = (field("data"), field("a"))
B: Path = (field("data"), field("b"))
APPLIER = Owner("m1", APPLY, "", "")
OTHER = Owner("m2", APPLY, "", "")
UPDATER = Owner("u1", UPDATE, "v1", "")
STATUS = Owner("u1", UPDATE, "apps/v1", "status")


def owning(*paths: Path) -> Entry:
    return Entry(FieldSet.of(paths), "v1")


def changing(*paths: Path) -> Changes:
    return Changes(NOTHING, FieldSet.of(paths), NOTHING)


@pytest.mark.parametrize(
    ("conflicts", "text"),
    [
        ([Conflict(OTHER, A)], 'Apply failed with 1 conflict: conflict with "m2": .data.a'),
        ([Conflict(UPDATER, A)], 'Apply failed with 1 conflict: conflict with "u1" using v1: .data.a'),
        (
            [Conflict(STATUS, A)],
            'Apply failed with 1 conflict: conflict with "u1" with subresource "status" using apps/v1: .data.a',
        ),
        ([Conflict(OTHER, A), Conflict(OTHER, B)], 'Apply failed with 2 conflicts: conflicts with "m2":\n- .data.a\n- .data.b'),
        (
            [Conflict(OTHER, A), Conflict(UPDATER, A)],
            'Apply failed with 2 conflicts: conflicts with "m2":\n- .data.a\nconflicts with "u1" using v1:\n- .data.a',
        ),
    ],
)
def test_the_message_is_the_real_servers(conflicts: list[Conflict], text: str) -> None:
    refusal = refuse_conflicts(conflicts)
    assert (refusal.code, refusal.reason, refusal.message) == (409, "Conflict", text)


def test_each_field_of_each_owner_is_a_cause() -> None:
    path = (field("spec"), field("containers"), key({"name": "x"}), field("image"))
    assert refuse_conflicts([Conflict(UPDATER, path), Conflict(OTHER, A)]).details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "u1" using v1',
                "field": '.spec.containers[name="x"].image',
            },
            {"reason": "FieldManagerConflict", "message": 'conflict with "m2"', "field": ".data.a"},
        ]
    }


def test_only_fields_that_change_under_others_conflict_in_order_of_owner_and_place() -> None:
    entries: Entries = {UPDATER: owning(B, A), OTHER: owning(A), APPLIER: owning(A, B)}
    assert find_conflicts(entries, changing(A, B), APPLIER) == [Conflict(OTHER, A), Conflict(UPDATER, A), Conflict(UPDATER, B)]
    assert find_conflicts(entries, changing(), APPLIER) == []


def test_a_removed_field_is_no_conflict() -> None:
    changes = Changes(FieldSet.of([A]), NOTHING, NOTHING)
    assert find_conflicts({OTHER: owning(A)}, changes, APPLIER) == []


def test_conflicts_about_allowed_fields_are_left_out() -> None:
    conflicts = [Conflict(OTHER, A), Conflict(OTHER, B)]
    assert conflicts_beyond(conflicts, FieldSet.of([A])) == [Conflict(OTHER, B)]
