"""JSON patch. What is refused is compared with a real server elsewhere; here that it is refused at all, and why."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.patching.json_patch import COPY_LIMIT_BYTES, OPERATIONS_LIMIT, apply_json_patch
from applecart.embedded.patching.values import copied
from applecart.embedded.refusals import Refusal
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop
from tests.embedded.patching.json_patch_cases import ACCEPTED, JSON_PATCH_SUBJECT, REFUSED, operation
from tests.embedded.patching.json_values import JSON, OBJECTS, refused_with

GENERIC = "the server rejected our request due to an error in our request"


def refusal_of(document: dict[str, Any], operations: Any) -> Refusal:
    with pytest.raises(Refusal) as refused:
        apply_json_patch(copied(document), operations)
    return refused.value


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([operation("add", "/m/c", value=3)], {"m": {"a": 1, "c": 3}, "l": [1, 2]}),
        ([operation("add", "/l/0", value=0)], {"m": {"a": 1}, "l": [0, 1, 2]}),
        ([operation("add", "/l/2", value=3)], {"m": {"a": 1}, "l": [1, 2, 3]}),
        ([operation("add", "/l/-", value=3)], {"m": {"a": 1}, "l": [1, 2, 3]}),
        ([operation("add", "/l/-1", value=3)], {"m": {"a": 1}, "l": [1, 2, 3]}),
        ([operation("add", "/l/-3", value=0)], {"m": {"a": 1}, "l": [0, 1, 2]}),
        ([operation("remove", "/l/-1")], {"m": {"a": 1}, "l": [1]}),
        ([operation("remove", "/m/a")], {"m": {}, "l": [1, 2]}),
        ([operation("replace", "/m/a", value={"b": []})], {"m": {"a": {"b": []}}, "l": [1, 2]}),
        ([operation("replace", "/l/1", value=9)], {"m": {"a": 1}, "l": [1, 9]}),
        ([operation("replace", "", value={"n": 1})], {"n": 1}),
        ([operation("replace", "", value=[1])], [1]),
        ([operation("move", "/m/b", **{"from": "/l"})], {"m": {"a": 1, "b": [1, 2]}}),
        ([operation("copy", "/c", **{"from": "/m"})], {"m": {"a": 1}, "l": [1, 2], "c": {"a": 1}}),
        ([operation("copy", "/m/x", **{"from": "/m/none"})], {"m": {"a": 1, "x": None}, "l": [1, 2]}),
        ([operation("test", "", value={"l": [1, 2], "m": {"a": 1}})], {"m": {"a": 1}, "l": [1, 2]}),
        ([operation("add", "/m/a~1b~0c", value=1)], {"m": {"a": 1, "a/b~c": 1}, "l": [1, 2]}),
        ([operation("add", "/m/", value=1)], {"m": {"a": 1, "": 1}, "l": [1, 2]}),
        (None, {"m": {"a": 1}, "l": [1, 2]}),
    ],
)
def test_the_six_operations(operations: Any, expected: Any) -> None:
    assert apply_json_patch({"m": {"a": 1}, "l": [1, 2]}, operations) == expected


@pytest.mark.parametrize("operations", ACCEPTED)
def test_what_a_real_server_accepts_is_accepted_and_the_patch_stays(operations: list[dict[str, Any]]) -> None:
    before = copied(operations)
    apply_json_patch(copied(JSON_PATCH_SUBJECT), operations)
    assert before == operations


@pytest.mark.parametrize("operations", REFUSED, ids=range(len(REFUSED)))
def test_what_a_real_server_refuses_is_refused(operations: Any) -> None:
    assert refusal_of(JSON_PATCH_SUBJECT, operations).code in (400, 413, 422)


@pytest.mark.parametrize("value", [5, None, "text", True])
def test_a_document_is_not_replaced_by_a_scalar(value: Any) -> None:
    assert refusal_of({"a": 1}, [operation("replace", "", value=value)]).code == 422


def test_a_test_without_a_value_holds_where_nothing_is() -> None:
    assert apply_json_patch({"a": 1}, [operation("test", "/b")]) == {"a": 1}


def test_an_operation_that_cannot_be_carried_out_is_unprocessable_and_names_nothing() -> None:
    refusal = refusal_of({"secret": "s3cret"}, [operation("test", "/secret", value="guess")])
    assert (refusal.code, refusal.reason, refusal.message, refusal.details) == (422, "Invalid", GENERIC, {})


def test_a_patch_that_is_no_list_of_operations_is_a_bad_request() -> None:
    text = "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"
    assert (refusal_of({}, [operation("add", 5)]).code, refusal_of({}, [operation("add", 5)]).message) == (400, text)


def test_too_many_operations_are_refused_before_any_is_carried_out() -> None:
    operations = [operation("add", "/a", value=1)] * (OPERATIONS_LIMIT + 1)
    text = "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    refusal = refusal_of({}, operations)
    assert (refusal.code, refusal.reason, refusal.message) == (413, "RequestEntityTooLarge", text)
    assert apply_json_patch({}, operations[1:]) == {"a": 1}


def test_copies_are_bounded_in_sum() -> None:
    third = "x" * (COPY_LIMIT_BYTES // 3)
    copies = [operation("copy", f"/c{number}", **{"from": "/a"}) for number in range(3)]
    assert len(apply_json_patch({"a": third}, copies[:2])) == 3
    assert refusal_of({"a": third}, copies).code == 422


def test_copies_that_grow_are_made_beside_the_loop() -> None:
    """Twelve that double a list of 2,000 kept it for 100 ms before they were refused."""
    doubles = [operation("copy", "/a/-", **{"from": "/a"})] * 12
    with on_the_loop(), pytest.raises(TooMuchForTheLoop):
        apply_json_patch({"a": ["x"] * 2000}, doubles)


def test_a_patch_that_fails_late_changes_nothing() -> None:
    document = {"a": {"b": 1}}
    refusal_of(document, [operation("remove", "/a/b"), operation("remove", "/a/b")])
    assert document == {"a": {"b": 1}}


def test_copies_are_independent_of_what_they_were_copied_from() -> None:
    operations = [
        operation("copy", "/b", **{"from": "/a"}),
        operation("add", "/b/x", value=1),
        operation("add", "/a/y", value=2),
    ]
    assert apply_json_patch({"a": {}}, operations) == {"a": {"y": 2}, "b": {"x": 1}}


@given(OBJECTS, JSON | st.lists(st.fixed_dictionaries({"op": JSON, "path": JSON}, optional={"from": JSON, "value": JSON})))
def test_any_patch_is_applied_or_refused(document: dict[str, Any], operations: Any) -> None:
    before = copied(document)
    assert refused_with(lambda: apply_json_patch(document, operations)) in (0, 400, 413, 422)
    assert document == before


PATHS = st.lists(st.sampled_from(["a", "b", "0", "1", "-1", "-", "~1"]), max_size=3).map(
    lambda parts: "".join("/" + part for part in parts)
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": PATHS},
        optional={"from": PATHS, "value": JSON},
    ),
    max_size=5,
)


@given(
    st.dictionaries(st.sampled_from("ab"), st.lists(st.integers()) | st.dictionaries(st.sampled_from("ab"), st.integers())),
    OPERATIONS,
)
def test_any_well_formed_operations_are_applied_or_unprocessable(document: dict[str, Any], operations: Any) -> None:
    assert refused_with(lambda: apply_json_patch(document, operations)) in (0, 422)
