"""Server-side apply. What a real server answers is compared elsewhere; here what must hold of every apply."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import stamp
from applecart.embedded.patching.apply import BEFORE_FIRST_APPLY, LAST_APPLIED, apply
from applecart.embedded.patching.managed_fields import Writer, read_entries
from applecart.embedded.patching.structured_merge import fields_in
from applecart.embedded.patching.values import copied, same
from applecart.embedded.refusals import Refusal
from tests.embedded.patching.apply_cases import APPLY_CASES
from tests.embedded.patching.json_values import JSON, OBJECTS, nested, refused_with
from tests.embedded.patching.shapes import CONFIG_MAP, GROUP, PROBE, config_map, probe
from tests.embedded.patching.steps import SUBJECTS, ours

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def applied(live: dict[str, Any] | None, body: Any, manager: str = "m1", **more: Any) -> dict[str, Any]:
    force = more.pop("force", False)
    return apply(live, body, Writer(manager, **{"shape": CONFIG_MAP, "api_version": "v1", "now": NOW, **more}), force=force)


def probed(live: dict[str, Any] | None, manager: str = "m1", *, force: bool = False, **spec: Any) -> dict[str, Any]:
    return applied(live, probe(**spec), manager, shape=PROBE, api_version=f"{GROUP}/v1", force=force)


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


def test_an_apply_creates_and_owns_what_it_names() -> None:
    created = applied(None, {"metadata": {"name": "subject"}, "data": {"a": "1"}, "kind": "ConfigMap", "apiVersion": "v1"})
    assert list(created) == ["apiVersion", "kind", "metadata", "data"]
    assert created["metadata"]["managedFields"] == [
        {
            "manager": "m1",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": stamp(NOW),
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_a_field_that_its_only_owner_drops_goes() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}))
    assert applied(live, config_map({"a": "1"}))["data"] == {"a": "1"}


def test_the_last_field_takes_its_map_along() -> None:
    live = applied(None, config_map({"a": "1"}))
    assert "data" not in applied(live, config_map())


def test_a_field_that_another_owns_too_stays() -> None:
    live = applied(applied(None, config_map({"a": "1"})), config_map({"a": "1"}), "m2")
    assert applied(live, config_map(), "m2")["data"] == {"a": "1"}


def test_items_and_their_members_go_with_their_owner() -> None:
    live = probed(None, items=[{"name": "a", "value": "1"}, {"name": "b"}], tags=["x", "y"])
    live = probed(live, "m2", items=[{"name": "a", "port": 1}], tags=["y"])
    assert probed(live, items=[])["spec"] == {"items": [{"name": "a", "port": 1}], "tags": ["y"]}


def test_a_conflict_is_refused_and_force_moves_the_field() -> None:
    live = applied(None, config_map({"a": "1", "b": "1"}))
    with pytest.raises(Refusal) as refused:
        applied(live, config_map({"a": "2"}), "m2")
    assert (refused.value.code, refused.value.message) == (409, 'Apply failed with 1 conflict: conflict with "m1": .data.a')
    forced = applied(live, config_map({"a": "2"}), "m2", force=True)
    assert forced["data"] == {"a": "2", "b": "1"}
    assert owners(forced) == {"m1": {"f:data": {"f:b": {}}}, "m2": {"f:data": {"f:a": {}}}}


def test_the_first_apply_gives_what_is_there_to_before_first_apply() -> None:
    live = config_map({"a": "1"}, uid="u", resourceVersion="5", labels={"l": "1"})
    result = applied(live, config_map({"b": "2"}), blank={"metadata": {}})
    assert owners(result) == {
        "m1": {"f:data": {"f:b": {}}},
        BEFORE_FIRST_APPLY: {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}},
    }
    with pytest.raises(Refusal, match="before-first-apply"):
        applied(live, config_map({"a": "2"}))


def test_an_apply_that_changes_nothing_is_equal_to_the_object() -> None:
    live = applied(None, config_map({"a": "1"}))
    assert same(applied(live, config_map({"a": "1"}), now=LATER), live)


def test_an_owner_that_only_agrees_has_no_time() -> None:
    live = applied(None, config_map({"a": "1"}))
    entries = applied(live, config_map({"a": "1"}), "m2")["metadata"]["managedFields"]
    assert [(entry["manager"], "time" in entry) for entry in entries] == [("m2", False), ("m1", True)]


def test_times_move_only_with_the_object() -> None:
    live = applied(None, config_map({"a": "1"}))
    changed = applied(live, config_map({"a": "2"}), now=LATER)
    assert changed["metadata"]["managedFields"][0]["time"] == stamp(LATER)


def test_only_kubectl_takes_over_what_its_client_side_apply_had() -> None:
    last = json.dumps(config_map({"a": "1"}))
    live = applied(None, config_map({"a": "1"}, annotations={LAST_APPLIED: last}), "other")
    assert applied(live, config_map({"a": "2"}), "kubectl")["data"] == {"a": "2"}
    with pytest.raises(Refusal, match="conflict with"):
        applied(live, config_map({"a": "2"}), "somebody")


def test_only_kubectl_keeps_the_annotation_of_its_client_side_apply_up_to_date() -> None:
    last = json.dumps(config_map({"a": "1"}))
    live = config_map({"a": "1"}, annotations={LAST_APPLIED: last})
    for manager, is_kept in (("kubectl", True), ("somebody", False)):
        result = applied(live, config_map({"b": "1"}), manager)
        assert (result["metadata"]["annotations"][LAST_APPLIED] != last) is is_kept


def test_an_owner_of_nothing_is_left_out() -> None:
    live = applied(None, config_map({"a": "1"}))
    assert owners(applied(live, config_map(), "m2")) == {"m1": {"f:data": {"f:a": {}}}}
    assert "managedFields" not in applied(live, config_map())["metadata"]


def test_subresources_have_owners_of_their_own() -> None:
    live = probed(None, size=1)
    body = {**probe(), "status": {"phase": "Up"}}
    result = applied(live, body, shape=PROBE, api_version=f"{GROUP}/v1", subresource="status", reset=("metadata", "spec"))
    entries = result["metadata"]["managedFields"]
    assert [(entry["fieldsV1"], entry.get("subresource")) for entry in entries] == [
        ({"f:spec": {"f:size": {}}}, None),
        ({"f:status": {"f:phase": {}}}, "status"),
    ]


def test_an_owner_of_metadata_that_sends_none_leaves_no_name_behind() -> None:
    """As on a real server, which then refuses the object for want of a name; so must our caller."""
    live = applied(None, config_map({"a": "1"}, labels={"l": "1"}))
    result = applied(live, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}})
    assert list(result["metadata"]) == ["managedFields"]


@pytest.mark.parametrize("body", [None, [], 5, "x"])
def test_a_body_that_is_no_object_is_refused(body: Any) -> None:
    assert refused_with(lambda: applied(None, body)) == 400


def test_a_body_that_is_nested_too_deeply_is_refused() -> None:
    assert refused_with(lambda: applied(None, {**config_map(), **nested(100_000)})) == 400


def test_what_is_stored_and_what_is_sent_stay_as_they_are() -> None:
    live = probed(None, items=[{"name": "a"}], labels={"a": "1"})
    body = probe(items=[{"name": "b"}])
    before = copied(live), copied(body)
    result = applied(live, body, shape=PROBE, api_version=f"{GROUP}/v1")
    result["spec"]["items"].clear()
    assert (live, body) == before


@pytest.mark.parametrize("title", APPLY_CASES)
def test_every_known_sequence_runs_on_our_own_results_and_each_apply_is_idempotent(title: str) -> None:
    case = APPLY_CASES[title]
    subject = SUBJECTS[case.kind]
    live = None
    for step in (*case.setup, *case.steps):
        result = ours(subject, live, step).document
        if result is not None and step.how == "apply":
            again = ours(subject, result, step).document
            assert same(again, result)
        live = result or live


TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
ITEMS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"value": st.sampled_from("12"), "options": TEXTS}),
    min_size=1,
    max_size=3,
    unique_by=lambda item: str(item["name"]),
)
SPECS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "items": ITEMS,
        "tags": st.lists(st.sampled_from("abc"), min_size=1, unique=True),
        "labels": TEXTS,
        "whole": TEXTS,
        "size": st.integers(0, 1),
    },
)
WRITES = st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), SPECS), min_size=1, max_size=4)


@given(WRITES)
def test_after_a_forced_apply_the_applier_has_what_it_wants_and_owns_it(writes: list[tuple[str, dict[str, Any]]]) -> None:
    live = None
    for manager, spec in writes:
        live = probed(live, manager, force=True, **spec)
        entries = read_entries(live["metadata"].get("managedFields"))
        owned = next((entry.fields for owner, entry in entries.items() if owner.manager == manager), None)
        wanted = fields_in({"spec": spec}, PROBE)
        assert (owned or wanted) == wanted
        present = fields_in({"spec": live.get("spec")}, PROBE)
        # An empty map is a field of its own only while nobody else has put something into it.
        items = [{name: value for name, value in item.items() if value != {}} for item in spec.get("items", [])]
        assert not fields_in({"spec": {"items": items}}, PROBE) - present


@given(WRITES)
def test_nothing_is_left_when_everybody_gives_up_everything(writes: list[tuple[str, dict[str, Any]]]) -> None:
    live = None
    for manager, spec in writes:
        live = probed(live, manager, force=True, **spec)
    for manager in ("m1", "m2", "m3"):
        nothing = {name: value for name, value in probe().items() if name != "spec"}
        live = applied(live, nothing, manager, shape=PROBE, api_version=f"{GROUP}/v1")
    assert live is not None
    assert "spec" not in live
    assert owners(live) == {}


@given(OBJECTS, OBJECTS, JSON, st.booleans())
def test_anything_is_applied_or_refused(live: dict[str, Any], body: dict[str, Any], entries: Any, force: bool) -> None:
    live.update(apiVersion="v1", kind="X", metadata={"name": "x", "managedFields": entries})
    body.update(apiVersion="v1", kind="X")
    for shape in (CONFIG_MAP, PROBE):
        assert refused_with(partial(applied, live, body, shape=shape, force=force)) in (0, 400, 409)
