"""Everything of the API that only an agent can answer: logs, remote commands and usage.

It holds no state of its own but the connections and the last figures; a server without it answers the rest as before.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiohttp import web
from multidict import MultiDict

from applecart.api.meta import Key
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.agents import HttpAgents, agent_trust
from applecart.embedded.relay.logs import read_log
from applecart.embedded.relay.metrics import METRICS_KINDS, ResourceMetrics, Scrapes
from applecart.embedded.relay.streams import OpenStream, open_stream, refuse_without_upgrade
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer
from applecart.embedded.surface.served import Served
from applecart.embedded.trust.pki import PairFiles

USAGE = "usage of nodes"


class Relay:
    def __init__(self, core: Core, agents: HttpAgents, metrics: ResourceMetrics) -> None:
        self._core = core
        self._agents = agents
        self.metrics = metrics

    @property
    def kinds(self) -> Sequence[Served]:
        return METRICS_KINDS if self.metrics.scrapes.is_any else ()

    async def computed(self, request: ApiRequest, asked: Attributes) -> Answer:
        """Usage of Nodes and Pods, already authorized."""
        return await self.metrics.answer(request, asked)

    async def log(self, request: ApiRequest, key: Key) -> Answer | StreamAnswer:
        """`GET pods/NAME/log`, already authorized."""
        return await read_log(self._core, self._agents, request, key)

    def refuse_plain(self, request: ApiRequest, asked: Attributes) -> Refusal:
        """exec and attach that came without an upgrade."""
        return refuse_without_upgrade(self._core, request.user, asked, request.method, MultiDict(request.query))

    async def open(self, user: User, raw: web.BaseRequest) -> OpenStream:
        """exec and attach that came with one. Authorizes, and raises the refusal."""
        return await open_stream(self._core, self._agents, user, raw)


@asynccontextmanager
async def running_relay(core: Core, shown: PairFiles, authority_pem: bytes, *, verifies: bool = True) -> AsyncIterator[Relay]:
    """A relay that shows this certificate to agents and believes those of this authority, until the block ends."""
    trusted = agent_trust(shown, authority_pem, verifies=verifies)
    async with HttpAgents(trusted, agent_trust(shown, authority_pem, verifies=False)) as agents:
        scrapes = Scrapes(core, agents)
        core.background.add(USAGE, scrapes.run)
        try:
            yield Relay(core, agents, ResourceMetrics(core, scrapes))
        finally:
            core.background.drop(USAGE)
            await scrapes.aclose()  # before the connections that it uses
