"""Which kinds are served, and what the store needs to know of their objects.

Built-in kinds are fixed; custom kinds come and go with their CustomResourceDefinitions, in the same write, and never in a group
of the server: a built-in kind is neither replaced nor joined, and where both claimed a place it wins. The kind of definitions
is here too, because it needs to know the other definitions and the time. Whoever derives something from the set of kinds
(discovery, OpenAPI) keeps it until `edition` moves.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from applecart.api.meta import Resource
from applecart.clock import Clock
from applecart.embedded.kinds.builtin import built_in_kind
from applecart.embedded.kinds.kind import Kind, Subresource
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.schema.crd_strategy import BUILT_IN, CrdStrategy, TakenNames, taken_names
from applecart.embedded.store.record import NOTHING, Traits
from applecart.embedded.store.store import peek
from applecart.embedded.surface.served import COMPUTED_GROUP, VIRTUAL_KINDS
from applecart.observe.logs import logger

_log = logger(__name__)
CRD_LABEL = "customresourcedefinitions.apiextensions.k8s.io"


class Registry:
    """The kinds by where they are served and by where they are stored."""

    def __init__(self, builtin: Iterable[Kind]) -> None:
        self.edition = 1
        self._builtin = list(builtin)
        kinds = (*self._builtin, *VIRTUAL_KINDS)
        self._builtin_groups = frozenset({COMPUTED_GROUP, *(kind.resource.group for kind in kinds)})
        self._custom: dict[str, list[Kind]] = {}  # by the name of their definition
        self.names: dict[str, Document] = {}  # likewise, also of those that are not served
        self._leaving: set[str] = set()  # definitions that are being deleted
        self._order()

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._served.get((group, version, plural))

    def built_in(self, version: str, plural: str, group: str = "") -> Kind:
        """One that is always served."""
        return self._served[group, version, plural]

    def of_kind(self, group: str, version: str, kind: str) -> Kind | None:
        return self._by_kind.get((group, version, kind))

    def serves(self, api_version: str, kind: str) -> bool:
        group, _, version = api_version.rpartition("/")
        return (group, version, kind) in self._by_kind

    def storing(self, label: str) -> Kind | None:
        """The kind whose form is the stored one."""
        return self._stored.get(label)

    def kinds(self) -> Sequence[Kind]:
        return self._all

    def custom(self, definition: str) -> Sequence[Kind]:
        return self._custom.get(definition, ())

    def is_builtin_group(self, group: str) -> bool:
        return group in self._builtin_groups

    def install(self, definition: str, kinds: Sequence[Kind]) -> None:
        """Serve the kinds of a definition instead of those it had before; none takes them away."""
        if kinds and self.is_builtin_group(kinds[0].resource.group):  # a database may hold one that is refused today
            _log.warning("a definition is not served: its group is built into this server", extra={"definition": definition})
            kinds = ()
        if kinds:
            self._custom[definition] = list(kinds)
        else:
            self._custom.pop(definition, None)
        self.edition += 1
        self._order()

    def leave(self, definition: str, *, is_leaving: bool) -> None:
        """Whether a definition is on its way out: its objects go, and none come."""
        (self._leaving.add if is_leaving else self._leaving.discard)(definition)

    def is_leaving(self, kind: Kind) -> bool:
        return kind.is_custom and kind.storage.label in self._leaving

    def take_in(self, label: str, value: bytes) -> tuple[bytes, Traits]:
        """An object that was stored earlier, as it is served today, and its traits."""
        kind = self._stored.get(label)
        if kind is None or (not kind.is_custom and not kind.strategy.field_names):
            return value, peek(value)
        document = msgspec.json.decode(value)
        if kind.is_custom and renew(kind, document):
            value = msgspec.json.encode(document)
        return value, traits_of(kind, document)

    def _order(self) -> None:
        self._all = [*self._builtin, *(kind for name in sorted(self._custom) for kind in self._custom[name])]
        builtin_last = self._all[::-1]
        self._served = {(k.resource.group, k.resource.version, k.resource.plural): k for k in builtin_last}
        self._by_kind = {(k.resource.group, k.resource.version, k.resource.kind): k for k in builtin_last}
        self._stored = {k.storage.label: k for k in self._all if k.is_custom}  # should the stored version not be served
        self._stored |= {k.storage.label: k for k in builtin_last if k.storage == k.resource}


def renew(kind: Kind, document: dict[str, Any]) -> bool:
    """Defaults and pruning of today's schema on an older object; whether anything changed."""
    before = msgspec.json.encode(document)
    kind.strategy.drop_unknown(document)
    kind.strategy.default(document)
    return msgspec.json.encode(document) != before


def traits_of(kind: Kind, document: dict[str, Any]) -> Traits:
    metadata = document["metadata"]
    return Traits(metadata.get("uid", ""), metadata.get("labels") or NOTHING, kind.strategy.fields(document) or NOTHING)


CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)


def definition_kind(names: Callable[[], dict[str, Document]], clock: Clock, is_builtin_group: Callable[[str], bool]) -> Kind:
    """`names` gives those of all definitions once there is a registry: it is made after its kinds."""

    def taken(definition: Document) -> TakenNames:
        group = (definition.get("spec") or {}).get("group") or ""
        if is_builtin_group(group):
            return BUILT_IN
        return taken_names(list(names().values()), group, definition["metadata"].get("name") or "")

    strategy = CrdStrategy(taken, clock.now, is_builtin_group)
    return built_in_kind(CRD, strategy, ("crd", "crds"), ("api-extensions",), (Subresource("status", CRD.kind),))
