"""Whatever is sent, the answer is an object or a refusal, never another exception."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from tests.embedded.kinds import kind_cases, pod_cases
from tests.embedded.kinds.documents import created, updated

SMALL = [
    document for document in (*pod_cases.CREATED.values(), *kind_cases.CREATED.values()) if len(json.dumps(document)) < 4000
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["", "a", "1Gi", "-1", "..", "/", "Always", "2026-01-01T00:00:00Z", 0, -1, 2**31, 2**63, 2**70]),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something could be put instead: every member and item below the kind's name."""
    found = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        if path or key not in ("apiVersion", "kind"):
            found += [(*path, key), *places(inner, (*path, key))]
    return found


def put(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(document))
    parent: Any = copy
    for key in path[:-1]:
        parent = parent[key]
    if value is ...:
        parent.pop(path[-1], None) if isinstance(parent, dict) else parent.pop(path[-1])
    else:
        parent[path[-1]] = value
    return copy


@st.composite
def spoiled(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A document, and the same with something else in one to three places."""
    document = draw(st.sampled_from(SMALL))
    broken = document
    for _time in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(broken) or [("metadata",)]))
        broken = put(broken, path, draw(st.one_of(JSON, st.just(...))))
    return document, broken


def answer_to(new: dict[str, Any], old: dict[str, Any] | None = None, subresource: str = "") -> int:
    """The code of the answer; any other exception is the test's failure."""
    try:
        if old is None:
            created(new, "ns")
        else:
            updated(new, created(old, "ns"), subresource)
    except Refusal as refusal:
        json.dumps(refusal.document())
        return refusal.code
    return 200


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled())
def test_a_spoiled_document_is_created_or_refused(case: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert answer_to(case[1]) in (200, 400, 403, 422)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(spoiled(), st.sampled_from(["", "status"]))
def test_a_spoiled_update_is_taken_or_refused(case: tuple[dict[str, Any], dict[str, Any]], subresource: str) -> None:
    assert answer_to(case[1], case[0], subresource) in (200, 400, 403, 422)


@pytest.mark.parametrize("document", SMALL, ids=range(len(SMALL)))
def test_what_was_accepted_is_accepted_again(document: dict[str, Any]) -> None:
    """An object that was read and is written back unchanged must pass its own rules."""
    try:
        stored = created(document, "ns")
    except Refusal:
        return
    again = json.loads(json.dumps(stored))
    assert updated(again, stored)["metadata"].get("generation") == stored["metadata"].get("generation")
