"""Arbitrary JSON, for what must hold whatever a client sends."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal

# Names and texts that mean something to a patch come up often, or nothing but the surface would be reached.
NAMES = st.sampled_from(
    [
        *("a", "b", "name", "type", "uid", "spec", "metadata", "status", "data", "containers", "env", "ports", "volumes"),
        *(
            "finalizers",
            "ownerReferences",
            "labels",
            "conditions",
            "managedFields",
            "items",
            "tags",
            "free",
            "apiVersion",
            "kind",
        ),
        *(
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "$setElementOrder/finalizers",
            "$setElementOrder",
            "op",
            "path",
        ),
        *("$deleteFromPrimitiveList/finalizers", "$deleteFromPrimitiveList", "from", "value", "fieldsV1", "f:a", "k:{}", "."),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["a", "b", "delete", "replace", "merge", "v1", "Apply", "FieldsV1", "/data/a", "/-", "add", "move"])
    | st.text(max_size=3)
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(NAMES, JSON, max_size=5)
SMALL_OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        st.none() | st.integers(0, 2) | st.just("x"),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=3,
)


def nested(depth: int, leaf: Any = None) -> dict[str, Any]:
    """A document of maps in maps."""
    value: Any = leaf
    for _ in range(depth):
        value = {"a": value}
    return {"a": value}


def refused_with(work: Callable[[], Any]) -> int:
    """The code of a refusal, 0 when there is none; any other exception is a defect and passes through."""
    try:
        work()
    except Refusal as refusal:
        return refusal.code
    return 0
