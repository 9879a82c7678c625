"""The metrics group over real sockets: documents, selectors, and that it is there only while an agent answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from applecart.clock import Clock
from tests.embedded.relay.stage import OurStage, our_stage

pytestmark = pytest.mark.real_time

METRICS = "/apis/metrics.k8s.io/v1beta1"


@pytest.fixture
async def stage(tmp_path: Path, clock: Clock) -> AsyncIterator[OurStage]:
    async with our_stage(tmp_path, clock) as stage:
        yield stage


async def measured(stage: OurStage) -> None:
    """Two Pods at work, and figures of them."""
    for name, cpu_nanocores, memory_bytes in (("a", 250_000_000, 64 << 20), ("b", 1_000_000_000, 1 << 30)):
        await stage.make_pod(name, labels={"app": name})
        guest = stage.agent.add("default", name, "vm")
        guest.cpu_nanocores, guest.memory_bytes = cpu_nanocores, memory_bytes
    await stage.until_measured()


async def listed(stage: OurStage, path: str) -> dict[str, Any]:
    status, text = await stage.get(f"{METRICS}/{path}")
    assert status == 200, text
    found: dict[str, Any] = json.loads(text)
    return found


async def test_nodes_are_listed_as_a_metrics_server_would(stage: OurStage) -> None:
    await measured(stage)
    found = await listed(stage, "nodes")
    assert (found["kind"], found["apiVersion"], found["metadata"]) == ("NodeMetricsList", "metrics.k8s.io/v1beta1", {})
    [node] = found["items"]
    assert node["metadata"]["name"] == stage.node
    assert node["usage"] == {"cpu": "1250m", "memory": "1088Mi"}
    assert set(node) == {"metadata", "timestamp", "window", "usage"}
    assert (await listed(stage, f"nodes/{stage.node}"))["usage"] == node["usage"]


async def test_pods_are_listed_with_their_containers(stage: OurStage) -> None:
    await measured(stage)
    found = await listed(stage, "namespaces/default/pods")
    assert [pod["metadata"]["name"] for pod in found["items"]] == ["a", "b"]
    assert found["items"][0]["containers"] == [{"name": "vm", "usage": {"cpu": "250m", "memory": "64Mi"}}]
    assert found["items"][0]["metadata"]["labels"] == {"app": "a"}
    one = await listed(stage, "namespaces/default/pods/b")
    assert (one["kind"], one["containers"][0]["usage"]) == ("PodMetrics", {"cpu": "1", "memory": "1Gi"})


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("pods", ["a", "b"]),
        ("pods?labelSelector=app%3Da", ["a"]),
        ("namespaces/default/pods?fieldSelector=metadata.name%3Db", ["b"]),
        ("namespaces/other/pods", []),
    ],
)
async def test_selectors_choose(stage: OurStage, path: str, names: list[str]) -> None:
    await measured(stage)
    assert [pod["metadata"]["name"] for pod in (await listed(stage, path))["items"]] == names


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("nodes/none", 404, 'nodes "none" not found'),
        ("namespaces/default/pods/none", 404, 'pods "none" not found'),
        ("namespaces/default/pods/idle", 404, 'podmetrics.metrics.k8s.io "default/idle" not found'),
        ("pods?fieldSelector=spec.x%3Db", 400, "field label not supported: spec.x"),
        ("pods?labelSelector=%28", 400, None),
        ("bogus", 404, "the server could not find the requested resource"),
        ("pods/a", 404, "the server could not find the requested resource"),
        ("nodes/a/status", 404, "the server could not find the requested resource"),
        ("namespaces/default/nodes", 404, "the server could not find the requested resource"),
        ("pods?watch=true", 405, None),
    ],
)
async def test_what_there_is_no_figure_of_is_refused(stage: OurStage, path: str, code: int, message: str | None) -> None:
    await measured(stage)
    await stage.make_pod("idle", node="")
    refusal = await stage.refusal(f"{METRICS}/{path}")
    assert refusal["code"] == code
    assert message is None or refusal["message"] == message


async def test_the_group_is_there_only_when_an_agent_answers(stage: OurStage) -> None:
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    assert (await stage.get(f"{METRICS}/nodes"))[0] == 404
    _, groups = await stage.get("/apis")
    assert "metrics.k8s.io" not in groups


async def test_discovery_names_the_group_while_it_is_served(stage: OurStage) -> None:
    await measured(stage)
    _, text = await stage.get("/apis")
    assert "metrics.k8s.io" in [group["name"] for group in json.loads(text)["groups"]]
    _, resources = await stage.get(METRICS)
    assert [(one["name"], one["kind"], one["verbs"]) for one in json.loads(resources)["resources"]] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]


async def test_agents_are_asked_once_for_many_questions(stage: OurStage) -> None:
    await measured(stage)
    for _ in range(5):
        await listed(stage, "nodes")
    assert stage.agent.asked.count("/stats/summary") <= 2
