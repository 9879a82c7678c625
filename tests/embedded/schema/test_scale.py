"""The Scale of a custom object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.scale import ScalePaths, read_scale, replica_errors, scale_paths, status_errors, write_scale
from tests.embedded.schema.judged import refusal_of

PATHS = ScalePaths(".spec.replicas", ".status.replicas", ".status.selector")
META = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-11-16T12:00:00Z"}


def test_a_scale_says_what_is_wanted_and_what_is_there() -> None:
    obj = {
        "metadata": {**META, "labels": {"x": "y"}},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=a"},
    }
    assert read_scale(obj, PATHS) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": META,
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=a"},
    }


def test_zero_wanted_replicas_are_left_out_and_no_status_counts_as_none() -> None:
    scale = read_scale({"metadata": META, "spec": {"replicas": 0}}, PATHS)
    assert (scale["spec"], scale["status"]) == ({}, {"replicas": 0})


def test_an_object_that_wants_no_number_has_no_scale() -> None:
    with pytest.raises(Refusal) as refused:
        read_scale({"metadata": META}, PATHS)
    assert refused.value.code == 400
    assert refused.value.message == 'Internal error occurred: the spec replicas field ".spec.replicas" does not exist'


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": {"replicas": 1, "keep": 2}}])
def test_writing_a_scale_sets_the_wanted_replicas_and_nothing_else(obj: dict[str, Any]) -> None:
    kept = dict(obj.get("spec") or {})
    write_scale(obj, {"spec": {"replicas": 5}}, PATHS)
    assert obj["spec"] == {**kept, "replicas": 5}


@pytest.mark.parametrize("scale", [{}, {"spec": None}, {"spec": {}}, {"spec": {"replicas": None}}])
def test_a_scale_without_replicas_wants_none(scale: dict[str, Any]) -> None:
    obj = {"spec": {"replicas": 5}}
    write_scale(obj, scale, PATHS)
    assert obj["spec"]["replicas"] == 0


@pytest.mark.parametrize("replicas", ["1", 1.5, True, 2**31, [1]])
def test_replicas_that_are_no_number_are_a_bad_request(replicas: Any) -> None:
    with pytest.raises(Refusal) as refused:
        write_scale({"spec": {}}, {"spec": {"replicas": replicas}}, PATHS)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"replicas": -1}, ".spec.replicas: Invalid value: -1: should be a non-negative integer"),
        ({"replicas": 2**31}, ".spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"),
        (
            {"replicas": "x"},
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: x is of the type string, expected int64",
        ),
        (
            [1],
            ".spec.replicas: Invalid value: 0: .spec.replicas accessor error: [1] is of the type []interface {}, "
            "expected map[string]interface{}",
        ),
    ],
)
def test_bad_replicas_are_refused_in_the_words_of_the_real_server(spec: Any, text: str) -> None:
    assert [str(error) for error in replica_errors({"spec": spec}, PATHS.spec_replicas)] == [text]


def test_absent_replicas_are_fine() -> None:
    assert replica_errors({}, PATHS.spec_replicas) == status_errors({"status": {"replicas": None}}, PATHS) == []


def test_a_selector_must_be_a_text() -> None:
    (error,) = status_errors({"status": {"selector": {"b": [1, None], "a": True}}}, PATHS)
    assert error.detail == (
        ".status.selector accessor error: map[a:true b:[1 <nil>]] is of the type map[string]interface {}, expected string"
    )


@pytest.mark.parametrize(
    "version", [{}, {"subresources": None}, {"subresources": {"status": {}}}, {"subresources": {"scale": None}}]
)
def test_a_version_without_scale_has_no_paths(version: dict[str, Any]) -> None:
    assert scale_paths(version) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["spec", "status", "replicas", "selector"]), inner, max_size=3)
    ),
)


@given(st.dictionaries(st.sampled_from(["spec", "status", "metadata"]), VALUES), st.dictionaries(st.just("spec"), VALUES))
def test_no_document_breaks_a_scale(obj: dict[str, Any], scale: dict[str, Any]) -> None:
    obj["metadata"] = {}
    assert all(str(error) for error in [*replica_errors(obj, PATHS.spec_replicas), *status_errors(obj, PATHS)])
    for call in (lambda: read_scale(obj, PATHS), lambda: write_scale(obj, scale, PATHS)):
        assert refusal_of(call) in (0, 400)
