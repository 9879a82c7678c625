"""Objects of any kind by their metadata alone: for those who follow everything and read nothing.

A kind that is known only from discovery becomes a struct without fields of its own (`metadata_kind`), so lists, watches and
informers work on it as on every other. `MetadataClient` asks the server to leave the rest out: no spec, no status and no
Secret's values ever reach this process through it.
"""

from functools import cache
from types import new_class
from typing import Any, TypeVar

import msgspec

from applecart.api.meta import Key, Object, Resource
from applecart.kube.client import Client
from applecart.kube.codec import decoder
from applecart.kube.paths import object_path
from applecart.kube.transport import JSON, Request, Response, Stream

_OF_META = "g=meta.k8s.io;v=v1"
ONE = f"{JSON};as=PartialObjectMetadata;{_OF_META}"
MANY = f"{JSON};as=PartialObjectMetadataList;{_OF_META}"

K = TypeVar("K", bound=Object)


class PartialObject(Object):
    """An object of which only the metadata is known."""


@cache
def metadata_kind(resource: Resource) -> type[PartialObject]:
    """The struct of a resource, always the same one: decoders are kept per struct."""

    def fill(body: dict[str, Any]) -> None:
        body["resource"] = resource

    made: type[PartialObject] = new_class(f"{resource.kind}Metadata", (PartialObject,), exec_body=fill)
    return made


class MetadataClient(Client):
    """A client whose reads bring metadata only; its writes are those of every client."""

    @classmethod
    def of(cls, client: Client) -> "MetadataClient":
        """One on the same connection as another client, as patient as that one."""
        return cls(client.transport, client.clock, deadline_s=client.deadline_s)

    async def get(self, kind: type[K], key: Key, *, subresource: str = "") -> K:
        request = Request("GET", object_path(kind.resource, key, subresource), accept=ONE)
        return decoder(kind).decode((await self.call(request)).body)

    async def call(self, request: Request, *, repeatable: bool = True) -> Response:
        if request.method == "GET" and request.accept == JSON:  # `get` says its own: the rest are lists
            request = msgspec.structs.replace(request, accept=MANY)
        return await super().call(request, repeatable=repeatable)

    async def open(self, request: Request) -> Stream:
        return await super().open(msgspec.structs.replace(request, accept=ONE))
