"""What a schema changes about a document before it is judged: fields it does not know go, defaults come.

Identity (apiVersion, kind, metadata) of the root and of embedded resources is never touched here. A null where none is allowed
counts as absence: the default takes its place, and without one the field goes. Both run on what is written and on what is read,
because a schema may be younger than the object.
"""

from typing import Any

from applecart.embedded.schema.schema_node import META_FIELDS, SchemaNode, fresh


def prune(root: SchemaNode, document: dict[str, Any]) -> list[str]:
    """Removes what the schema does not know; gives the paths, sorted."""
    return sorted(_of_object(document, root, keeps_unknown=root.preserves_unknown, keeps_meta=True))


def _of_value(value: Any, node: SchemaNode | None, keeps_unknown: bool) -> list[str]:
    if type(value) is dict:
        return _of_object(value, node, keeps_unknown, keeps_meta=node is not None and node.is_embedded)
    items = node.items if node is not None else None
    if type(value) is not list or (keeps_unknown and items is None):
        return []
    found: list[str] = []
    # Items of a list that keeps what it does not know keep theirs too.
    keeps_unknown = keeps_unknown or (items is not None and items.preserves_unknown)
    for index, item in enumerate(value):
        if type(item) is dict or type(item) is list:
            found += [f"[{index}]{_joint(path)}" for path in _of_value(item, items, keeps_unknown)]
    return found


def _of_object(value: dict[str, Any], node: SchemaNode | None, keeps_unknown: bool, keeps_meta: bool) -> list[str]:
    if node is None:
        found = [] if keeps_unknown else list(value)
        if not keeps_unknown:
            value.clear()
        return found
    found, gone = [], []
    for name, member in value.items():
        if keeps_meta and name in META_FIELDS:
            continue
        known = node.properties.get(name) or node.additional
        if known is None and not node.allows_any_member:
            if not keeps_unknown:
                gone.append(name)
        elif type(member) is dict or type(member) is list:
            below = _of_value(member, known, known is not None and known.preserves_unknown)
            if below:
                found += [f"{name}{_joint(path)}" for path in below]
    for name in gone:
        del value[name]
    return found + gone


def _joint(path: str) -> str:
    return path if path.startswith("[") else f".{path}"


def fill_defaults(value: Any, node: SchemaNode | None, *, keeps_nulls: bool = False) -> None:
    """Changes the document in place. `keeps_nulls` leaves those without a default to be refused."""
    if node is None:
        return
    if type(value) is dict:
        _fill_object(value, node, keeps_nulls)
    elif type(value) is list and node.items is not None:
        items = node.items
        for index, item in enumerate(value):
            if item is None and not items.is_nullable and items.default is not None:
                value[index] = item = fresh(items.default)
            if type(item) is dict or type(item) is list:
                fill_defaults(item, items, keeps_nulls=keeps_nulls)


def _fill_object(value: dict[str, Any], node: SchemaNode, keeps_nulls: bool) -> None:
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
            _fill_object(member, known, keeps_nulls)
        elif type(member) is list:
            fill_defaults(member, known, keeps_nulls=keeps_nulls)
        elif member is None and not known.is_nullable:
            if known.default is not None:  # a member of a map: its name is not in `defaults`
                value[name] = fresh(known.default)
                fill_defaults(value[name], known, keeps_nulls=keeps_nulls)
            elif not keeps_nulls:
                gone.append(name)
    for name in gone:
        del value[name]
