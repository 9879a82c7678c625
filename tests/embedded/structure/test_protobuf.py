"""Protobuf bodies without a server; `test_protobuf_contract.py` holds the reading to what a real one writes."""

from typing import Any

import pytest

from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import conform
from applecart.embedded.structure.protobuf import MAX_DEPTH, Malformed, decode_protobuf, members, signed
from applecart.embedded.structure.protobuf import varint as read_varint
from applecart.embedded.structure.types import struct_of, type_of
from tests.embedded.structure.samples import CLUSTER_WIDE, CRD, NAMESPACED, POD
from tests.embedded.structure.wire_bodies import body, envelope, length_delimited, varint


def refusal_of(raw: bytes) -> str:
    with pytest.raises(Refusal) as refused:
        decode_protobuf(raw, "v1", "ConfigMap")
    assert refused.value.code == 400
    return refused.value.message


def config_map(message: bytes) -> bytes:
    return envelope("v1", "ConfigMap", message)


@pytest.mark.parametrize("sample", [sample for _, sample in NAMESPACED + CLUSTER_WIDE], ids=lambda sample: sample["kind"])
def test_every_kind_reads_the_same_from_protobuf_as_from_json(sample: dict[str, Any]) -> None:
    type = type_of(sample["apiVersion"], sample["kind"])
    assert type is not None
    assert decode_protobuf(body(sample)) == conform(sample, type).document


@pytest.mark.parametrize(
    "document",
    [
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {}, "status": {"replicas": 0}},
        {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": ""}},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "DeleteOptions", "orphanDependents": False},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}, "automountServiceAccountToken": False},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "data": {"": "", "a": ""}, "immutable": False},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}, "spec": {}, "status": {}},
        {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {},
            "spec": {"audiences": None, "expirationSeconds": 0, "boundObjectRef": None},
            "status": {"token": "", "expirationTimestamp": None},
        },
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {"user": "jane", "extra": {"scopes": ["a", ""]}},
            "status": {"allowed": False},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "a"},
            "deleteOptions": {"gracePeriodSeconds": 0, "dryRun": ["All"]},
        },
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}},
    ],
    ids=lambda document: document["kind"],
)
def test_zero_and_absent_are_told_apart(document: dict[str, Any]) -> None:
    assert decode_protobuf(body(document)) == document


def test_a_silent_envelope_takes_what_the_path_expects() -> None:
    assert decode_protobuf(envelope("", "", b""), "v1", "ConfigMap") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {},
    }


def test_fields_of_a_newer_client_are_skipped() -> None:
    newer = varint(900 << 3) + varint(7) + varint(901 << 3 | 1) + bytes(8) + varint(902 << 3 | 5) + bytes(4)
    assert decode_protobuf(config_map(newer + length_delimited(903, b"x")))["kind"] == "ConfigMap"


def test_packed_numbers_are_read() -> None:
    groups = length_delimited(4, varint(0) + varint(300))
    security = length_delimited(14, groups)
    decoded = decode_protobuf(envelope("v1", "Pod", length_delimited(2, security)))
    assert decoded["spec"]["securityContext"]["supplementalGroups"] == [0, 300]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "empty data (<empty>)"),
        (b"k8s\x00", "empty body (6b387300)"),
        (b'{"kind":"ConfigMap","apiVersion":"v1"}', "expected prefix [107 56 115 0] (7b226b"),
        (b"k8s\x00\x0a\xff", "unexpected EOF"),
        (b"k8s\x00\x08\x01", "wrong wireType = 0 for field TypeMeta"),
    ],
)
def test_a_broken_envelope_is_refused(raw: bytes, why: str) -> None:
    message = refusal_of(raw)
    assert message.startswith("the object provided is unrecognized (must be of type ConfigMap): ")
    assert why in message


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (b"\x0a\x05ab", "unexpected EOF"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x0a\x03\x08\x01\x10", "proto: wrong wireType = 0 for field Name"),
        (b"\xff" * 11, "proto: integer overflow"),
        (b"\x0c", "proto: ConfigMap: wiretype end group for non-group"),
        (b"\x0b", "proto: illegal wireType 3"),
        (b"\x02\x00", "proto: ConfigMap: illegal tag 0 (wire type 2)"),
        (b"\x0a" + varint(2**63), "proto: negative length found during unmarshaling"),
        (length_delimited(1, length_delimited(1, b"\xff")), "proto: string field contains invalid UTF-8"),
        (length_delimited(1, length_delimited(8, b"\x10\xff\xff\xff\xff\x0f")), "timestamp nanos out of range"),
    ],
)
def test_a_broken_message_is_refused_in_the_servers_words(message: bytes, why: str) -> None:
    assert refusal_of(config_map(message)) == f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'


def test_an_unknown_kind_is_refused_by_its_name() -> None:
    assert refusal_of(envelope("v9", "Robot", b"")) == (
        'Robot in version "v9" cannot be handled as a ConfigMap: '
        'no kind "Robot" is registered for version "v9" in scheme "pkg/runtime/scheme.go:111"'
    )


def test_a_schema_without_bottom_is_refused() -> None:
    schema = b""
    negation = struct_of("apiextensions/v1.JSONSchemaProps").fields["not"].number
    for _ in range(MAX_DEPTH + 1):
        schema = length_delimited(negation, schema)
    version = length_delimited(4, length_delimited(1, schema))
    message = length_delimited(2, length_delimited(7, version))
    assert refusal_of(envelope(CRD["apiVersion"], CRD["kind"], message)).endswith("exceeded max depth")


def test_a_body_cut_anywhere_is_refused_or_a_smaller_object() -> None:
    whole = body(POD)
    for at in range(len(whole)):
        try:
            assert isinstance(decode_protobuf(whole[:at], "v1", "Pod"), dict)
        except Refusal:
            continue


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63, 2**64 - 1])
def test_numbers_are_read_as_they_are_written(number: int) -> None:
    assert read_varint(varint(number) + b"rest", 0) == (number, len(varint(number)))


@pytest.mark.parametrize("number", [0, 1, -1, 2**31 - 1, -(2**31)])
def test_negative_numbers_survive(number: int) -> None:
    assert signed(number & (2**64 - 1), 32) == number


def test_a_fixed_width_value_beyond_the_end_is_malformed() -> None:
    with pytest.raises(Malformed):
        list(members(b"\x09\x00", "Any"))
