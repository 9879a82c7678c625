"""One kind the server serves, built in or custom: where, in which shape, by which strategy, with which columns.

A `Kind` is one served version. Several versions of a custom kind share `storage`; so do the two views of Events.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.kinds.strategy import Document, Strategy
from applecart.embedded.schema.scale import ScalePaths
from applecart.embedded.shape import Shape

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Column(msgspec.Struct, frozen=True):
    """A column that kubectl prints; priority above 0 only with `-o wide`."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Table(Protocol):
    """How objects of a kind look as rows."""

    @property
    def columns(self) -> Sequence[Column]: ...

    def cells(self, obj: Document, now: datetime) -> list[Any]:
        """One value per column."""


class Subresource(msgspec.Struct, frozen=True):
    """A path below an object, as discovery lists it."""

    name: str  # "status"
    kind: str  # of what is sent and answered: "Pod", "Scale", "Eviction"
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str = ""  # of `kind`, where it is another than the parent's; `version` is then set as well
    version: str = ""


class View(msgspec.Struct, frozen=True):
    """How one form of an object becomes the other; both give a new document."""

    to_stored: Callable[[Document], Document]
    from_stored: Callable[[Document], Document]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    resource: Resource
    storage: Resource  # whose objects these are
    singular: str
    list_kind: str
    strategy: Strategy
    shape: Shape
    table: Table
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_custom: bool = False
    view: View | None = None  # where objects are kept in another kind's form
    schema: Document | None = None  # of a custom kind: what its definition says
    scale: ScalePaths | None = None  # of a custom kind that has `/scale`

    @property
    def prefix(self) -> bytes:
        """How every document of this kind begins on the wire; what is stored is the rest."""
        return b'{"apiVersion":"%b","kind":"%b",' % (self.resource.api_version.encode(), self.resource.kind.encode())

    def subresource(self, name: str) -> Subresource | None:
        return next((one for one in self.subresources if one.name == name), None)
