"""What every handler needs, in one place; also what only a node's agent can answer.

The relay implements `AgentCalls` where there are sockets. An API without one says so; everything else works as before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from applecart.api.meta import Key
from applecart.clock import Clock
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.user import Attributes
from applecart.embedded.refusals import Refusal
from applecart.embedded.server.registry import Registry
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer
from applecart.embedded.server.worker import Worker
from applecart.embedded.store.store import Reader, Store
from applecart.embedded.surface.served import Served
from applecart.kube.background import Background


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator or a test may choose."""

    needs_service_accounts: bool = False  # a Pod's ServiceAccount must exist, and is `default` when none is named


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    store: Store
    registry: Registry
    reader: Reader
    clock: Clock
    authorizer: Authorizer
    settings: Settings
    background: Background  # what runs beside the requests
    worker: Worker | None = None  # None: everything runs on the loop


class AgentCalls(Protocol):
    async def log(self, request: ApiRequest, key: Key) -> Answer | StreamAnswer:
        """A container's output."""

    def refuse_plain(self, request: ApiRequest, asked: Attributes) -> Refusal:
        """The refusal of exec and attach that came without an upgrade."""

    @property
    def kinds(self) -> Sequence[Served]:
        """Kinds that are computed from what agents say, while they say something."""

    async def computed(self, request: ApiRequest, asked: Attributes) -> Answer:
        """An answer of one of those kinds."""


class NoAgents:
    """An API that reaches no agent."""

    kinds: Sequence[Served] = ()

    async def log(self, request: ApiRequest, key: Key) -> Answer | StreamAnswer:
        raise _unreachable()

    def refuse_plain(self, request: ApiRequest, asked: Attributes) -> Refusal:
        return _unreachable()

    async def computed(self, request: ApiRequest, asked: Attributes) -> Answer:
        raise _unreachable()


def _unreachable() -> Refusal:
    return Refusal(503, "ServiceUnavailable", "this API runs inside a process and reaches no node agent; ask it over HTTPS")
