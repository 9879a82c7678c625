"""An agent's summary, read into numbers."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Key
from applecart.embedded.relay.usage import BadSummary, Usage, cpu_quantity, memory_quantity, read_summary

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
EARLIER = datetime(2026, 1, 1, 11, 59, 50, tzinfo=UTC)
JOB = Key("ci", "job")


def stats(cpu: Any = 1, memory: Any = 2, time: str = "2026-01-01T11:59:50Z") -> dict[str, Any]:
    return {"cpu": {"time": time, "usageNanoCores": cpu}, "memory": {"workingSetBytes": memory}}


def summary(*containers: dict[str, Any], node: dict[str, Any] | None = None, name: str = "job") -> bytes:
    pod = {"podRef": {"namespace": "ci", "name": name, "uid": "u"}, "containers": list(containers)}
    return json.dumps({"node": {"nodeName": "mac", **(node or stats())}, "pods": [pod]}).encode()


def test_a_summary_gives_the_node_and_its_pods() -> None:
    usage = read_summary(summary({"name": "vm", **stats(5, 6)}), {JOB}, NOW)
    assert usage.own == Usage(1, 2, EARLIER)
    assert usage.pods == {JOB: {"vm": Usage(5, 6, EARLIER)}}


def test_an_agent_is_not_believed_about_pods_of_other_nodes() -> None:
    assert read_summary(summary({"name": "vm", **stats()}), {Key("ci", "another")}, NOW).pods == {}


@pytest.mark.parametrize(
    "other",
    [{}, {"cpu": {"usageNanoCores": 1}}, stats(cpu=None), stats(memory=None), stats(cpu=-1), stats(memory=1 << 63)],
)
def test_a_pod_of_which_a_part_is_unknown_has_no_figures(other: dict[str, Any]) -> None:
    assert read_summary(summary({"name": "vm", **stats()}, {"name": "two", **other}), {JOB}, NOW).pods == {}


@pytest.mark.parametrize("time", ["", "yesterday", "2999-01-01T00:00:00Z", "2026-01-01T12:00:00"])
def test_a_time_that_cannot_be_is_now(time: str) -> None:
    own = read_summary(summary(node=stats(time=time)), set(), NOW).own
    assert own is not None
    assert own.at == NOW


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"node":[]}', b"\xff", b"[" * 100_000, b'{"node":{},"pods":[{}]}'])
def test_what_is_no_summary_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(BadSummary):
        read_summary(body, set(), NOW)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["node", "pods", "cpu", "memory", "time", "usageNanoCores", "podRef", "name", "containers"]), inner
        )
    ),
    max_leaves=12,
)


@given(_json)
def test_any_document_is_read_or_refused(document: Any) -> None:
    try:
        usage = read_summary(json.dumps(document).encode(), {JOB}, NOW)
    except BadSummary:
        return
    assert set(usage.pods) <= {JOB}


@pytest.mark.parametrize(
    ("nanocores", "text"),
    [(0, "0"), (2_000_000_000, "2"), (250_000_000, "250m"), (1_500_000, "1500u"), (12_345_678, "12345678n")],
)
def test_cpu_is_written_in_the_largest_unit_that_is_exact(nanocores: int, text: str) -> None:
    assert cpu_quantity(nanocores) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0"), (1, "1"), (2048, "2Ki"), (3 << 20, "3Mi"), (8 << 30, "8Gi"), (1025, "1025"), (1536 << 20, "1536Mi")],
)
def test_memory_is_written_in_the_largest_unit_that_is_exact(size_bytes: int, text: str) -> None:
    assert memory_quantity(size_bytes) == text
