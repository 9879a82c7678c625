"""How server-side apply looks at a value: as a leaf that has one owner, or as a map or list whose parts have their own.

The one place that turns a `Shape` into that decision, and items of lists into path elements, so that merging, comparing,
removing and listing fields cannot disagree. A value of unknown shape is a map of such values, or else a leaf.
"""

from collections.abc import Iterator
from typing import Any, Literal

from applecart.embedded.patching.path_elements import Element, key, value
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
