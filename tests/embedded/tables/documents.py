"""What a document may hold: any JSON value, for tests that nothing in it can do harm."""

from typing import Any

from hypothesis import strategies as st

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2026-01-01", "null", "Ready", "True"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)),
    max_leaves=8,
)

MEMBERS = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "spec",
    "status",
    "type",
    "data",
    "binaryData",
    "conditions",
    "reason",
    "phase",
    "containers",
    "initContainers",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "lastState",
    "terminated",
    "waiting",
    "running",
    "restartCount",
    "finishedAt",
    "podIPs",
    "ip",
    "nodeName",
    "readinessGates",
    "conditionType",
    "nodeInfo",
    "addresses",
    "involvedObject",
    "regarding",
    "series",
    "source",
    "ports",
    "clusterIPs",
    "selector",
    "loadBalancer",
    "ingress",
    "roleRef",
    "subjects",
    "kind",
]


def documents(depth: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    """Documents whose members have the names that tables read, with anything in them."""
    inner = VALUES if depth == 0 else st.one_of(VALUES, documents(depth - 1), st.lists(documents(depth - 1), max_size=2))
    return st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4)
