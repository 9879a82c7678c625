"""The shape of custom objects, for patches and field ownership."""

from applecart.embedded.schema.node import Node, fresh
from applecart.embedded.shape import SCALAR, UNTYPED, ListType, Shape

_TEXTS = Shape("map", element=SCALAR)
_OWNER = Shape(
    "struct",
    fields_of=lambda: dict.fromkeys(("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"), SCALAR),
    is_atomic=True,
)
_META_FIELDS = {
    **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"), SCALAR),
    **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"), SCALAR),
    "labels": _TEXTS,
    "annotations": _TEXTS,
    "finalizers": Shape("list", element=SCALAR, list_type="set", merges=True),
    "ownerReferences": Shape("list", element=_OWNER, list_type="map", list_keys=("uid",), merges=True, merge_key="uid"),
    "managedFields": Shape("list", element=UNTYPED),
}
METADATA = Shape("struct", fields_of=lambda: _META_FIELDS)


def shape_of_schema(root: Node) -> Shape:
    """The shape of whole objects of a schema."""
    return _shape(root, is_resource=True)


def _shape(node: Node | None, *, is_resource: bool = False) -> Shape:
    if node is None:
        return UNTYPED
    is_resource = is_resource or node.is_embedded
    if node.type == "array":
        return _list_shape(node)
    if node.type == "object":
        is_atomic = node.map_type == "atomic"
        if node.additional is not None:
            return Shape("map", element=_shape(node.additional), is_atomic=is_atomic)
        if node.properties or is_resource:
            fields = {name: _shape(child) for name, child in node.properties.items()}
            if is_resource:
                fields |= {"apiVersion": SCALAR, "kind": SCALAR, "metadata": METADATA}
            return Shape("struct", fields_of=lambda: fields, is_atomic=is_atomic)
        return Shape("map", element=UNTYPED, is_atomic=is_atomic)
    return SCALAR if node.types else UNTYPED


def _list_shape(node: Node) -> Shape:
    kinds: dict[str, ListType] = {"set": "set", "map": "map"}
    list_type = kinds.get(node.list_type, "atomic")
    keys = node.list_keys if list_type == "map" else ()
    defaults = node.items.defaults if node.items is not None else {}
    key_defaults = {key: fresh(defaults[key]) for key in keys if key in defaults}
    return Shape("list", element=_shape(node.items), list_type=list_type, list_keys=keys, key_defaults=key_defaults)
