"""An object with an applied configuration merged into it, and an object with some of its fields taken away.

Both follow the shape: maps by name, lists by what identifies an item, leaves whole. Combining never removes anything; what the
applier gave up is removed afterwards, when it is known who else owns it (`apply.py`).
"""

from collections import deque
from typing import Any

from applecart.embedded.patching.field_set import FieldSet
from applecart.embedded.patching.forms import form_of, keyed
from applecart.embedded.patching.path_elements import Element, field
from applecart.embedded.patching.values import ABSENT, copied
from applecart.embedded.shape import Shape


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
