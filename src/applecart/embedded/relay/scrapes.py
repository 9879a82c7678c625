"""What the agents say of their usage, asked at most every 15 seconds, all of them at once.

`run` asks now and then even when nobody wants to know, because discovery must say whether there are figures at all: kubectl
looks there before it asks. A slow agent costs the others nothing, and one that does not answer is simply not there.
"""

import asyncio
from contextlib import aclosing
from datetime import datetime
from types import MappingProxyType

from applecart.api.meta import Key
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.agent_failures import AgentLost, AgentUnreachable
from applecart.embedded.relay.agents import AgentRefused, HttpAgents
from applecart.embedded.relay.location import agent_of
from applecart.embedded.relay.usage import BadSummary, NodeUsage, read_summary
from applecart.embedded.server.core import Core

FRESH_S = 15.0  # how old figures may be; the resolution of a metrics server
LOOK_S = 60.0  # between looks that nobody asked for
AGENT_S = 5.0  # for one agent's answer
MOST_AT_ONCE = 64
SUMMARY_LIMIT_BYTES = 4 << 20
SUMMARY_PATH = "/stats/summary"

_NOTHING: MappingProxyType[str, NodeUsage] = MappingProxyType({})


class Scrapes:
    """Usage by node name."""

    def __init__(self, core: Core, agents: HttpAgents) -> None:
        self._core = core
        self._agents = agents
        self._taken_s = float("-inf")
        self._under_way: asyncio.Task[None] | None = None
        self.usage: MappingProxyType[str, NodeUsage] = _NOTHING

    @property
    def is_any(self) -> bool:
        """Whether at least one agent answered the last time."""
        return bool(self.usage)

    async def fresh(self) -> MappingProxyType[str, NodeUsage]:
        """Figures that are not too old."""
        if self._core.clock.monotonic() - self._taken_s >= FRESH_S:
            await self.look()
        return self.usage

    async def look(self) -> None:
        """Ask every agent, or wait for the answers to whoever asks already."""
        if self._under_way is None:
            self._under_way = asyncio.create_task(self._take())
        # Somebody who gives up must not take the figures away from the others who wait for them.
        await asyncio.shield(self._under_way)

    async def run(self) -> None:
        """Looks now and then; ends when it is cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_S if self.is_any else FRESH_S)
        finally:
            if self._under_way is not None:
                self._under_way.cancel()

    async def _take(self) -> None:
        try:
            nodes = {node["metadata"]["name"]: node for node in self._core.reader.each("nodes")}
            bound = self._bound() if nodes else {}
            turn = asyncio.Semaphore(MOST_AT_ONCE)
            asked = (self._ask(node, frozenset(bound.get(name, ())), turn) for name, node in nodes.items())
            answers = await asyncio.gather(*asked)
            found = {name: usage for name, usage in zip(nodes, answers, strict=True) if usage is not None}
            self.usage = MappingProxyType(found)
            self._taken_s = self._core.clock.monotonic()
        finally:
            self._under_way = None

    async def _ask(self, node: Document, bound: frozenset[Key], turn: asyncio.Semaphore) -> NodeUsage | None:
        now: datetime = self._core.clock.now()
        try:
            async with turn, asyncio.timeout(AGENT_S):
                stream = await self._agents.get(agent_of(node), SUMMARY_PATH)
                body = bytearray()
                async with aclosing(stream.chunks()) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > SUMMARY_LIMIT_BYTES:
                            return None
            return read_summary(bytes(body), bound, now)
        except (AgentUnreachable, AgentLost, AgentRefused, Refusal, BadSummary, TimeoutError):
            return None

    def _bound(self) -> dict[str, list[Key]]:
        found: dict[str, list[Key]] = {}
        for pod in self._core.reader.each("pods"):
            if node := pod["spec"].get("nodeName"):
                found.setdefault(node, []).append(Key(pod["metadata"]["namespace"], pod["metadata"]["name"]))
        return found
