"""An object as server-side apply sees it: listing, comparing, merging and removing its fields.

All four look at a value in one way (`form_of`): as a leaf that has one owner, or as a map or list whose parts have their own. A
map's entries belong to a set themselves; a struct's members do so only through what they hold, because every object has them. A
value of unknown shape is a map of such values, or else a leaf. Nothing here changes its arguments.
"""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from applecart.embedded.patching.field_set import Element, FieldSet, Path, field, key, value
from applecart.embedded.patching.values import ABSENT, copied, same
from applecart.embedded.shape import UNTYPED, Shape

Form = Literal["leaf", "map", "list"]


class BadItem(ValueError):
    """An item that its list cannot hold; the text is the real server's."""


def form_of(shape: Shape, content: Any) -> Form:
    if shape.sort == "scalar" or shape.is_atomic:
        return "leaf"
    if shape.sort == "list":
        return "leaf" if shape.list_type == "atomic" else "list"
    if shape.sort == "untyped":
        return "map" if content is None or type(content) is dict else "leaf"
    return "map"


def is_named(shape: Shape, name: str) -> bool:
    """Whether a member is one of a struct's own, which exists without anybody owning it."""
    return shape.sort == "struct" and name in shape.fields


def below(shape: Shape, element: Element) -> Shape:
    """The shape of what a path element leads to."""
    kind = element[0]
    if kind == "f" and shape.sort != "list":
        return shape.child(element[2:])
    return shape.child("") if kind == "k" and shape.sort == "list" else UNTYPED


def element_of(item: Any, shape: Shape) -> Element:
    """What identifies an item of a list with parts; raises BadItem."""
    if shape.list_type == "map" or shape.list_keys:
        return _key_of(item, shape)
    if type(item) is dict:
        raise BadItem("associative list without keys has an element that's a map type")
    if type(item) is list:
        raise BadItem("not supported: associative list with lists as elements")
    if item is None:
        raise BadItem("associative list without keys has an element that's an explicit null")
    return value(item)


def _key_of(item: Any, shape: Shape) -> Element:
    if item is None:
        raise BadItem("associative list with keys may not have a null element")
    if type(item) is not dict:
        raise BadItem("associative list with keys may not have non-map elements")
    values = {}
    for name in shape.list_keys:
        if name in item:
            values[name] = item[name]
        elif name in shape.key_defaults:
            values[name] = shape.key_defaults[name]
    if not values:
        names = " ".join(f'"{name}"' for name in shape.list_keys)
        lacking = f"associative list with keys has an element that omits all key fields [{names}]"
        raise BadItem(f"{lacking} (and doesn't have default values for any key fields)")
    return key(values)


def keyed(items: Any, shape: Shape) -> Iterator[tuple[Element, Any]]:
    """The items of a stored list with what identifies them; what cannot be identified cannot be owned."""
    for item in items if type(items) is list else ():
        try:
            yield element_of(item, shape), item
        except BadItem:
            continue


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


def combined(live: Any, applied: Any, shape: Shape) -> Any:
    """A copy of both; the applied value wins where both have a leaf."""
    if applied is ABSENT or live is ABSENT:
        return copied(live if applied is ABSENT else applied)
    form = form_of(shape, applied)
    if form == "leaf":
        return copied(applied)
    container = dict if form == "map" else list
    ours: Any = live if type(live) is container else container()
    theirs: Any = applied if type(applied) is container else container()
    if not ours and not theirs:
        return copied(applied)
    if form == "list":
        return _combined_items(ours, theirs, shape)
    return {name: combined(ours.get(name, ABSENT), theirs.get(name, ABSENT), shape.child(name)) for name in {**ours, **theirs}}


def _combined_items(live: Any, applied: Any, shape: Shape) -> list[Any]:
    """Items of both lists: shared ones in the applied order, those only the object has between their neighbours."""
    ours, theirs = list(keyed(live, shape)), list(keyed(applied, shape))
    our_items: dict[Element, Any] = {}
    for element, item in ours:
        our_items[element] = ABSENT if element in our_items else item
    their_items = dict(theirs)
    shared = deque(element for element, _ in theirs if element in our_items)
    awaited = shared.popleft() if shared else None
    element_shape = shape.child("")
    items = []
    done: set[Element] = set()
    left, right = 0, 0
    while left < len(ours) or right < len(theirs):
        if left < len(ours):
            element, item = ours[left]
            if element not in their_items:
                items.append(copied(item))
                left += 1
                continue
            is_next = right < len(theirs) and theirs[right][0] == element
            if not is_next and right < len(theirs) and awaited is not None and awaited != element:
                left += 1
                continue
            if is_next or element in done:
                left += 1
        if right < len(theirs):
            element, item = theirs[right]
            items.append(combined(our_items.get(element, ABSENT), item, element_shape))
            done.add(element)
            right += 1
            if awaited == element:
                awaited = shared.popleft() if shared else None
    return items


def without(content: Any, fields: FieldSet, shape: Shape) -> Any:
    """A value without these fields, empty when nothing is left: whether it goes too is for its parent's fields to say."""
    form = form_of(shape, content)
    if form == "map" and type(content) is dict:
        return _without_members(content, fields, shape)
    if form == "list" and type(content) is list:
        return _without_items(content, fields, shape)
    return type(content)() if type(content) is dict or type(content) is list else content


def _without_members(content: dict[str, Any], fields: FieldSet, shape: Shape) -> dict[str, Any]:
    kept = {}
    for name, one in content.items():
        element = field(name)
        if element not in fields.members:
            child = fields.children.get(element)
            kept[name] = one if child is None else without(one, child, shape.child(name))
    return kept


def _without_items(content: list[Any], fields: FieldSet, shape: Shape) -> list[Any]:
    kept = []
    for element, item in keyed(content, shape):
        if element not in fields.members:
            child = fields.children.get(element)
            kept.append(item if child is None else without(item, child, shape.child("")))
    return kept
