"""Which resources an API serves, and what may be done with them.

Read from the aggregated documents that every server since Kubernetes 1.27 has: two calls, whatever the number of groups. A
group whose own server does not answer is named in `unknown` and never taken for one that serves nothing.
"""

import asyncio
from collections.abc import Iterable

import msgspec

from applecart.api.meta import Part, Resource
from applecart.errors import ControlPlaneFault
from applecart.kube.client import Client
from applecart.kube.codec import Decoder
from applecart.kube.transport import JSON, Request

_FORM = "g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
ACCEPT = f"{JSON};v=v2;{_FORM},{JSON};v=v2beta1;{_FORM}"
ROOTS = ("/api", "/apis")
STALE = "Stale"


class Served(msgspec.Struct, frozen=True):
    """A resource under one of its versions."""

    resource: Resource
    verbs: frozenset[str]
    is_preferred: bool = True  # the version in which whoever has no reason for another reads it

    def allows(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


class Discovery(msgspec.Struct, frozen=True):
    """What a server served when it was asked."""

    served: tuple[Served, ...] = ()
    unknown: tuple[str, ...] = ()  # groups with their versions, as in `metrics.k8s.io/v1beta1`, of which nothing is known

    def is_unknown(self, group: str) -> bool:
        return any(api_version.partition("/")[0] == group for api_version in self.unknown)

    def preferred(self) -> list[Served]:
        return [one for one in self.served if one.is_preferred]

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Where a kind is served in exactly this version; None when it is not."""
        wanted = (api_version, kind)
        found = (one.resource for one in self.served if (one.resource.api_version, one.resource.kind) == wanted)
        return next(found, None)


class _Kind(Part):
    kind: str = ""


class _Resource(Part):
    resource: str
    scope: str
    response_kind: _Kind = _Kind()
    verbs: tuple[str, ...] = ()


class _Version(Part):
    version: str
    resources: tuple[_Resource, ...] = ()
    freshness: str = ""


class _Metadata(Part):
    name: str = ""


class _Group(Part):
    metadata: _Metadata = _Metadata()
    versions: tuple[_Version, ...] = ()


class _Groups(Part):
    kind: str = ""
    items: tuple[_Group, ...] = ()


_decoder: Decoder[_Groups] = Decoder(_Groups, "list of API groups")


async def discover(client: Client) -> Discovery:
    """Ask the server what it serves."""
    answers = await asyncio.gather(*(client.call(Request("GET", root, accept=ACCEPT)) for root in ROOTS))
    documents = [_decoder.decode(answer.body) for answer in answers]
    if any(document.kind != "APIGroupDiscoveryList" for document in documents):
        raise ControlPlaneFault(
            "the API server lists its resources in no form we know; Kubernetes 1.27 is the oldest that does"
        )
    groups = [group for document in documents for group in document.items]
    unknown = tuple(
        f"{group.metadata.name}/{version.version}"
        for group in groups
        for version in group.versions
        if version.freshness == STALE
    )
    return Discovery(tuple(served for group in groups for served in _served(group)), unknown)


def _served(group: _Group) -> Iterable[Served]:
    """Versions come in the server's order of preference; a resource is preferred where it is first."""
    seen: set[str] = set()
    for version in group.versions:
        for found in version.resources:
            is_namespaced = found.scope == "Namespaced"
            resource = Resource(group.metadata.name, version.version, found.response_kind.kind, found.resource, is_namespaced)
            yield Served(resource, frozenset(found.verbs), found.resource not in seen)
        seen.update(found.resource for found in version.resources)
