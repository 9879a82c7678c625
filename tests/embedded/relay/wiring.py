"""The API with its relay: logs, the refusal of plain exec, and the metrics group where there are figures."""

from applecart.api.meta import Key
from applecart.embedded.attributes import Attributes
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.relay.relay import Relay
from applecart.embedded.relay.resource_metrics import GROUP, METRICS_KINDS
from applecart.embedded.server.api import Api
from applecart.embedded.server.messages import Answer, ApiRequest, StreamAnswer
from applecart.embedded.server.pages import Pages
from applecart.embedded.server.route import attributes_of
from applecart.embedded.surface.discovery import Discovery
from applecart.embedded.surface.virtual_kinds import VIRTUAL_KINDS


class RelayingPages(Pages):
    """Discovery that names the metrics while they are served."""

    relay: Relay

    def _renew(self) -> None:
        super()._renew()
        extra = METRICS_KINDS if self.relay.metrics.is_served else ()
        self._discovery = Discovery([*self._core.registry.kinds(), *VIRTUAL_KINDS, *extra])


class RelayingApi(Api):
    def __init__(self, api: Api, relay: Relay) -> None:
        pages = RelayingPages(api.core, api._pages._tokens, api._pages._address)
        pages.relay = relay
        super().__init__(api.core, api._identity, pages)
        self._relay = relay

    async def _answer(self, request: ApiRequest) -> Answer | StreamAnswer:
        asked = attributes_of(request.method, request.path, request.query)
        if asked.is_resource and asked.group == GROUP and self._relay.metrics.is_served:
            self.core.access.authorize(request.user, asked)
            return await self._relay.metrics.answer(request, asked)
        return await super()._answer(request)

    async def _subresource(self, request: ApiRequest, kind: Kind, key: Key, asked: Attributes) -> Answer | StreamAnswer:
        if kind.resource.label == "pods" and asked.subresource == "log" and request.method in ("GET", "HEAD"):
            return await self._relay.log(request, key)
        if kind.resource.label == "pods" and asked.subresource in ("exec", "attach"):
            raise self._relay.refuse_plain(request, asked)
        return await super()._subresource(request, kind, key, asked)
