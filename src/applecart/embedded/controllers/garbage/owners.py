"""Whether an owner is there: from what was seen, else from the API itself.

Absence is believed only after the API said so about exactly the object that the reference names, in the dependent's own
namespace. A uid never comes back, so what was absent once stays absent and is not asked again. A kind that the API does not
serve says nothing about its objects: such a reference cannot be judged.
"""

from collections import OrderedDict

from applecart.api.meta import Key, Object, OwnerReference
from applecart.embedded.controllers.garbage.decide import Standing, standing_of
from applecart.embedded.controllers.garbage.graph import Graph
from applecart.errors import Transient
from applecart.kube.client import Client
from applecart.kube.discovery import Discovery
from applecart.kube.errors import NotFound
from applecart.kube.metadata_only import metadata_kind

REMEMBERED_ABSENTEES = 500  # owners with many dependents are deleted one at a time; this is many of them


class Unserved(Transient):
    """The owner's kind is not served, or not yet."""


class WrongScope(Transient):
    """The object is of the whole cluster and names an owner that lives in a namespace, which means nothing."""


class Owners:
    def __init__(self, client: Client, graph: Graph) -> None:
        self.discovery = Discovery()
        self._client = client
        self._graph = graph
        self._absentees: OrderedDict[tuple[str, OwnerReference], None] = OrderedDict()

    async def standing(self, reference: OwnerReference, dependent: Object) -> tuple[Standing, bool]:
        """How the owner is, and whether its end will be told to us."""
        seen = self._graph.owner_of(reference, dependent)
        if seen is not None:
            return standing_of(seen), True
        resource = self.discovery.find(reference.api_version, reference.kind)
        if resource is None:
            raise Unserved(
                f"{dependent.resource.kind} {dependent.key} is owned by a {reference.kind} of {reference.api_version}, which "
                "the API does not serve; it stays until that is known"
            )
        if resource.namespaced and not dependent.namespace:
            raise WrongScope(f"{dependent.resource.kind} {dependent.key} names a {reference.kind} in a namespace as its owner")
        key = Key(dependent.namespace if resource.namespaced else "", reference.name)
        known = (key.namespace, reference)
        if known in self._absentees:
            return Standing.DANGLING, True
        try:
            owner = await self._client.get(metadata_kind(resource), key)
        except NotFound:
            owner = None
        if owner is None or owner.uid != reference.uid:
            self._remember(known)
            return Standing.DANGLING, True
        return standing_of(owner), False

    def is_elsewhere(self, reference: OwnerReference, dependent: Object) -> bool:
        """Whether an object with the owner's uid was seen in another namespace."""
        found = self._graph.get(reference.uid)
        return found is not None and found.namespace not in ("", dependent.namespace)

    def _remember(self, absentee: tuple[str, OwnerReference]) -> None:
        self._absentees[absentee] = None
        if len(self._absentees) > REMEMBERED_ABSENTEES:
            self._absentees.popitem(last=False)
