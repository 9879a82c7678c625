"""What the server knows of one value's structure, whatever it came from.

A `Shape` is built from the published API types for built-in kinds (`structure`) and from a CRD's structural schema for custom
ones (`schema`). Decoding, the patch kinds and field ownership all read the same shape, so that they cannot disagree on what
identifies a list item. Shapes may be recursive: a struct's fields are read when they are needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Sort = Literal["scalar", "struct", "map", "list", "untyped"]
ListType = Literal["atomic", "set", "map"]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One value. `untyped` is anything at all, owned as a whole where nothing else is known."""

    sort: Sort
    fields_of: "Callable[[], Mapping[str, Shape]]" = dict  # of a struct
    element: "Shape | None" = None  # of a map's values or a list's items
    list_type: ListType = "atomic"  # who may own what of a list (server-side apply)
    list_keys: tuple[str, ...] = ()  # of a list of type map
    key_defaults: Mapping[str, object] = field(default_factory=dict)  # of list keys that may be absent (`protocol: TCP`)
    is_atomic: bool = False  # of a map or struct: owned as a whole
    merges: bool = False  # strategic merge patch: a list whose items are merged instead of replaced
    merge_key: str = ""  # strategic merge patch: what identifies an item; "" for lists of primitives
    is_replaced: bool = False  # strategic merge patch: a struct that is set as a whole (the selector of a disruption budget)

    @property
    def fields(self) -> "Mapping[str, Shape]":
        return self.fields_of()

    def child(self, name: str) -> "Shape":
        """The shape of a member; unknown members are untyped."""
        if self.sort == "struct":
            return self.fields.get(name, UNTYPED)
        return self.element or UNTYPED


UNTYPED = Shape("untyped")
SCALAR = Shape("scalar")
