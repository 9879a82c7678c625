"""Filling in what a schema says about absence: defaults, and the fate of an explicit null.

A null where none is allowed counts as absence: the default takes its place, and without one the field goes. Runs on what is
written and on what is read, because a default may be younger than the object.
"""

from typing import Any

from applecart.embedded.schema.node import Node, fresh


def fill_defaults(value: Any, node: Node | None) -> None:
    """Changes the document in place."""
    if node is None:
        return
    if type(value) is dict:
        _fill_object(value, node)
    elif type(value) is list and node.items is not None:
        items = node.items
        for index, item in enumerate(value):
            if item is None and not items.is_nullable and items.default is not None:
                value[index] = item = fresh(items.default)
            if type(item) is dict or type(item) is list:
                fill_defaults(item, items)


def _fill_object(value: dict[str, Any], node: Node) -> None:
    for name, default in node.defaults.items():
        if name not in value or (value[name] is None and not node.properties[name].is_nullable):
            value[name] = fresh(default)
    properties, additional = node.properties, node.additional
    gone: list[str] = []
    for name, member in value.items():
        known = properties.get(name) or additional
        if known is None:
            continue
        if type(member) is dict:
            _fill_object(member, known)
        elif type(member) is list:
            fill_defaults(member, known)
        elif member is None and not known.is_nullable:
            if known.default is None:
                gone.append(name)
            else:  # a member of a map: its name is not in `defaults`
                value[name] = fresh(known.default)
                fill_defaults(value[name], known)
    for name in gone:
        del value[name]
