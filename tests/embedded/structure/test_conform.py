"""What becomes of a JSON document on its way into the store; `test_conform_contract.py` holds the words to a real server's."""

from typing import Any

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import MAX_REPORTED, Conformed, conform, conform_exactly, strict_refusal
from applecart.embedded.structure.fast import conform_fast
from applecart.embedded.structure.table import StructType
from applecart.embedded.structure.types import type_of
from tests.embedded.structure.samples import CLUSTER_WIDE, NAMESPACED


def of(api_version: str, kind: str) -> StructType:
    type = type_of(api_version, kind)
    assert type is not None
    return type


CONFIG_MAP, POD, SECRET, EVENT = (of("v1", kind) for kind in ("ConfigMap", "Pod", "Secret", "Event"))
ROLE = of("rbac.authorization.k8s.io/v1", "Role")
LEASE = of("coordination.k8s.io/v1", "Lease")
CRD = of("apiextensions.k8s.io/v1", "CustomResourceDefinition")


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


def test_a_strict_refusal_lists_its_problems() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "a": 1, "b": 2}
    refusal = strict_refusal(document, CONFIG_MAP, conform(document, CONFIG_MAP).problems)
    assert refusal.message == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: '
        'strict decoding error: unknown field "a", unknown field "b"'
    )
