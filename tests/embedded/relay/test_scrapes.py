"""When agents are asked for figures, on virtual time with agents in memory."""

import asyncio
import json
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.relay.agent_failures import AgentUnreachable
from applecart.embedded.relay.agents import HttpAgents
from applecart.embedded.relay.location import AgentAddress
from applecart.embedded.relay.scrapes import AGENT_S, FRESH_S, LOOK_S, SUMMARY_LIMIT_BYTES, Scrapes
from applecart.embedded.server.core import Core
from tests.embedded.auth.objects_in_memory import ObjectsInMemory
from tests.virtual_time import elapse


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


def summary(*pods: str) -> bytes:
    stats = {"cpu": {"usageNanoCores": 1}, "memory": {"workingSetBytes": 1}}
    refs = [{"podRef": {"namespace": "ci", "name": pod}, "containers": [{"name": "vm", **stats}]} for pod in pods]
    return json.dumps({"node": stats, "pods": refs}).encode()


def scrapes_of(clock: Clock, agents: AgentsInMemory, *documents: dict[str, Any]) -> Scrapes:
    core = SimpleNamespace(reader=ObjectsInMemory(*documents), clock=clock)
    return Scrapes(cast(Core, core), cast(HttpAgents, agents))


async def test_figures_are_asked_for_again_when_they_are_old(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary())
    scrapes = scrapes_of(clock, agents, node("a"))
    await scrapes.fresh()
    await scrapes.fresh()
    assert agents.asked == ["a"]
    await elapse(FRESH_S)
    await scrapes.fresh()
    assert agents.asked == ["a", "a"]


async def test_many_who_ask_at_once_ask_the_agents_once(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary())
    scrapes = scrapes_of(clock, agents, node("a"))
    answers = await asyncio.gather(*(scrapes.fresh() for _ in range(50)))
    assert agents.asked == ["a"]
    assert all("a" in usage for usage in answers)


async def test_one_who_gives_up_takes_nothing_from_the_others(clock: Clock) -> None:
    scrapes = scrapes_of(clock, AgentsInMemory(a=summary()), node("a"))
    first, second = asyncio.create_task(scrapes.fresh()), asyncio.create_task(scrapes.fresh())
    await elapse(0.05)
    first.cancel()
    assert "a" in await second


async def test_a_slow_agent_costs_the_others_nothing_but_its_own_deadline(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary(), b=summary(), c=summary())
    agents.delays_s["b"] = 3600
    scrapes = scrapes_of(clock, agents, *map(node, "abcd"))
    started_s = clock.monotonic()
    assert set(await scrapes.fresh()) == {"a", "c"}
    assert clock.monotonic() - started_s == pytest.approx(AGENT_S)


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>", b" " * (SUMMARY_LIMIT_BYTES + 1)])
async def test_an_agent_that_answers_nonsense_is_not_there(clock: Clock, body: bytes) -> None:
    scrapes = scrapes_of(clock, AgentsInMemory(a=body, b=summary()), node("a"), node("b"))
    assert set(await scrapes.fresh()) == {"b"}


async def test_an_agent_speaks_for_the_pods_bound_to_its_node_only(clock: Clock) -> None:
    pods = [
        {"kind": "Pod", "metadata": {"namespace": "ci", "name": name}, "spec": {"nodeName": on} if on else {}}
        for name, on in (("here", "a"), ("there", "b"), ("nowhere", ""))
    ]
    scrapes = scrapes_of(clock, AgentsInMemory(a=summary("here", "there", "nowhere", "never")), node("a"), *pods)
    assert set((await scrapes.fresh())["a"].pods) == {Key("ci", "here")}


async def test_nobody_asks_and_still_it_is_known_whether_agents_answer(clock: Clock) -> None:
    agents = AgentsInMemory(a=summary())
    scrapes = scrapes_of(clock, agents, node("a"))
    looking = asyncio.create_task(scrapes.run())
    await elapse(1)
    assert scrapes.is_any
    agents.bodies.clear()
    await elapse(LOOK_S)
    assert not scrapes.is_any
    agents.bodies["a"] = summary()
    await elapse(FRESH_S)
    assert scrapes.is_any
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
