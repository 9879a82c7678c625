"""What must hold for every document: both ways of conforming agree, protobuf says the same as JSON, nothing breaks."""

import copy
import random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.structure.conform import Conformed, conform, conform_exactly
from applecart.embedded.structure.protobuf import decode_protobuf
from applecart.embedded.structure.strict import strict_problems
from applecart.embedded.structure.table import StructType
from tests.embedded.structure.any_document import any_json, documents
from tests.embedded.structure.wire_bodies import body

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
