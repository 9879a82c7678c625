"""Which container, and where its agent is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.location import AgentAddress, agent_of, container_of


def pod(containers: str = "", init: str = "", ephemeral: str = "") -> dict[str, Any]:
    groups = {"containers": containers, "initContainers": init, "ephemeralContainers": ephemeral}
    return {
        "metadata": {"name": "job"},
        "spec": {group: [{"name": name} for name in names.split()] for group, names in groups.items() if names},
    }


@pytest.mark.parametrize(
    ("of", "wanted", "expected"),
    [
        (pod("a"), "", "a"),
        (pod("a", "i"), "", "a"),
        (pod("a b"), "b", "b"),
        (pod("a b", "i"), "i", "i"),
        (pod("a", ephemeral="e"), "e", "e"),
    ],
)
def test_a_container_is_the_named_one_or_the_only_one(of: dict[str, Any], wanted: str, expected: str) -> None:
    assert container_of(of, wanted) == expected


@pytest.mark.parametrize(
    ("of", "wanted", "message"),
    [
        (pod("a b"), "", "a container name must be specified for pod job, choose one of: [a b]"),
        (pod("a b", "i", "e"), "", "a container name must be specified for pod job, choose one of: [i a b e]"),
        (pod("a"), "c", "container c is not valid for pod job"),
        (pod(), "", "a container name must be specified for pod job"),
    ],
)
def test_a_container_that_cannot_be_told_is_refused(of: dict[str, Any], wanted: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        container_of(of, wanted)
    assert (refused.value.code, refused.value.message) == (400, message)


def node(*addresses: tuple[str, str], port: int | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"addresses": [{"type": kind, "address": address} for kind, address in addresses]}
    if port is not None:
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": port}}
    return {"metadata": {"name": "mac"}, "status": status}


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (node(("InternalIP", "10.0.0.7"), port=10999), AgentAddress("10.0.0.7", 10999)),
        (node(("Hostname", "mac"), ("InternalIP", "10.0.0.7"), port=1), AgentAddress("10.0.0.7", 1)),
        (node(("ExternalIP", "1.1.1.1"), ("Hostname", "mac")), AgentAddress("mac", 10250)),
        (node(("InternalIP", "10.0.0.7"), port=0), AgentAddress("10.0.0.7", 10250)),
        (node(("InternalIP", "10.0.0.7"), port=-4), AgentAddress("10.0.0.7", 10250)),
        (node(("InternalIP", "10.0.0.7"), port=70000), AgentAddress("10.0.0.7", 10250)),
        (node(("InternalIP", "fd00::7"), port=5), AgentAddress("fd00::7", 5)),
    ],
)
def test_an_agent_is_where_its_node_says(of: dict[str, Any], expected: AgentAddress) -> None:
    assert agent_of(of) == expected


@pytest.mark.parametrize(
    ("of", "known"),
    [
        (node(), ""),
        ({"metadata": {"name": "mac"}}, ""),
        (node(("ExternalIP", "1.1.1.1"), ("InternalDNS", "x")), "{ExternalIP 1.1.1.1} {InternalDNS x}"),
    ],
)
def test_a_node_without_an_address_of_use_is_refused(of: dict[str, Any], known: str) -> None:
    with pytest.raises(Refusal) as refused:
        agent_of(of)
    assert refused.value.message == f"no preferred addresses found; known addresses: [{known}]"
    assert refused.value.code == 500


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    at = AgentAddress("fd00::7", 5)
    assert (str(at), str(at.url("/x"))) == ("[fd00::7]:5", "https://[fd00::7]:5/x")


@given(st.lists(st.tuples(st.text(), st.text())))
def test_any_query_reaches_the_agent_as_it_was(query: list[tuple[str, str]]) -> None:
    assert list(AgentAddress("h", 1).url("/exec/a/b/c", query).query.items()) == query
