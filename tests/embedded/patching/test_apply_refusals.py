"""What an applier is told: its configuration cannot be applied, or fields are others'."""

from typing import Any

import pytest
from hypothesis import given

from applecart.embedded.patching.apply import (
    FieldConflict,
    find_conflicts,
    refuse_conflicts,
    refuse_unless_appliable,
    structure_problems,
)
from applecart.embedded.patching.field_set import NOTHING, FieldSet, Path, field, key
from applecart.embedded.patching.managed_fields import APPLY, UPDATE, Entries, ManagerEntry, Owner
from applecart.embedded.patching.structured_merge import Changes
from applecart.embedded.refusals import Refusal
from tests.embedded.patching.json_values import JSON
from tests.embedded.patching.shapes import CONFIG_MAP, POD, PROBE, config_map, pod, probe

SPEC = PROBE.fields["spec"]


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"size": 1, "labels": None, "items": None, "free": [1], "unknown": {"a": 1}}, []),
        ({"labels": [1]}, [".labels: expected map, got array"]),
        ({"items": {"a": 1}}, [".items: expected list, got object"]),
        ({"size": {}}, [".size: expected scalar, got object"]),
        ({"labels": {"a": ["s3cret"]}}, [".labels.a: expected scalar, got array"]),
        ({"order": ["a", {}]}, [".order[1]: expected scalar, got object"]),
        ({"order": ["a", "a"]}, []),
        ({"tags": ["a", "b", "a"]}, ['.tags: duplicate entries for key [="a"]']),
        ({"tags": ["a", None]}, [".tags: element 1: associative list without keys has an element that's an explicit null"]),
        ({"items": ["x"]}, [".items: element 0: associative list with keys may not have non-map elements"]),
        (
            {"items": [{"name": "a"}, {"name": "a", "value": {}}]},
            ['.items: duplicate entries for key [name="a"]', '.items[name="a"].value: expected scalar, got object'],
        ),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            ['.ports: duplicate entries for key [port=1,protocol="TCP"]'],
        ),
    ],
)
def test_problems_name_their_place_and_show_no_value(spec: Any, problems: list[str]) -> None:
    assert structure_problems(spec, SPEC) == problems


@pytest.mark.parametrize(
    ("applied", "text"),
    [
        ({**config_map(), "apiVersion": "v2"}, "invalid object type: /v2, Kind=ConfigMap"),
        ({**config_map(), "apiVersion": "apps/v1"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({**config_map(), "kind": "Secret"}, "invalid object type: /v1, Kind=Secret"),
        ({"metadata": {}}, "invalid object type: /, Kind="),
        (config_map(managedFields=[]), "metadata.managedFields must be nil"),
        (config_map(managedFields="x"), "metadata.managedFields must be nil"),
        (
            {**config_map(), "metadata": 5},
            "failed to create typed patch object (/; /v1, Kind=ConfigMap): .metadata: expected map, got number",
        ),
        (
            config_map([1], namespace="n"),
            "failed to create typed patch object (n/subject; /v1, Kind=ConfigMap): .data: expected map, got array",
        ),
    ],
)
def test_what_cannot_be_applied_is_a_bad_request(applied: dict[str, Any], text: str) -> None:
    with pytest.raises(Refusal) as refused:
        refuse_unless_appliable(applied, config_map(), CONFIG_MAP, "v1")
    assert (refused.value.code, refused.value.message) == (400, text)


def test_several_problems_are_listed() -> None:
    main = {"name": "main", "env": [{"name": "A"}, {"name": "A"}]}
    with pytest.raises(Refusal) as refused:
        refuse_unless_appliable(pod(main, main), None, POD, "v1")
    assert refused.value.message == (
        "failed to create typed patch object (/subject; /v1, Kind=Pod): errors:\n"
        '  .spec.containers[name="main"].env: duplicate entries for key [name="A"]\n'
        '  .spec.containers: duplicate entries for key [name="main"]\n'
        '  .spec.containers[name="main"].env: duplicate entries for key [name="A"]'
    )


def test_what_fits_the_shape_is_taken() -> None:
    applied = probe(items=[{"name": "a"}], tags=["x"])
    refuse_unless_appliable(applied, None, PROBE, applied["apiVersion"])
    refuse_unless_appliable(config_map({"a": "1"}, managedFields=None), config_map(), CONFIG_MAP, "v1")


@given(JSON)
def test_anything_can_be_checked(content: Any) -> None:
    assert all(isinstance(problem, str) for problem in structure_problems(content, PROBE))


A: Path = (field("data"), field("a"))
B: Path = (field("data"), field("b"))
APPLIER = Owner("m1", APPLY, "", "")
OTHER = Owner("m2", APPLY, "", "")
UPDATER = Owner("u1", UPDATE, "v1", "")
STATUS = Owner("u1", UPDATE, "apps/v1", "status")


def owning(*paths: Path) -> ManagerEntry:
    return ManagerEntry(FieldSet.of(paths), "v1")


def changing(*paths: Path) -> Changes:
    return Changes(NOTHING, FieldSet.of(paths), NOTHING)


@pytest.mark.parametrize(
    ("conflicts", "text"),
    [
        ([FieldConflict(OTHER, A)], 'Apply failed with 1 conflict: conflict with "m2": .data.a'),
        ([FieldConflict(UPDATER, A)], 'Apply failed with 1 conflict: conflict with "u1" using v1: .data.a'),
        (
            [FieldConflict(STATUS, A)],
            'Apply failed with 1 conflict: conflict with "u1" with subresource "status" using apps/v1: .data.a',
        ),
        (
            [FieldConflict(OTHER, A), FieldConflict(OTHER, B)],
            'Apply failed with 2 conflicts: conflicts with "m2":\n- .data.a\n- .data.b',
        ),
        (
            [FieldConflict(OTHER, A), FieldConflict(UPDATER, A)],
            'Apply failed with 2 conflicts: conflicts with "m2":\n- .data.a\nconflicts with "u1" using v1:\n- .data.a',
        ),
    ],
)
def test_the_message_is_the_real_servers(conflicts: list[FieldConflict], text: str) -> None:
    refusal = refuse_conflicts(conflicts)
    assert (refusal.code, refusal.reason, refusal.message) == (409, "Conflict", text)


def test_each_field_of_each_owner_is_a_cause() -> None:
    path = (field("spec"), field("containers"), key({"name": "x"}), field("image"))
    assert refuse_conflicts([FieldConflict(UPDATER, path), FieldConflict(OTHER, A)]).details == {
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
    assert find_conflicts(entries, changing(A, B), APPLIER) == [
        FieldConflict(OTHER, A),
        FieldConflict(UPDATER, A),
        FieldConflict(UPDATER, B),
    ]
    assert find_conflicts(entries, changing(), APPLIER) == []


def test_a_removed_field_is_no_conflict() -> None:
    changes = Changes(FieldSet.of([A]), NOTHING, NOTHING)
    assert find_conflicts({OTHER: owning(A)}, changes, APPLIER) == []
