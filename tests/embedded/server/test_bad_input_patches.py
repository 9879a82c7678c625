"""No patch makes the server fail: the four kinds of patch, on every kind of object, broken in their values and directives."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.embedded.server.strategies import (
    CUSTOM,
    CUSTOM_PATH,
    JSON,
    PATCHES,
    SAMPLES,
    TABLE,
    YAML,
    Call,
    Document,
    any_json,
    bear,
    broken,
    broken_bytes,
    few_inputs,
    one_of,
    places,
    post,
    texts,
)

JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH = PATCHES
DIRECTIVES = [
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$setElementOrder/finalizers",
    "$deleteFromPrimitiveList/finalizers",
    "$setElementOrder/",
    "$deleteFromPrimitiveList/x",
]
POINTERS = ["", "/", "//", "/-", "/metadata", "/metadata/-1", "/spec/containers/-", "/spec/containers/01", "/~2", "a", "/kind"]


@st.composite
def json_patches(draw: st.DrawFn, document: Document) -> Any:
    steps = ["/" + "/".join(str(name).replace("~", "~0").replace("/", "~1") for name in place) for place in places(document)]
    pointers = st.sampled_from([*steps, *POINTERS]) | texts
    names = st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])
    operation = st.fixed_dictionaries({"op": names, "path": pointers}, optional={"value": any_json, "from": pointers})
    operations: Any = draw(st.lists(operation, max_size=4))
    return draw(broken(operations)) if draw(st.booleans()) and operations else operations


@st.composite
def strategic_patches(draw: st.DrawFn, document: Document) -> Any:
    patch = draw(broken(document, 2))
    if isinstance(patch, dict):
        *_, inner = [patch, *(value for value in patch.values() if isinstance(value, dict))]
        inner[draw(st.sampled_from(DIRECTIVES))] = draw(st.sampled_from(["delete", "replace", "merge"]) | any_json)
    return patch


def patches_of(kind: str, document: Document) -> st.SearchStrategy[Any]:
    if kind == JSON_PATCH:
        return json_patches(document)
    return strategic_patches(document) if kind == STRATEGIC_PATCH else broken(document)


@st.composite
def patched(draw: st.DrawFn) -> list[Call]:
    path, document = draw(st.sampled_from(SAMPLES))
    one = one_of(path, document)
    calls = [post(path, document)]
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(PATCHES))
        body = msgspec.json.encode(draw(patches_of(kind, document)))
        if draw(st.integers(0, 9)) == 0:
            body = draw(broken_bytes(body))
        query = {"fieldManager": draw(st.sampled_from(["m", "n"])), **({"force": "1"} if kind == APPLY_PATCH else {})}
        place = one + draw(st.sampled_from(["", "", "/status", "/scale"]))
        calls.append(Call("PATCH", place, body, kind, draw(st.sampled_from([JSON, TABLE, YAML])), query))
    return [*calls, Call("GET", path, accept=TABLE), Call("DELETE", one)]


@few_inputs
@given(patched())
def test_any_patch_is_refused_or_taken(calls: list[Call]) -> None:
    bear(*calls)


@pytest.mark.parametrize("kind", PATCHES)
@pytest.mark.parametrize(
    "body", [b"", b"null", b"1", b'"a"', b"[]", b"{}", b"[null]", b"[[]]", b'[{"op":1}]', b"\xff", b"{" * 5000]
)
def test_a_patch_that_is_nearly_nothing_is_answered(kind: str, body: bytes) -> None:
    for path, document in (SAMPLES[0], (CUSTOM_PATH, CUSTOM)):
        call = Call("PATCH", one_of(path, document), body, kind, query={"fieldManager": "m"})
        bear(post(path, document), call, call)


@pytest.mark.parametrize("operations", [30, 1000])
def test_copies_of_copies_end_before_they_fill_the_memory(operations: int) -> None:
    copies = [{"op": "copy", "from": "/spec/free", "path": f"/spec/free/c{number}"} for number in range(operations)]
    call = Call("PATCH", one_of(CUSTOM_PATH, CUSTOM), msgspec.json.encode(copies), JSON_PATCH)
    assert bear(post(CUSTOM_PATH, CUSTOM), call)[1].status in (400, 413, 422)


def test_copies_do_not_nest_deeper_than_what_can_be_read() -> None:
    """An object of 400 levels was stored, and could not be shown as YAML any more."""
    deeper: list[Document] = [{"op": "copy", "from": "/spec/free/x", "path": "/spec/free/y"}]
    for _ in range(12):
        deeper += [
            {"op": "add", "path": "/spec/free/x", "value": {}},
            {"op": "copy", "from": "/spec/free/y", "path": "/spec/free/x/a"},
            {"op": "copy", "from": "/spec/free/x", "path": "/spec/free/y"},
        ]
    call = Call("PATCH", one_of(CUSTOM_PATH, CUSTOM), msgspec.json.encode(deeper), JSON_PATCH)
    answers = bear(post(CUSTOM_PATH, CUSTOM), *[call] * 30, Call("GET", CUSTOM_PATH, accept=YAML))
    assert answers[-1].status == 200
