"""When agents are asked for figures, on virtual time with agents in memory."""

import asyncio
from collections.abc import AsyncGenerator

from applecart.embedded.relay.agent_failures import AgentUnreachable
from applecart.embedded.relay.location import AgentAddress


class Answer:
    def __init__(self, body: bytes) -> None:
        self._body = body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


class Agents:
    """Agents by address: a body, a delay, or nobody at all."""

    def __init__(self, bodies: dict[str, bytes], delay_s: float = 0.1) -> None:
        self.bodies = bodies
        self.delay_s: dict[str, float] = dict.fromkeys(bodies, delay_s)
        self.asked: list[str] = []

    async def get(self, at: AgentAddress, path: str) -> Answer:
        self.asked.append(at.host)
        if at.host not in self.bodies:
            raise AgentUnreachable("nobody there")
        await asyncio.sleep(self.delay_s[at.host])
        return Answer(self.bodies[at.host])
