"""Normalisation takes out what is accidental and keeps what a client can act on."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.normal import normalise

UID = "0d4c5c1e-7b39-4b6e-9f59-3a0a4c4f3c11"
OTHER_UID = "9f1b3c77-0d7c-4d7e-8a53-6f0f5b2f0a22"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
cases: list[tuple[str, Any, Any]] = [
    ("an uid", {"uid": UID}, {"uid": "uid1"}),
    ("an uid in a text", f"uid {UID}, not {OTHER_UID}", "uid uid1, not uid2"),
    ("the same uid twice", [UID, OTHER_UID, UID], ["uid1", "uid2", "uid1"]),
    ("a time", {"creationTimestamp": "2030-01-02T03:04:05Z"}, {"creationTimestamp": "a time"}),
    ("a time in microseconds", "2030-01-02T03:04:05.678901Z", "a time in microseconds"),
    ("an address", "dial 127.0.0.1:6443 failed", "dial an address failed"),
    ("a continue token", {"continue": "eyJ2Ijo"}, {"continue": "a token"}),
    ("no continue token", {"continue": ""}, {"continue": ""}),
    ("ages in a Table", {"cells": ["one", "5m3s", "0s", 7]}, {"cells": ["one", "an age", "an age", 7]}),
    ("an age elsewhere", {"value": "5s"}, {"value": "5s"}),
    ("revisions in a message", "too old resource version: 1 (5230)", "too old resource version: N (M)"),
    ("a recorded revision", "the ResourceVersion in record (12)", "the ResourceVersion in record (N)"),
    ("a line of a source", 'in scheme "pkg/runtime/scheme.go:111"', 'in scheme "pkg/runtime/scheme.go:N"'),
    ("a whole object in a message", 'patch: Invalid value: "{\\"a\\":1}": no', "patch: Invalid value: an object: no"),
    ("a short value in a message", 'spec: Invalid value: "pink": no', 'spec: Invalid value: "pink": no'),
    ("managed fields", {"managedFields": [{"manager": "m"}], "name": "x"}, {"name": "x"}),
    ("a tuple, which JSON does not know", ("a", ("b",)), ["a", ["b"]]),
    ("numbers", {"a": 1, "b": 1.5, "c": None, "d": True}, {"a": 1, "b": 1.5, "c": None, "d": True}),
]


@pytest.mark.parametrize(("value", "wanted"), [case[1:] for case in cases], ids=[case[0] for case in cases])
def test_what_differs_at_every_call_is_replaced(value: Any, wanted: Any) -> None:
    assert normalise(value, {}) == wanted


def revisions(*numbers: str) -> list[dict[str, Any]]:
    return [{"metadata": {"resourceVersion": number}} for number in numbers]


def test_revisions_become_their_order_as_numbers_not_as_texts() -> None:
    assert normalise(revisions("1000", "999", "1000"), {}) == revisions("rv2", "rv1", "rv2")


def test_a_revision_that_is_no_number_stays() -> None:
    assert normalise(revisions("abc", ""), {}) == revisions("abc", "")


def test_the_revision_of_a_list_takes_no_part_in_the_order() -> None:
    listed = {"metadata": {"resourceVersion": "50"}, "items": revisions("70")}
    assert normalise(listed, {}) == {"metadata": {"resourceVersion": "rv of a list"}, "items": revisions("rv1")}


def test_names_of_the_run_are_replaced_everywhere_and_the_longest_first() -> None:
    value = {"c1-abc": ["in c1-abc", "and abc"]}
    assert normalise(value, {"abc": "tag", "c1-abc": "ns"}) == {"ns": ["in ns", "and tag"]}


def test_causes_and_their_texts_in_the_message_are_sorted_together() -> None:
    def status(*fields: str) -> dict[str, Any]:
        causes = [{"field": field, "message": "wrong", "reason": "FieldValueInvalid"} for field in fields]
        listed = ", ".join(f"{field}: wrong" for field in fields)
        return {"message": f'Widget "x" is invalid: [{listed}]', "details": {"causes": causes}}

    assert normalise(status("b", "a"), {}) == normalise(status("a", "b"), {}) == status("a", "b")


def test_managed_fields_of_a_check_about_them_are_sorted_by_owner_and_keep_their_fields() -> None:
    entries = [
        {"manager": "b", "operation": "Update", "time": "2030-01-02T03:04:05Z", "fieldsV1": {f'k:{{"uid":"{UID}"}}': {}}},
        {"manager": "a", "operation": "Apply", "fieldsV1": {"f:data": {"f:x": {}}}},
    ]
    kept = normalise({"managedFields": entries}, {}, managed_fields=True)["managedFields"]
    assert [entry["manager"] for entry in kept] == ["a", "b"]
    assert kept[1] == {
        "manager": "b",
        "operation": "Update",
        "time": "a time",
        "fieldsV1": {'k:{"uid":"uid1"}': {}},
    }


@given(json_values)
def test_any_json_value_can_be_normalised_and_a_second_time_changes_nothing(value: Any) -> None:
    once = normalise(value, {"secret-name": "name"})
    assert normalise(once, {"secret-name": "name"}) == once


@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference(value: Any, chance: random.Random) -> None:
    def shuffled(inner: Any) -> Any:
        if isinstance(inner, list):
            return [shuffled(item) for item in inner]
        if isinstance(inner, dict):
            keys = list(inner)
            chance.shuffle(keys)
            return {key: shuffled(inner[key]) for key in keys}
        return inner

    assert normalise(shuffled(value), {}) == normalise(value, {})
