"""What a caller may do here: the API is asked, in the terms in which a kubelet asks.

A path becomes a subresource of this Node (`nodes/proxy`, `nodes/stats` ...). A WebSocket begins with GET, yet running a
command is no reading: exec and attach count as create, whatever the method. Only a yes of the API is a yes, except for the API
server itself, which must be able to read logs while the API is too busy to be asked.
"""

import asyncio

import msgspec

from applecart.api.authorization import ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec
from applecart.clock import Clock
from applecart.errors import ApplecartError
from applecart.kube.client import Client
from applecart.kubelet.serve.callers import REVIEW_S, Caller, CannotAsk
from applecart.kubelet.serve.remembered import Remembered
from applecart.observe.logs import logger

ALLOWED_S, DENIED_S = 300.0, 30.0  # as a kubelet remembers them; a fresh grant is felt soon, a withdrawn one in 5 minutes
MOST_ANSWERS = 4096
_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCES = {"stats": "stats", "metrics": "metrics", "logs": "log", "checkpoint": "checkpoint"}
_FINE_GRAINED = {"pods": "pods", "runningpods": "pods", "healthz": "healthz", "configz": "configz"}
_COMMANDS = ("exec", "attach", "run", "portForward")

log = logger(__name__)


class Asked(msgspec.Struct, frozen=True):
    """One of the subresources is enough."""

    verb: str
    subresources: tuple[str, ...]


def asked(method: str, path: str) -> Asked:
    first = path.strip("/").partition("/")[0]
    verb = "create" if first in _COMMANDS else _VERBS.get(method, "")
    if first in _SUBRESOURCES:
        return Asked(verb, (_SUBRESOURCES[first],))
    if first.lower() in _FINE_GRAINED:
        return Asked(verb, (_FINE_GRAINED[first.lower()], "proxy"))
    return Asked(verb, ("proxy",))


def forbidden(caller: Caller, wanted: Asked) -> str:
    """In a kubelet's words, which people search for."""
    subresources = " ".join(wanted.subresources)
    return f"Forbidden (user={caller.name}, verb={wanted.verb}, resource=nodes, subresource(s)=[{subresources}])"


class Access:
    def __init__(self, client: Client, node: str, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._known: Remembered[tuple[Caller, str, str], bool] = Remembered(clock, MOST_ANSWERS)

    async def allows(self, caller: Caller, wanted: Asked) -> bool:
        """Raises CannotAsk."""
        if caller.is_the_api_server:
            return True
        for subresource in wanted.subresources:
            if await self._allows(caller, wanted.verb, subresource):
                return True
        return False

    async def _allows(self, caller: Caller, verb: str, subresource: str) -> bool:
        key = (caller, verb, subresource)
        known = self._known.get(key)
        if known is None:
            known = await self._ask(caller, verb, subresource)
            self._known.put(key, known, ALLOWED_S if known else DENIED_S)
        return known

    async def _ask(self, caller: Caller, verb: str, subresource: str) -> bool:
        attributes = ResourceAttributes(verb=verb, version="v1", resource="nodes", subresource=subresource, name=self._node)
        spec = SubjectAccessReviewSpec(
            user=caller.name,
            uid=caller.uid,
            groups=caller.groups,
            extra=dict(caller.extra),
            resource_attributes=attributes,
        )
        try:
            async with asyncio.timeout(REVIEW_S):
                review = await self._client.create(SubjectAccessReview(spec=spec))
        except (ApplecartError, TimeoutError) as error:
            log.warning("the API cannot be asked what a caller may do", user=caller.name, exc_info=error)
            raise CannotAsk(f"the Kubernetes API cannot be asked what {caller.name} may do; try again") from None
        return review.status.allowed and not review.status.denied
