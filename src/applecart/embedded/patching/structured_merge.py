"""An object as server-side apply sees it: listing, comparing, merging and removing its fields.

All four look at a value in one way (`form_of`): as a leaf that has one owner, or as a map or list whose parts have their own. A
map's entries belong to a set themselves; a struct's members do so only through what they hold, because every object has them. A
value of unknown shape is a map of such values, or else a leaf. Nothing here changes its arguments.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from applecart.embedded.patching.field_set import NOTHING, Element, FieldSet, as_json, field, key, order, value
from applecart.embedded.patching.values import ABSENT, are_same_text, copied, same
from applecart.embedded.shape import UNTYPED, Shape

T = TypeVar("T")
Form = Literal["leaf", "map", "list"]
NO_MEMBERS: Mapping[str, Any] = MappingProxyType({})

MOST_KNOWN = 1024
MOST_KNOWN_NAMES = 64
LONGEST_KNOWN_NAME = 128


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


def fields_in(content: Any, shape: Shape, *, all_members: bool = False) -> FieldSet:
    """Every field of a value; a struct's own members that hold something only when `all_members` are asked for."""
    form = form_of(shape, content)
    members: set[Element] = set()
    children: dict[Element, FieldSet] = {}
    if form == "map" and type(content) is dict:
        for name, one in content.items():
            element = "f:" + name
            if type(one) is dict or type(one) is list:
                child = shape.child(name)
                if all_members or one == {} or form_of(child, one) == "leaf" or not is_named(shape, name):
                    members.add(element)
                if below := fields_in(one, child, all_members=all_members):
                    children[element] = below
            elif all_members or one is None or not is_named(shape, name) or form_of(shape.child(name), one) == "leaf":
                members.add(element)
    elif form == "list":
        items = list(keyed(content, shape))
        members.update([element for element, _ in items])
        times = Counter([element for element, _ in items]) if len(members) < len(items) else None
        for element, item in items:
            is_one = times is None or times[element] == 1
            if is_one and (below := fields_in(item, shape.child(""), all_members=all_members)):
                children[element] = below
    return FieldSet(members, children) if members or children else NOTHING


def text_of_new(content: Any, shape: Shape, blank: Mapping[str, Any] = NO_MEMBERS) -> str:
    """`fieldsV1` of what a new object adds to a blank one: as `changes_between` finds it, written in one walk without sets.

    Every creation pays for this, so what many objects of a kind share is written once. Without fields the text is empty.
    """
    fields = _new_fields(content, shape, blank)
    return f"{{{fields}}}" if fields else ""


def _new_fields(content: Any, shape: Shape, blank: Mapping[str, Any] = NO_MEMBERS) -> str:
    form = form_of(shape, content)
    if form == "map" and type(content) is dict:
        return _new_members(content, shape, blank)
    return _new_items(content, shape) if form == "list" and type(content) is list else ""


def _new_members(content: dict[str, Any], shape: Shape, blank: Mapping[str, Any]) -> str:
    leaves, members = _KNOWN_MEMBERS.get((shape, tuple(content))) or _members(content, shape)
    if leaves and not blank:
        return leaves
    fields = []
    for name, leaf, child in members:
        one = content[name]
        if name in blank:
            before = blank[name]
            if child is not None and (one or before) and form_of(child, one) != "leaf":
                if below := _new_fields(one, child, before or NO_MEMBERS):
                    fields.append(f"{leaf[:-1]}{below}}}")
                elif one:
                    fields.append(leaf)
            elif not same(before, one):
                fields.append(leaf)
        elif child is not None and one and (below := _new_fields(one, child)):
            fields.append(f'{leaf[:-1]}".":{{}},{below}}}')
        else:
            fields.append(leaf)
    return ",".join(fields)


def _new_items(content: list[Any], shape: Shape) -> str:
    child = shape.child("")
    fields = []
    for position, leaf in _places(content, shape):
        below = _new_fields(content[position], child) if position is not None else ""
        fields.append(f'{leaf[:-1]}".":{{}},{below}}}' if below else leaf)
    return ",".join(fields)


Members = tuple[str, list[tuple[str, str, Shape | None]]]
Places = list[tuple[int | None, str]]
_KNOWN_MEMBERS: "dict[tuple[Shape, tuple[str, ...]], Members]" = {}
_KNOWN_PLACES: "dict[tuple[Shape, tuple[str, ...]], Places]" = {}


def _members(content: dict[str, Any], shape: Shape) -> Members:
    """In the order of their names, each as a leaf is written, and its shape unless it is a leaf whatever it holds.

    Before them all that is written, if they are all leaves.
    """
    members: list[tuple[str, str, Shape | None]] = []
    for name in sorted(content):
        child = shape.child(name)
        members.append((name, f"{as_json(field(name))}:{{}}", None if form_of(child, None) == "leaf" else child))
    has_parts = any(child for _, _, child in members)
    result = ("" if has_parts else ",".join([leaf for _, leaf, _ in members]), members)
    _remember(_KNOWN_MEMBERS, shape, tuple(content), result)
    return result


def _places(content: list[Any], shape: Shape) -> Places:
    """In the order of their elements, where each item is and how it is written as a leaf. Several items that are one field are
    owned as a whole, and are nowhere."""
    names: tuple[Any, ...] = ()
    try:
        names = tuple([item[shape.list_keys[0]] for item in content] if len(shape.list_keys) == 1 else content)
        if known := _KNOWN_PLACES.get((shape, names)):
            return known
    except (TypeError, KeyError):  # other items than texts and what a text identifies
        names = (None,)
    at: dict[Element, int | None] = {}
    for position, item in enumerate(content):
        with suppress(BadItem):
            element = element_of(item, shape)
            at[element] = None if element in at else position
    places = [(at[element], f"{as_json(element)}:{{}}") for element in sorted(at, key=order)]
    _remember(_KNOWN_PLACES, shape, names, places)
    return places


def _remember(known: "dict[tuple[Shape, tuple[str, ...]], T]", shape: Shape, names: tuple[Any, ...], one: T) -> None:
    """Controllers make many objects with the same few names; names that nobody uses again are short and soon forgotten."""
    if len(names) <= MOST_KNOWN_NAMES and all(type(name) is str and len(name) <= LONGEST_KNOWN_NAME for name in names):
        if len(known) >= MOST_KNOWN:
            known.clear()
        known[shape, names] = one


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
    """Either side may be ABSENT."""
    sides = (_Level(), _Level(), _Level())
    if type(old) is dict and type(new) is dict and form_of(shape, new) == "map":  # two objects, of which something differs
        _compare_members(old, new, shape, sides)
        return Changes(*(FieldSet(level.members, level.children) for level in sides))
    _compare("", old, new, shape, sides)
    return Changes(*(level.children.get("", NOTHING) for level in sides))


class _Level:
    """What was removed, modified or added among the parts of one place, before it is a set."""

    __slots__ = ("children", "members")

    def __init__(self) -> None:
        self.members: set[Element] = set()
        self.children: dict[Element, FieldSet] = {}

    def add(self, element: Element, below: FieldSet) -> None:
        if below:
            self.children[element] = self.children[element] | below if element in self.children else below


_Sides = tuple[_Level, _Level, _Level]


def _compare(element: Element, old: Any, new: Any, shape: Shape, sides: _Sides) -> None:
    if old is new:
        return
    if old is ABSENT or new is ABSENT:
        side = sides[2] if old is ABSENT else sides[0]
        side.members.add(element)
        side.add(element, fields_in(new if old is ABSENT else old, shape, all_members=True))
        return
    # Most of an object is as it was, and encoding both is faster than walking them.
    if type(old) is type(new) and (type(old) is dict or type(old) is list) and are_same_text(old, new):
        return
    old_form, new_form = form_of(shape, old), form_of(shape, new)
    # Where a value of unknown shape turned from a leaf into a map or back, it counts as both.
    for form in (new_form,) if old_form == new_form else (old_form, new_form):
        _compare_as(form, element, old, new, shape, sides)


def _compare_as(form: str, element: Element, old: Any, new: Any, shape: Shape, sides: _Sides) -> None:
    """Empty maps and lists are leaves, or they could not be owned."""
    container = dict if form == "map" else list
    old_parts: Any = old if type(old) is container else container()
    new_parts: Any = new if type(new) is container else container()
    if form == "leaf" or (not old_parts and not new_parts):
        if not same(old, new):
            sides[1].members.add(element)
        return
    below = (_Level(), _Level(), _Level())
    if form == "map":
        _compare_members(old_parts, new_parts, shape, below)
    else:
        _compare_items(old_parts, new_parts, shape, below)
    for side, level in zip(sides, below, strict=True):
        if level.members or level.children:
            side.add(element, FieldSet(level.members, level.children))


def _compare_members(old: dict[str, Any], new: dict[str, Any], shape: Shape, sides: _Sides) -> None:
    for name, other in new.items():
        one = old.get(name, ABSENT)
        if one is other:
            continue
        if type(other) is str and type(one) is str:  # most of what differs, and a leaf in every shape
            if one != other:
                sides[1].members.add(field(name))
        else:
            _compare(field(name), one, other, shape.child(name), sides)
    for name, one in old.items():
        if name not in new:
            _compare(field(name), one, ABSENT, shape.child(name), sides)


def _compare_items(old: Any, new: Any, shape: Shape, sides: _Sides) -> None:
    """Items with the same key are one field as long as there are several of them."""
    groups: dict[Element, tuple[list[Any], list[Any]]] = {}
    for number, items in enumerate((old, new)):
        for element, item in keyed(items, shape):
            groups.setdefault(element, ([], []))[number].append(item)
    removed, modified, added = sides
    element_shape = shape.child("")
    for element, (old_items, new_items) in groups.items():
        first_old = old_items[0] if old_items else ABSENT
        first_new = new_items[0] if new_items else ABSENT
        if len(old_items) < 2 and len(new_items) < 2:
            _compare(element, first_old, first_new, element_shape, sides)
        elif len(old_items) > 1 and len(new_items) > 1:
            if not same(old_items, new_items):
                modified.members.add(element)
        elif len(old_items) > 1:
            if new_items:
                _compare(element, ABSENT, first_new, element_shape, sides)
            removed.members.add(element)
        else:
            if old_items:
                _compare(element, first_old, ABSENT, element_shape, sides)
            added.members.add(element)


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
    """A value without these fields, null when nothing is left: whether it goes too is for its parent's fields to say."""
    form = form_of(shape, content)
    if form == "map" and type(content) is dict:
        return _without_members(content, fields, shape) or None
    if form == "list" and type(content) is list:
        return _without_items(content, fields, shape) or None
    return None if type(content) is dict or type(content) is list else content


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
