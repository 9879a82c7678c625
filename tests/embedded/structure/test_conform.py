"""What becomes of a JSON document on its way into the store; `test_conform_contract.py` holds the words to a real server."""

import copy
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.api.quantity import parse_quantity
from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import MAX_REPORTED, Conformed, conform, conform_exactly, conform_fast
from applecart.embedded.structure.protobuf import decode_protobuf
from applecart.embedded.structure.strict import strict_problems
from applecart.embedded.structure.types import StructType, type_of
from tests.embedded.structure.any_document import any_json, documents
from tests.embedded.structure.samples import CLUSTER_WIDE, NAMESPACED
from tests.embedded.structure.wire_bodies import body


def of(api_version: str, kind: str) -> StructType:
    type = type_of(api_version, kind)
    assert type is not None
    return type


CONFIG_MAP, POD, SECRET, EVENT = (of("v1", kind) for kind in ("ConfigMap", "Pod", "Secret", "Event"))
ROLE = of("rbac.authorization.k8s.io/v1", "Role")
LEASE = of("coordination.k8s.io/v1", "Lease")
CRD = of("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def takes_quantity(text: object) -> bool:
    return conform_fast({"spec": {"containers": [{"name": "c", "resources": {"limits": {"x": text}}}]}}, POD) is not None


def takes_instant(text: object) -> bool:
    return conform_fast({"firstTimestamp": text}, EVENT) is not None


@pytest.mark.parametrize("text", ["0", "1", "500m", "1500m", "100", "12345", "4", "8Gi", "1000Mi", "1500Mi", "999Pi", "1k"])
def test_usual_quantities_take_the_quick_way(text: str) -> None:
    assert takes_quantity(text)
    assert parse_quantity(text).in_milli == text


@given(st.integers(0, 10**17).map(str), st.sampled_from(["", "n", "u", *"mkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]))
def test_a_quantity_that_takes_the_quick_way_is_stored_as_it_is(number: str, suffix: str) -> None:
    if takes_quantity(number + suffix):
        assert parse_quantity(number + suffix).in_milli == number + suffix


@pytest.mark.parametrize("value", ["1024Mi", "1000", "1000m", "0.5", "100u", "16Ei", "1e3", " 1", "1\n", "+1", "", 1, None])
def test_a_quantity_that_changes_takes_the_exact_way(value: object) -> None:
    assert not takes_quantity(value)


@pytest.mark.parametrize("text", ["2026-11-16T10:00:00Z", "2026-01-31T23:59:59Z", "1999-09-30T00:00:00Z"])
def test_usual_instants_take_the_quick_way(text: str) -> None:
    assert takes_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:00+01:00",
        "2026-01-01T00:00:00Z\n",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "\u0662\u0660\u0662\u0666-01-01T00:00:00Z",
        5,
    ],
)
def test_an_instant_that_changes_or_fails_takes_the_exact_way(text: object) -> None:
    assert not takes_instant(text)


def spec_of(spec: Any) -> Any:
    """The stored spec of a Pod, both ways."""
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}
    stored = conform(document, POD).document["spec"]
    assert conform_exactly(document, POD).document["spec"] == stored
    return stored


def refusal_of(document: Any, type: StructType) -> str:
    with pytest.raises(Refusal) as refused:
        conform(document, type)
    assert refused.value.code == 400
    assert refused.value.reason == "BadRequest"
    return refused.value.message


@pytest.mark.parametrize("sample", [sample for _, sample in NAMESPACED + CLUSTER_WIDE], ids=lambda sample: sample["kind"])
def test_a_plain_document_of_every_kind_conforms_without_unknown_members(sample: dict[str, Any]) -> None:
    type = of(sample["apiVersion"], sample["kind"])
    conformed = conform(sample, type)
    assert conformed.unknown == ()
    assert conform(conformed.document, type) == conformed


def test_a_stored_pod_takes_the_quick_way() -> None:
    sample = next(sample for _, sample in NAMESPACED if sample["kind"] == "Pod")
    assert conform_fast(conform(sample, POD).document, POD) is not None


def test_apiversion_and_kind_come_first() -> None:
    document = {"data": {"a": "b"}, "metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"}
    assert list(conform(document, CONFIG_MAP).document) == ["apiVersion", "kind", "metadata", "data"]
    assert list(conform_exactly(document, CONFIG_MAP).document) == ["apiVersion", "kind", "metadata", "data"]


@pytest.mark.parametrize(
    ("spec", "stored"),
    [
        ({"containers": [], "nodeName": ""}, {"containers": None}),
        ({"containers": None, "hostNetwork": False, "volumes": [], "nodeSelector": {}}, {"containers": None}),
        ({"containers": [], "priority": 0, "automountServiceAccountToken": False}, None),
        ({"containers": [], "terminationGracePeriodSeconds": 0}, None),
        ({"containers": [], "terminationGracePeriodSeconds": None, "securityContext": None}, {"containers": None}),
        ({"containers": [], "securityContext": {}}, None),
    ],
)
def test_zeros_are_dropped_unless_the_field_is_a_pointer(spec: dict[str, Any], stored: dict[str, Any] | None) -> None:
    assert spec_of(spec) == (stored if stored is not None else {**spec, "containers": None})


def test_a_struct_that_is_no_pointer_is_always_shown() -> None:
    assert spec_of({"containers": [{"name": "c"}, None]})["containers"] == [
        {"name": "c", "resources": {}},
        {"name": "", "resources": {}},
    ]
    shown = conform({"kind": "Event"}, EVENT).document
    assert shown["firstTimestamp"] is None
    assert shown["source"] == {}
    assert shown["reportingComponent"] == ""
    assert conform({}, LEASE).document == {"metadata": {}, "spec": {}}


def test_a_list_that_go_always_shows_is_null_when_it_is_empty() -> None:
    assert conform({"rules": []}, ROLE).document["rules"] is None
    assert conform({}, ROLE).document["rules"] is None
    assert conform({"spec": {"versions": []}}, CRD).document["spec"]["versions"] == [], "CRDs are stored as JSON"


def test_a_null_creation_timestamp_is_dropped_on_the_quick_way() -> None:
    """Older Go clients send it with every object."""
    document = {"kind": "ConfigMap", "metadata": {"name": "a", "creationTimestamp": None}}
    assert conform_fast(document, CONFIG_MAP) == {"kind": "ConfigMap", "metadata": {"name": "a"}}


def test_nulls_in_maps_and_lists_become_zeros() -> None:
    document = {"data": {"a": None}, "binaryData": {"b": None}, "metadata": {"finalizers": [None, "x"]}}
    assert conform(document, CONFIG_MAP).document == {
        "metadata": {"finalizers": ["", "x"]},
        "data": {"a": ""},
        "binaryData": {"b": ""},
    }


def test_amounts_are_rounded_only_where_core_kinds_list_resources() -> None:
    resources = {"requests": {"cpu": "100u", "memory": 1000, "x": None}, "limits": {"cpu": 0.5}}
    stored = spec_of({"containers": [{"name": "c", "resources": resources}]})["containers"][0]["resources"]
    assert stored == {"limits": {"cpu": "500m"}, "requests": {"cpu": "1m", "memory": "1k", "x": "0"}}
    runtime_class = {"overhead": {"podFixed": {"cpu": "100u"}}}
    assert conform(runtime_class, of("node.k8s.io/v1", "RuntimeClass")).document["overhead"] == {"podFixed": {"cpu": "100u"}}


def test_a_duplicate_of_a_union_member_is_left_to_validation() -> None:
    volume = {"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}
    assert spec_of({"containers": None, "volumes": [volume]})["volumes"] == [volume]


def test_unknown_members_are_dropped_and_told_by_their_path() -> None:
    document = {"bogus": 1, "metadata": {"bog": {"deeper": 1}}, "spec": {"containers": [{"x": 1}, {"ports": [{"y": []}]}]}}
    conformed = conform(document, POD)
    assert conformed.unknown == ("bogus", "metadata.bog", "spec.containers[0].x", "spec.containers[1].ports[0].y")
    assert conformed.document["spec"] == {
        "containers": [{"name": "", "resources": {}}, {"name": "", "ports": [{"containerPort": 0}], "resources": {}}]
    }
    assert conformed.problems[0] == 'unknown field "bogus"'


def test_names_are_told_apart_by_their_case() -> None:
    assert conform({"Data": {}}, CONFIG_MAP).unknown == ("Data",)


def test_only_a_hundred_problems_are_reported() -> None:
    document = {f"x{number}": 1 for number in range(500)}
    assert len(conform(document, CONFIG_MAP).problems) == MAX_REPORTED


def test_unknown_members_below_a_schema_of_items_are_dropped_without_a_word() -> None:
    """The real server decodes these apart, and so do we."""
    schema = {"properties": {"a": {"bog": 1, "items": {"bog": 1, "type": "string"}}}}
    document = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    conformed = conform(document, CRD)
    assert conformed.unknown == ("spec.versions[0].schema.openAPIV3Schema.properties.a.bog",)
    stored = conformed.document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert stored == {"properties": {"a": {"items": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({"data": 5}, "json: cannot unmarshal number into Go struct field ConfigMap.data of type map[string]string"),
        ({"data": {"a": {}}}, "json: cannot unmarshal object into Go struct field ConfigMap.data of type string"),
        ({"metadata": []}, "json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
        ({"immutable": 1}, "json: cannot unmarshal number into Go struct field ConfigMap.immutable of type bool"),
        (
            {"metadata": {"generation": 2**63}},
            f"json: cannot unmarshal number {2**63} into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
    ],
)
def test_a_wrong_type_is_refused_in_the_servers_words(document: dict[str, Any], why: str) -> None:
    named = {"apiVersion": "v1", "kind": "ConfigMap", **document}
    assert refusal_of(named, CONFIG_MAP) == f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'


def test_the_first_wrong_type_is_told_unless_a_special_value_ends_the_walk() -> None:
    assert "ConfigMap.data of type string" in refusal_of({"data": {"a": 1}, "immutable": "x"}, CONFIG_MAP)
    assert "parsing time" in refusal_of({"data": {"a": 1}, "metadata": {"creationTimestamp": "x"}}, CONFIG_MAP)


def test_a_refusal_never_shows_what_a_secret_holds() -> None:
    for bad in ("hunter2-hunter2", ["hunter2"], {"hunter2": "hunter2"}):
        assert "hunter2" not in refusal_of({"kind": "Secret", "data": {"a": bad}}, SECRET)
        assert "hunter2" not in refusal_of({"kind": "Secret", "stringData": {"a": bad}, "type": 5}, SECRET)


@pytest.mark.parametrize("document", [None, 5, "x", [], True])
def test_a_body_that_is_no_object_is_refused(document: Any) -> None:
    assert "cannot be handled as a ConfigMap" in refusal_of(document, CONFIG_MAP)


def test_a_number_without_end_is_refused() -> None:
    endless = 10**5000
    assert "cannot unmarshal number into" in refusal_of({"spec": {"priority": endless}}, POD)
    assert "quantities must match" in refusal_of({"spec": {"overhead": {"cpu": endless}}}, POD)
    probe = {"httpGet": {"port": endless}}
    assert "of type int32" in refusal_of({"spec": {"containers": [{"livenessProbe": probe}]}}, POD)


def test_a_schema_without_bottom_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"not": schema}
    document = {"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}}
    assert refusal_of(document, CRD).endswith("exceeded max depth")


def test_managed_fields_without_bottom_never_break() -> None:
    fields: dict[str, Any] = {}
    for _ in range(100_000):
        fields = {"f": fields}
    assert isinstance(conform({"metadata": {"managedFields": [{"fieldsV1": fields}]}}, CONFIG_MAP), Conformed)


Case = tuple[dict[str, Any], StructType]


def outcome(way: Any, document: Any, type: StructType) -> Conformed | str:
    try:
        conformed: Conformed = way(document, type)
    except Refusal as refusal:
        return f"{refusal.code} {refusal.message}"
    return conformed


@given(documents())
@settings(max_examples=150, deadline=None)
def test_the_quick_way_and_the_exact_way_agree_and_change_nothing_twice(case: Case) -> None:
    document, type = case
    before = copy.deepcopy(document)
    quick = conform(document, type)
    assert quick == conform_exactly(document, type)
    assert list(quick.document) == list(conform_exactly(document, type).document)
    assert conform(quick.document, type) == quick
    assert document == before


@given(documents())
@settings(max_examples=150, deadline=None)
def test_a_protobuf_body_decodes_to_the_document_that_json_gives(case: Case) -> None:
    document, type = case
    stored = conform(document, type).document
    assert decode_protobuf(body(stored)) == without_empty_lists(stored)


@given(documents(), any_json, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_any_json_anywhere_is_conformed_or_refused(case: Case, intruder: Any, rng: random.Random) -> None:
    document, type = case
    spoiled = replace_somewhere(document, intruder, rng)
    result = outcome(conform, spoiled, type)
    assert result == outcome(conform_exactly, spoiled, type)
    if isinstance(result, str):
        assert result.startswith("400 ")
    else:
        assert conform(result.document, type).document == result.document
        strict_problems(msgspec.json.encode(spoiled) + b" ", spoiled, result, type)


@given(documents(), st.randoms(use_true_random=False), st.binary(max_size=8))
@settings(max_examples=150, deadline=None)
def test_a_damaged_protobuf_body_is_decoded_or_refused(case: Case, rng: random.Random, noise: bytes) -> None:
    document, type = case
    whole = body(conform(document, type).document)
    at = rng.randrange(len(whole))
    for damaged in (whole[:at], whole[:at] + noise + whole[at:], whole[:at] + noise + whole[at + len(noise) :]):
        assert is_decoded_or_refused(damaged)


@given(st.binary(max_size=64))
@settings(max_examples=150, deadline=None)
def test_noise_behind_the_magic_is_decoded_or_refused(noise: bytes) -> None:
    assert is_decoded_or_refused(b"k8s\x00" + noise)


def is_decoded_or_refused(data: bytes) -> bool:
    try:
        return isinstance(decode_protobuf(data, "v1", "Pod"), dict)
    except Refusal as refusal:
        return refusal.code == 400


def without_empty_lists(value: Any) -> Any:
    """Protobuf knows no empty list; of all kinds only CRDs are stored in a form that does."""
    if isinstance(value, dict):
        return {name: None if inner == [] else without_empty_lists(inner) for name, inner in value.items()}
    return [without_empty_lists(inner) for inner in value] if isinstance(value, list) else value


def replace_somewhere(value: Any, intruder: Any, rng: random.Random) -> Any:
    """The value with the intruder at one random place below the top."""
    if isinstance(value, dict) and value:
        name = rng.choice(sorted(value))
        kept = value[name]
        goes_deeper = isinstance(kept, dict | list) and kept and rng.random() < 0.8
        return {**value, name: replace_somewhere(kept, intruder, rng) if goes_deeper else intruder}
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return [*value[:at], replace_somewhere(value[at], intruder, rng), *value[at + 1 :]]
    return intruder
