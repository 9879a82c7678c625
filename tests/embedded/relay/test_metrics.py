"""Usage as agents tell it, as it is gathered, and as `kubectl top` reads it."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.relay import metrics
from applecart.embedded.relay.agents import AgentUnreachable, HttpAgents
from applecart.embedded.relay.location import AgentAddress, agent_of
from applecart.embedded.relay.metrics import (
    AGENT_S,
    FRESH_S,
    LOOK_S,
    SUMMARY_LIMIT_BYTES,
    BadSummary,
    Scrapes,
    Usage,
    cpu_quantity,
    memory_quantity,
    read_summary,
)
from applecart.embedded.server.core import Core
from applecart.embedded.store.record import NOTHING, Record, Traits
from applecart.embedded.store.table import NODE_FIELD, Table
from applecart.kube.transport import Request
from tests.embedded.auth.objects_in_memory import ObjectsInMemory
from tests.embedded.relay.stage import OurStage, our_stage
from tests.kube.embedded_api import serving
from tests.virtual_time import elapse

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


class AgentsInMemory:
    """Agents by address: a body after a while, or nobody at all."""

    def __init__(self, **bodies: bytes) -> None:
        self.bodies = bodies
        self.delays_s = dict.fromkeys(bodies, 0.1)
        self.asked: list[str] = []

    async def get(self, at: AgentAddress, _: str) -> SimpleNamespace:
        self.asked.append(at.host)
        if at.host not in self.bodies:
            raise AgentUnreachable("nobody there")
        await asyncio.sleep(self.delays_s[at.host])

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield self.bodies[at.host]

        return SimpleNamespace(chunks=chunks)


def node(name: str) -> dict[str, Any]:
    status = {"addresses": [{"type": "InternalIP", "address": name}]}
    return {"kind": "Node", "metadata": {"name": name}, "status": status}


def summary_of(*pods: str) -> bytes:
    stats = {"cpu": {"usageNanoCores": 1}, "memory": {"workingSetBytes": 1}}
    refs = [{"podRef": {"namespace": "ci", "name": pod}, "containers": [{"name": "vm", **stats}]} for pod in pods]
    return json.dumps({"node": stats, "pods": refs}).encode()


def scrapes_of(clock: Clock, agents: AgentsInMemory, *documents: dict[str, Any]) -> Scrapes:
    tables = {"pods": Table("pods", 0)}
    for document in documents:
        if document["kind"] == "Pod":
            key = Key(document["metadata"]["namespace"], document["metadata"]["name"])
            traits = Traits("", NOTHING, {NODE_FIELD: document["spec"].get("nodeName", "")})
            tables["pods"].load(Record(key, 1, msgspec.json.encode(document), traits))
    tables["pods"].sort()
    store = SimpleNamespace(table=tables.__getitem__)
    core = SimpleNamespace(reader=ObjectsInMemory(*documents), clock=clock, store=store)
    return Scrapes(cast(Core, core), cast(HttpAgents, agents))


async def test_figures_are_asked_for_again_when_they_are_old(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary_of())
    scrapes = scrapes_of(clock, agents, node("a"))
    await scrapes.fresh()
    await scrapes.fresh()
    assert agents.asked == ["a"]
    await elapse(FRESH_S)
    await scrapes.fresh()
    assert agents.asked == ["a", "a"]


async def test_many_who_ask_at_once_ask_the_agents_once(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary_of())
    scrapes = scrapes_of(clock, agents, node("a"))
    answers = await asyncio.gather(*(scrapes.fresh() for _ in range(50)))
    assert agents.asked == ["a"]
    assert all("a" in usage for usage in answers)


async def test_one_who_gives_up_takes_nothing_from_the_others(clock: Clock) -> None:
    scrapes = scrapes_of(clock, AgentsInMemory(a=summary_of()), node("a"))
    first, second = asyncio.create_task(scrapes.fresh()), asyncio.create_task(scrapes.fresh())
    await elapse(0.05)
    first.cancel()
    assert "a" in await second


async def test_a_look_that_is_under_way_has_ended_when_the_relay_has(clock: Clock) -> None:
    """Its agents were asked through a session that was closed already, and a stop ended in a trace."""
    agents = AgentsInMemory(a=summary_of())
    agents.delays_s["a"] = 3600
    scrapes = scrapes_of(clock, agents, node("a"))
    looking = asyncio.create_task(scrapes.run())
    await elapse(0.05)
    before = asyncio.all_tasks()
    looking.cancel()
    await scrapes.aclose()
    assert [task for task in before if not task.done()] == [asyncio.current_task()]


async def test_a_slow_agent_costs_the_others_nothing_but_its_own_deadline(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary_of(), b=summary_of(), c=summary_of())
    agents.delays_s["b"] = 3600
    scrapes = scrapes_of(clock, agents, *map(node, "abcd"))
    started_s = clock.monotonic()
    assert set(await scrapes.fresh()) == {"a", "c"}
    assert clock.monotonic() - started_s == pytest.approx(AGENT_S)


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b" " * (SUMMARY_LIMIT_BYTES + 1)])
async def test_an_agent_that_answers_nonsense_is_not_there(clock: Clock, body: bytes) -> None:
    scrapes = scrapes_of(clock, AgentsInMemory(a=body, b=summary_of()), node("a"), node("b"))
    assert set(await scrapes.fresh()) == {"b"}


async def test_an_agent_speaks_for_the_pods_bound_to_its_node_only(clock: Clock) -> None:
    pods = [
        {"kind": "Pod", "metadata": {"namespace": "ci", "name": name}, "spec": {"nodeName": on} if on else {}}
        for name, on in (("here", "a"), ("there", "b"), ("nowhere", ""))
    ]
    scrapes = scrapes_of(clock, AgentsInMemory(a=summary_of("here", "there", "nowhere", "never")), node("a"), *pods)
    assert set((await scrapes.fresh())["a"].pods) == {Key("ci", "here")}


async def test_pods_are_not_parsed_to_know_their_nodes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 Pods kept everybody waiting for 27 ms every 15 s."""
    async with serving(clock, ["ci"]) as running:
        send = running.transport().send
        pod = {"metadata": {"name": "here"}, "spec": {"nodeName": "a", "containers": [{"name": "vm", "image": "i"}]}}
        for path, body in (("/api/v1/nodes", node("a")), ("/api/v1/namespaces/ci/pods", pod)):
            assert (await send(Request("POST", path, body=json.dumps(body).encode()))).status == 201
        parsed, document = [], Record.document

        def noted(record: Record) -> dict[str, Any]:
            parsed.append(record.key)
            return document(record)

        monkeypatch.setattr(Record, "document", noted)
        scrapes = Scrapes(running.core, cast(HttpAgents, AgentsInMemory(a=summary_of("here", "never"))))
        assert set((await scrapes.fresh())["a"].pods) == {Key("ci", "here")}
        assert parsed == [Key("", "a")]


async def test_a_surprise_about_one_node_is_said_and_takes_no_figures_from_the_others(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def surprised(node: dict[str, Any]) -> AgentAddress:
        if node["metadata"]["name"] == "b":
            raise UnicodeError("label too long")
        return agent_of(node)

    monkeypatch.setattr(metrics, "agent_of", surprised)
    scrapes = scrapes_of(clock, AgentsInMemory(a=summary_of(), b=summary_of()), node("a"), node("b"))
    assert set(await scrapes.fresh()) == {"a"}
    assert [one.message for one in caplog.records] == ["asking an agent for usage failed in a way nobody foresaw"]


async def test_nobody_asks_and_still_it_is_known_whether_agents_answer(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary_of())
    scrapes = scrapes_of(clock, agents, node("a"))
    looking = asyncio.create_task(scrapes.run())
    await elapse(1)
    assert scrapes.is_any
    agents.bodies.clear()
    await elapse(LOOK_S)
    assert not scrapes.is_any
    agents.bodies["a"] = summary_of()
    await elapse(FRESH_S)
    assert scrapes.is_any
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)


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


@pytest.mark.real_time
async def test_nodes_are_listed_as_a_metrics_server_would(stage: OurStage) -> None:
    await measured(stage)
    found = await listed(stage, "nodes")
    assert (found["kind"], found["apiVersion"], found["metadata"]) == ("NodeMetricsList", "metrics.k8s.io/v1beta1", {})
    [node] = found["items"]
    assert node["metadata"]["name"] == stage.node
    assert node["usage"] == {"cpu": "1250m", "memory": "1088Mi"}
    assert set(node) == {"metadata", "timestamp", "window", "usage"}
    assert (await listed(stage, f"nodes/{stage.node}"))["usage"] == node["usage"]


@pytest.mark.real_time
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
@pytest.mark.real_time
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
@pytest.mark.real_time
async def test_what_there_is_no_figure_of_is_refused(stage: OurStage, path: str, code: int, message: str | None) -> None:
    await measured(stage)
    await stage.make_pod("idle", node="")
    refusal = await stage.refusal(f"{METRICS}/{path}")
    assert refusal["code"] == code
    assert message is None or refusal["message"] == message


@pytest.mark.real_time
async def test_the_group_is_there_only_when_an_agent_answers(stage: OurStage) -> None:
    await stage.patch_node({"daemonEndpoints": {"kubeletEndpoint": {"Port": 9}}})
    assert (await stage.get(f"{METRICS}/nodes"))[0] == 404
    _, groups = await stage.get("/apis")
    assert "metrics.k8s.io" not in groups


@pytest.mark.real_time
async def test_discovery_names_the_group_while_it_is_served(stage: OurStage) -> None:
    await measured(stage)
    _, text = await stage.get("/apis")
    assert "metrics.k8s.io" in [group["name"] for group in json.loads(text)["groups"]]
    _, resources = await stage.get(METRICS)
    assert [(one["name"], one["kind"], one["verbs"]) for one in json.loads(resources)["resources"]] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]


@pytest.mark.real_time
async def test_agents_are_asked_once_for_many_questions(stage: OurStage, monkeypatch: pytest.MonkeyPatch) -> None:
    await measured(stage)
    monkeypatch.setattr(metrics, "FRESH_S", 3600.0)  # however long the questions take
    for _ in range(5):
        await listed(stage, "nodes")
    assert stage.agent.asked.count("/stats/summary") <= 2
