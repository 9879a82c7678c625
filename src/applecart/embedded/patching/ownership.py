"""Which fields a value has, and which ones differ between two values: what field owners own, gain and lose.

Pure: reads values and their shape, changes nothing. A map's entries belong to the set themselves; a struct's members do so only
through what they hold, because every object has them.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from applecart.embedded.patching.field_set import FieldSet, Path
from applecart.embedded.patching.forms import below, form_of, is_named, keyed
from applecart.embedded.patching.path_elements import Element, field
from applecart.embedded.patching.values import ABSENT, same
from applecart.embedded.shape import Shape


def fields_in(content: Any, shape: Shape) -> FieldSet:
    """Every field of a value."""
    form = form_of(shape, content)
    members: set[Element] = set()
    children: dict[Element, FieldSet] = {}
    if form == "map" and type(content) is dict:
        for name, one in content.items():
            element = field(name)
            child = shape.child(name)
            if form_of(child, one) == "leaf" or one is None or one == {} or not is_named(shape, name):
                members.add(element)
            children[element] = fields_in(one, child)
    elif form == "list":
        items = list(keyed(content, shape))
        times = Counter(element for element, _ in items)
        for element, item in items:
            members.add(element)
            if times[element] == 1:
                children[element] = fields_in(item, shape.child(""))
    return FieldSet(members, children)


def with_named(fields: FieldSet, shape: Shape) -> FieldSet:
    """The set with the struct members on the way to its fields."""
    members = set(fields.members)
    children = {}
    for element, child in fields.children.items():
        if element[0] == "f" and is_named(shape, element[2:]):
            members.add(element)
        children[element] = with_named(child, below(shape, element))
    return FieldSet(members, children)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a write does to an object."""

    removed: FieldSet
    modified: FieldSet
    added: FieldSet

    @property
    def taken(self) -> FieldSet:
        """What the writer comes to own."""
        return self.modified | self.added

    def without(self, reset: FieldSet) -> "Changes":
        """Without fields that the endpoint does not let a caller change."""
        if not reset:
            return self
        return Changes(*(one.without_subtrees(reset) for one in (self.removed, self.modified, self.added)))


def changes_between(old: Any, new: Any, shape: Shape) -> Changes:
    walk = _Comparison()
    walk.compare((), old, new, shape)
    return Changes(FieldSet.of(walk.removed), FieldSet.of(walk.modified), FieldSet.of(walk.added))


class _Comparison:
    def __init__(self) -> None:
        self.removed: list[Path] = []
        self.modified: list[Path] = []
        self.added: list[Path] = []

    def compare(self, path: Path, old: Any, new: Any, shape: Shape) -> None:
        """One place; either side may be ABSENT."""
        if old is new:
            return
        old_form, new_form = form_of(shape, old), form_of(shape, new)
        # Where a value of unknown shape turned from a leaf into a map or back, it counts as both.
        if old is not ABSENT and new is not ABSENT and old_form != new_form:
            self._compare_as(old_form, path, old, new, shape)
        form = old_form if new is ABSENT else new_form
        if not self._compare_as(form, path, old, new, shape):
            if old is ABSENT:
                self.added.append(path)
            elif new is ABSENT:
                self.removed.append(path)

    def _compare_as(self, form: str, path: Path, old: Any, new: Any, shape: Shape) -> bool:
        """Whether the place turned out to be a leaf. Empty maps and lists are, or they could not be owned."""
        container = dict if form == "map" else list
        old_parts: Any = old if type(old) is container else container()
        new_parts: Any = new if type(new) is container else container()
        if form == "leaf" or (not old_parts and not new_parts):
            self._compare_leaf(path, old, new)
            return True
        if form == "map":
            for name in {**old_parts, **new_parts}:
                parts = old_parts.get(name, ABSENT), new_parts.get(name, ABSENT)
                self.compare((*path, field(name)), *parts, shape.child(name))
        else:
            self._compare_items(path, old_parts, new_parts, shape)
        return False

    def _compare_leaf(self, path: Path, old: Any, new: Any) -> None:
        if old is ABSENT:
            self.added.append(path)
        elif new is ABSENT:
            self.removed.append(path)
        elif not same(old, new):
            self.modified.append(path)

    def _compare_items(self, path: Path, old: Any, new: Any, shape: Shape) -> None:
        """Items with the same key are one field as long as there are several of them."""
        groups: dict[Element, tuple[list[Any], list[Any]]] = {}
        for side, items in enumerate((old, new)):
            for element, item in keyed(items, shape):
                groups.setdefault(element, ([], []))[side].append(item)
        element_shape = shape.child("")
        for element, (old_items, new_items) in groups.items():
            here = (*path, element)
            first_old = old_items[0] if old_items else ABSENT
            first_new = new_items[0] if new_items else ABSENT
            if len(old_items) < 2 and len(new_items) < 2:
                self.compare(here, first_old, first_new, element_shape)
            elif len(old_items) > 1 and len(new_items) > 1:
                if not same(old_items, new_items):
                    self.modified.append(here)
            elif len(old_items) > 1:
                if new_items:
                    self.compare(here, ABSENT, first_new, element_shape)
                self.removed.append(here)
            else:
                if old_items:
                    self.compare(here, first_old, ABSENT, element_shape)
                self.added.append(here)
