"""How kinds look to clients that are answered and never stored: a review is created, and its answer is all there is of it."""

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.kinds import virtual
from applecart.embedded.kinds.kind import Subresource
from applecart.embedded.surface.served import Served


class VirtualKind(msgspec.Struct, frozen=True):
    """What discovery and OpenAPI need to know of such a kind."""

    resource: Resource
    verbs: tuple[str, ...] = ("create",)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_custom: bool = False

    @property
    def storage(self) -> Resource:
        return self.resource

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()


VIRTUAL_KINDS: tuple[Served, ...] = tuple(VirtualKind(resource) for resource in virtual.VIRTUAL_KINDS)
