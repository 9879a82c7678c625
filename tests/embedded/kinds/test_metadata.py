"""Metadata: what is refused in a new object and in a change; the tables of documents prove the texts."""

from typing import Any

import pytest

from applecart.embedded.field_errors import FieldError
from applecart.embedded.kinds.metadata import unqualified_finalizers, validate_metadata, validate_metadata_update
from applecart.embedded.kinds.strategy import Strategy

STORED = {
    "name": "a",
    "namespace": "b",
    "uid": "u",
    "resourceVersion": "5",
    "generation": 2,
    "creationTimestamp": "2026-01-02T03:04:05Z",
}
DELETING = {**STORED, "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": 0, "finalizers": ["a.io/b"]}


def new(*, namespaced: bool = True, **meta: Any) -> list[str]:
    errors = validate_metadata(meta, namespaced=namespaced, name_problems=Strategy.name_problems)
    return [str(error) for error in errors]


def changed(old: dict[str, Any], **changes: Any) -> list[str]:
    meta = {name: value for name, value in {**old, **changes}.items() if value is not ...}
    return [str(error) for error in validate_metadata_update(meta, old)]


def test_an_object_needs_a_name() -> None:
    assert new(namespace="b") == ["metadata.name: Required value: name or generateName is required"]


def test_a_generated_name_is_judged_as_a_prefix() -> None:
    assert new(namespace="b", name="a-x", generateName="a-") == []
    assert [text[:22] for text in new(namespace="b", name="a-x", generateName="AB-")] == ["metadata.generateName:"]


def test_namespaces_are_for_namespaced_kinds_alone() -> None:
    assert new(name="a") == ["metadata.namespace: Required value"]
    assert new(name="a", namespace="b", namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


def test_a_finalizer_without_a_domain_is_refused_when_it_comes_and_not_for_ever_after() -> None:
    errors = unqualified_finalizers({"finalizers": ["a.io/b", "mine", "orphan", "yours"]}, {"finalizers": ["mine"]})
    assert [error.field for error in errors] == ["metadata.finalizers[3]"]


def test_managed_fields_say_who_and_how() -> None:
    entry = {"operation": "Guess", "fieldsType": "X", "manager": "m" * 129}
    assert new(name="a", namespace="b", managedFields=[entry]) == [
        'metadata.managedFields[0].operation: Invalid value: "Guess": must be `Apply` or `Update`',
        'metadata.managedFields[0].fieldsType: Invalid value: "X": must be `FieldsV1`',
        "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
    ]


def test_nothing_changed_is_fine() -> None:
    assert changed(STORED) == []
    assert changed(DELETING) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "x"}, 'metadata.name: Invalid value: "x": field is immutable'),
        ({"namespace": ...}, 'metadata.namespace: Invalid value: "": field is immutable'),
        ({"uid": "x"}, 'metadata.uid: Invalid value: "x": field is immutable'),
        ({"deletionGracePeriodSeconds": 3}, "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable"),
        ({"generation": 1}, "metadata.generation: Invalid value: 1: must not be decremented"),
        ({"resourceVersion": ...}, 'metadata.resourceVersion: Invalid value: "": must be specified for an update'),
    ],
)
def test_what_identifies_an_object_never_changes(changes: dict[str, Any], said: str) -> None:
    assert changed(STORED, **changes) == [said]


def test_deletion_cannot_be_taken_back() -> None:
    said = "metadata.deletionTimestamp: Invalid value: null: field is immutable"
    assert changed(DELETING, deletionTimestamp=...) == [said]


def test_a_deleting_object_may_lose_finalizers_but_gets_no_new_ones() -> None:
    assert changed(DELETING, finalizers=[]) == []
    why = "no new finalizers can be added if the object is being deleted, found new finalizers"
    added = changed(DELETING, finalizers=["a.io/b", "c.io/d", "b.io/c"])
    assert added == [f'metadata.finalizers: Forbidden: {why} []string{{"b.io/c", "c.io/d"}}']


def test_annotations_count_in_bytes() -> None:
    large = "\u00e9" * (128 * 1024)
    assert new(name="a", namespace="b", annotations={"a": large}) == [
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    ]


def test_errors_are_field_errors() -> None:
    errors = validate_metadata({}, namespaced=True, name_problems=Strategy.name_problems)
    assert all(isinstance(error, FieldError) for error in errors)
