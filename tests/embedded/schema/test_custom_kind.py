"""Custom kinds: what a definition serves, and how its objects behave."""

from applecart.api.meta import Resource
from applecart.embedded.field_errors import required
from applecart.embedded.schema.custom_kind import custom_kinds
from tests.embedded.schema.definition_documents import GROUP, SCALED, definition, resource
from tests.embedded.schema.judged import rules_of


def test_a_kind_is_what_the_definition_says() -> None:
    crd = {
        **SCALED,
        "status": {"acceptedNames": {"plural": "scales", "kind": "Scales", "shortNames": ["sc"], "categories": ["all"]}},
    }
    (kind,) = custom_kinds(crd)
    assert kind.resource == Resource(GROUP, "v1", "Scales", "scales", namespaced=False)
    assert kind.storage == kind.resource
    assert (kind.singular, kind.list_kind) == ("scales", "ScalesList")
    assert (kind.short_names, kind.categories, kind.is_custom) == (("sc",), ("all",), True)
    assert [(one.name, one.kind, one.group) for one in kind.subresources] == [
        ("status", "Scales", ""),
        ("scale", "Scale", "autoscaling"),
    ]
    assert [column.name for column in kind.table.columns] == ["Name", "Replicas"]


def test_every_served_version_is_a_kind_over_the_stored_one() -> None:
    crd = definition("pools", {"type": "object"})
    first = crd["spec"]["versions"][0]
    crd["spec"]["versions"] += [
        {**first, "name": "v2", "storage": False, "deprecated": True},
        {**first, "name": "v3", "storage": False, "served": False},
        {**first, "name": "v4", "storage": False, "deprecated": True, "deprecationWarning": "use v2"},
    ]
    kinds = custom_kinds(crd)
    assert [(kind.resource.version, kind.storage.version) for kind in kinds] == [("v1", "v1"), ("v2", "v1"), ("v4", "v1")]
    warnings = [kind.strategy.warnings({}) for kind in kinds]
    assert warnings == [[], [f"{GROUP}/v2 Pools is deprecated"], ["use v2"]]


def test_another_version_shows_the_defaults_of_the_stored_one_and_none_of_its_own() -> None:
    """As on a real server: they are filled in where something is written, not where it is read."""
    crd = definition("pools", {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}})
    other = {"type": "object", "properties": {"a": {"type": "integer", "default": 2}, "b": {"type": "integer", "default": 2}}}
    [first] = crd["spec"]["versions"]
    crd["spec"]["versions"].append({**first, "name": "v2", "storage": False, "schema": {"openAPIV3Schema": other}})
    _, kind = custom_kinds(crd)
    assert kind.view is not None
    assert kind.view.from_stored({"metadata": {}, "a": 1}) == {"apiVersion": f"{GROUP}/v2", "metadata": {}, "a": 1}
    assert kind.view.to_stored({"metadata": {}, "b": 5}) == {"apiVersion": f"{GROUP}/v1", "metadata": {}, "a": 1}


def test_a_creator_cannot_set_the_status_where_it_is_a_subresource() -> None:
    obj = resource("scales", "a", spec={}, status={"phase": "x"})
    rules_of(SCALED).prepare_create(obj)
    assert "status" not in obj
    free = resource("pools", "a", status={"phase": "x"})
    rules_of(definition("pools", {"type": "object"})).prepare_create(free)
    assert free["status"] == {"phase": "x"}


def test_the_status_counts_for_the_generation_only_where_it_is_no_subresource() -> None:
    obj = resource("scales", "a", spec={"replicas": 1}, status={"phase": "x"})
    assert rules_of(SCALED).wanted(obj) == {"spec": {"replicas": 1}}
    assert rules_of(definition("pools", {"type": "object"})).wanted(obj) == {"spec": {"replicas": 1}, "status": {"phase": "x"}}


def test_a_status_write_keeps_everything_else() -> None:
    old = resource("scales", "a", spec={"replicas": 1}, extra=1)
    new = resource("scales", "a", spec={"replicas": 9}, more=2, status={"phase": "x"})
    rules_of(SCALED).prepare_status(new, old)
    assert new == resource("scales", "a", spec={"replicas": 1}, extra=1, status={"phase": "x"})


def test_selectable_fields_are_texts_and_absent_ones_are_empty() -> None:
    rules = rules_of(SCALED)
    obj = resource("scales", "a", spec={"class": "big", "spot": True})
    assert rules.fields(obj) == {"spec.class": "big", "spec.spot": "true", "spec.replicas": ""}
    assert rules.field_names == {"spec.class", "spec.spot", "spec.replicas"}
    assert rules.fields(resource("scales", "a", spec=[1])) == {"spec.class": "", "spec.spot": "", "spec.replicas": ""}


def test_negative_replicas_are_refused_by_schema_and_by_scale() -> None:
    errors = rules_of(SCALED).validate_with([], resource("scales", "a", spec={"replicas": -1}), None)
    assert [(error.field, error.detail) for error in errors] == [
        ("spec.replicas", "spec.replicas in body should be greater than or equal to 0"),
        (".spec.replicas", "should be a non-negative integer"),
    ]


def test_an_update_forgives_what_did_not_change() -> None:
    rules = rules_of(SCALED)
    old = resource("scales", "a", spec={"class": 5, "replicas": 1})
    new = resource("scales", "a", spec={"class": 5, "replicas": 2})
    assert rules.validate_with([], new, old) == []
    assert rules.validate_with([], new, None) != []


def test_bad_metadata_comes_first_and_keeps_rules_from_being_asked() -> None:
    bad = [required("metadata.name", "name or generateName is required")]
    new = resource("scales", "a", spec={"replicas": -1}, status={"phase": "no"})
    fields = [error.field for error in rules_of(SCALED).validate_with(bad, new, None)]
    assert fields == ["metadata.name", "spec.replicas", ".spec.replicas", "<nil>"]


def test_unknown_fields_are_dropped_and_named() -> None:
    new = resource("scales", "a", spec={"replicas": 1, "bogus": 2})
    assert rules_of(SCALED).drop_unknown(new) == ['unknown field "spec.bogus"']
    assert new["spec"] == {"replicas": 1}


def test_a_custom_object_is_never_replaced_without_its_revision() -> None:
    rules = rules_of(SCALED)
    assert (rules.updates_unconditionally, rules.counts_generations, rules.creates_on_update) == (False, True, False)
