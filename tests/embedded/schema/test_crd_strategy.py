"""Definitions as they are written: defaults, names, status, and what may not change."""

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.schema import crd_strategy as crd_strategy_module
from applecart.embedded.schema.crd_strategy import (
    APPROVAL,
    BUILT_IN,
    IN_PROGRESS,
    MOST_OF_A_DEFINITION,
    TOO_COSTLY,
    CrdStrategy,
    TakenNames,
    begin_leaving,
    is_established,
    names_of,
    say_leaving,
    status_with_names,
    taken_names,
)
from applecart.embedded.schema.patterns import compiled
from tests.embedded.schema.definition_documents import definition
from tests.embedded.schema.judged import as_received, crd_strategy, established, refusal_of

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


def test_a_definition_has_been_leaving_since_its_deletion_however_far_that_has_come() -> None:
    leaving = {**crd(), "status": status_with_names(crd(), TakenNames(), NOW)}
    begin_leaving(leaving, NOW)
    say_leaving(leaving, *IN_PROGRESS, NOW + timedelta(hours=1))
    assert conditions(leaving["status"])["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert [one["lastTransitionTime"] for one in leaving["status"]["conditions"]] == ["2026-11-16T12:00:00Z"] * 3


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

    fewer = {**crd(shortNames=["po"]), "status": first}
    assert conditions(status_with_names(fewer, TakenNames(frozenset({"po"})), NOW))["NamesAccepted"] == ("True", "NoConflicts")


def test_a_definition_in_a_built_in_group_is_refused_and_one_of_before_may_still_go() -> None:
    """It cannot lose its finalizer but by an update."""
    strategy = CrdStrategy(lambda crd: TakenNames(), lambda: NOW, lambda group: True)
    old = established(definition("olds", {"type": "object"}))
    assert [error.field for error in strategy.validate_with([], old, None)] == ["spec.group"]
    assert strategy.validate_with([], old, old) == []


def test_in_a_group_of_the_server_no_name_is_accepted_and_none_is_kept() -> None:
    first = status_with_names(crd(), TakenNames(), NOW)
    again = status_with_names({**crd(), "status": first}, BUILT_IN, NOW)
    assert conditions(again) == {"NamesAccepted": ("False", "BuiltInGroup"), "Established": ("False", "NotAccepted")}
    assert again["acceptedNames"] == {"plural": "", "kind": ""}


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
    expected = TakenNames(frozenset({"as", "x"}), frozenset({"A"}))
    assert (
        taken_names(others, "x.dev", but="pools.x.dev")
        == taken_names(map(names_of, others), "x.dev", "pools.x.dev")
        == expected
    )


def test_a_definition_is_completed_and_established_in_the_write_that_creates_it() -> None:
    crd = definition("pools", {"type": "object"})
    crd["status"] = {"storedVersions": ["v0"], "conditions": []}
    stored = established(crd)
    assert stored["spec"]["names"] == {"plural": "pools", "kind": "Pools", "singular": "pools", "listKind": "PoolsList"}
    assert stored["spec"]["conversion"] == {"strategy": "None"}
    assert stored["status"]["storedVersions"] == ["v1"]
    assert [(one["type"], one["status"], one["reason"]) for one in stored["status"]["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert stored["status"]["conditions"][0]["lastTransitionTime"] == "2026-11-16T12:00:00Z"


def test_a_version_that_was_stored_once_must_stay() -> None:
    old = established(definition("pools", {"type": "object"}))
    new = deepcopy(old)
    new["spec"]["versions"][0]["name"] = "v2"
    crd_strategy().prepare_update(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert [error.field for error in crd_strategy().validate(new)] == ["status.storedVersions[0]"]


def test_an_update_may_not_set_the_status() -> None:
    old = established(definition("pools", {"type": "object"}))
    new = {**deepcopy(old), "status": {"storedVersions": ["v7"]}}
    crd_strategy().prepare_update(new, old)
    assert new["status"] == old["status"]


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"scope": "Namespaced"}, ["spec.scope"]),
        ({"group": "other.applecart.dev"}, ["spec.group"]),
        ({"names": {"plural": "others", "kind": "Others"}}, ["spec.names.kind", "spec.names.plural"]),
        ({"names": {"plural": "pools", "kind": "Pools", "shortNames": ["p"]}}, []),
    ],
)
def test_what_names_stored_objects_is_immutable(change: dict[str, Any], fields: list[str]) -> None:
    old = established(definition("pools", {"type": "object"}))
    new = deepcopy(old)
    new["spec"].update(change)
    assert [error.field for error in crd_strategy().validate_update(new, old)] == fields
    assert all(error.detail == "field is immutable" for error in crd_strategy().validate_update(new, old))


def test_the_kind_may_change_until_the_definition_is_established() -> None:
    old = established(definition("pools", {"type": "object"}))
    old["status"]["conditions"] = []
    new = deepcopy(old)
    new["spec"]["names"]["kind"] = "Other"
    assert crd_strategy().validate_update(new, old) == []


@pytest.mark.parametrize(
    ("group", "approval", "is_refused"),
    [
        ("k8s.io", None, True),
        ("x.kubernetes.io", None, True),
        ("x.kubernetes.io", "sure", True),
        ("x.kubernetes.io", "unapproved, a test", False),
        ("x.k8s.io", "https://example.com/1", False),
        ("k8s.io.example.com", None, False),
    ],
)
def test_a_group_of_the_project_needs_its_approval(group: str, approval: str | None, is_refused: bool) -> None:
    crd = definition("pools", {"type": "object"})
    crd["metadata"] = {"name": f"pools.{group}", "annotations": {APPROVAL: approval} if approval else {}}
    crd["spec"]["group"] = group
    crd_strategy().default(crd)
    crd_strategy().prepare_create(crd)
    fields = [error.field for error in crd_strategy().validate(crd)]
    assert fields == ([f"metadata.annotations[{APPROVAL}]"] if is_refused else [])


@pytest.mark.parametrize("member", ["shortNames", "categories"])
def test_a_status_accepts_only_so_many_names(member: str) -> None:
    old = established(definition("pools", {"type": "object"}))
    new = deepcopy(old)
    new["status"]["acceptedNames"][member] = [f"n{number}" for number in range(MOST_OF_A_DEFINITION + 1)]
    assert [error.field for error in crd_strategy().validate_status(new, old)] == [f"status.acceptedNames.{member}"]


def test_a_definition_that_takes_too_many_steps_to_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = definition("pools", {"type": "object", "properties": {"a": {"type": "string", "pattern": "[a-z]{500}"}}})
    crd_strategy().default(crd)
    crd_strategy().prepare_create(crd)
    assert crd_strategy().validate(crd) == []
    monkeypatch.setattr(crd_strategy_module, "OF_A_DEFINITION", 100)
    compiled.cache_clear()
    (error,) = crd_strategy().validate(crd)
    assert (error.field, error.detail) == ("spec.versions", TOO_COSTLY)


def test_conversion_by_webhook_is_refused_with_what_to_do_instead() -> None:
    crd = definition("pools", {"type": "object"})
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    crd_strategy().default(crd)
    crd_strategy().prepare_create(crd)
    (error,) = crd_strategy().validate(crd)
    assert error.field == "spec.conversion.strategy"
    assert "use None" in error.detail


def test_problems_of_versions_that_differ_are_reported_at_the_version() -> None:
    crd = definition("pools", {"type": "object"})
    crd["spec"]["versions"].append(
        {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": {"type": "object", "nullable": True}}}
    )
    crd_strategy().default(crd)
    crd_strategy().prepare_create(crd)
    assert [error.field for error in crd_strategy().validate(crd)] == ["spec.versions[1].schema.openAPIV3Schema.nullable"]


@pytest.mark.parametrize(
    "spec",
    [
        [],
        {"versions": {}},
        {"versions": [5]},
        {"names": "x"},
        {"group": 1},
        {"versions": [{"schema": {"openAPIV3Schema": {"type": 5}}}]},
        {"versions": [{"schema": {"openAPIV3Schema": {"properties": {"a": []}}}}]},
        {"versions": [{"schema": {"openAPIV3Schema": {"x-kubernetes-validations": [{"rule": 1}]}}}]},
        {"versions": [{"additionalPrinterColumns": [{"priority": "x"}]}]},
    ],
)
def test_a_field_of_the_wrong_type_is_a_bad_request(spec: Any) -> None:
    with pytest.raises(Refusal) as refused:
        as_received({"kind": "CustomResourceDefinition", "metadata": {}, "spec": spec})
    assert refused.value.code == 400
    assert "cannot be handled as a CustomResourceDefinition" in refused.value.message


@pytest.mark.parametrize("spec", [None, {}, {"names": None, "versions": None}, {"versions": [{"schema": None}]}])
def test_an_empty_definition_is_refused_field_by_field(spec: Any) -> None:
    crd = {"kind": "CustomResourceDefinition", "metadata": {"name": "x"}, "spec": spec}
    crd_strategy().default(crd)
    crd_strategy().prepare_create(crd)
    fields = {error.field for error in crd_strategy().validate(crd)}
    assert {"spec.group", "spec.scope", "spec.names.plural", "spec.names.kind", "spec.versions"} <= fields


def test_a_schema_that_nests_for_ever_is_a_bad_request() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(3000):
        schema = {"type": "object", "properties": {"a": schema}}
    crd = definition("pools", schema)
    assert refusal_of(lambda: _write(crd)) == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["object", "v1", ".spec.a", "self.a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "spec",
                        "names",
                        "versions",
                        "schema",
                        "openAPIV3Schema",
                        "properties",
                        "type",
                        "items",
                        "plural",
                        "kind",
                    ),
                    *(
                        "name",
                        "served",
                        "storage",
                        "subresources",
                        "scale",
                        "rule",
                        "x-kubernetes-validations",
                        "default",
                        "anyOf",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=200, deadline=None)
@given(JSON, JSON)
def test_no_definition_breaks_the_server(spec: Any, schema: Any) -> None:
    for crd in (
        {"metadata": {"name": "x"}, "spec": spec},
        {**definition("pools", schema), "status": {"conditions": []}},
        {**definition("pools", {"type": "object", "properties": {"spec": schema}})},
    ):
        assert refusal_of(partial(_write, crd)) in (0, 400)


def _write(crd: dict[str, Any]) -> None:
    crd, rules = as_received(crd), crd_strategy()
    rules.default(crd)
    rules.prepare_create(crd)
    assert all(str(error) for error in rules.validate(crd))
    rules.validate_status(crd, crd)
