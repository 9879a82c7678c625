"""The built-in kinds: their type for decoding, and their shape for patches and field ownership.

Both come from the same table and are built when first asked for. A shape says what the published markers say; lists without a
marker are owned as a whole, as the real server does it.
"""

from functools import cache
from typing import Any

from applecart.embedded.shape import SCALAR, UNTYPED, Shape
from applecart.embedded.structure.table import Field, StructType, ValueType, kind_names, struct_name, struct_of

__all__ = ["StructType", "built_in_kinds", "shape_of", "type_of"]

_SCALAR_SPECIALS = {"meta/v1.Time", "meta/v1.MicroTime", "resource.Quantity", "intstr.IntOrString"}


def type_of(api_version: str, kind: str) -> StructType | None:
    """The type of a kind; None for one that is not built in. DeleteOptions and Status exist in every group."""
    name = struct_name(api_version, kind)
    return struct_of(name) if name else None


def built_in_kinds() -> tuple[tuple[str, str], ...]:
    """Every apiVersion and kind that has a type."""
    return kind_names()


def shape_of(api_version: str, kind: str) -> Shape:
    """The shape of a kind; untyped for one that is not built in."""
    name = struct_name(api_version, kind)
    return _struct_shape(name) if name else UNTYPED


@cache
def _struct_shape(name: str) -> Shape:
    type = struct_of(name)

    @cache
    def fields() -> dict[str, Shape]:
        return {name: _field_shape(each) for name, each in type.fields.items()}

    return Shape("struct", fields_of=fields, is_atomic=type.is_atomic)


def _field_shape(field: Field) -> Shape:
    facts = field.facts
    strategy = facts.get("patch", "").split(",")
    type = field.type
    if type.form == "struct":
        shape = _struct_shape(type.name)
        return _with_atomicity(shape, is_atomic=facts.get("atomic", shape.is_atomic))
    if type.form == "map":
        return Shape("map", element=_shape(type.element), is_atomic=facts.get("atomic", False))
    if type.form != "list":
        return _shape(type)
    element = _shape(type.element)
    retains_keys = "retainKeys" in strategy
    if retains_keys and element.sort == "struct":
        element = Shape("struct", fields_of=element.fields_of, is_atomic=element.is_atomic, retains_keys=True)
    keys = tuple(facts.get("keys", ()))
    return Shape(
        "list",
        element=element,
        list_type=facts.get("list", "atomic"),
        list_keys=keys,
        key_defaults=_key_defaults(type.element, keys),
        merges="merge" in strategy,
        merge_key=facts.get("key", ""),
        retains_keys=retains_keys,
    )


def _shape(type: ValueType | None) -> Shape:
    if type is None:
        return UNTYPED
    if type.form == "struct":
        return _struct_shape(type.name)
    if type.form in ("list", "map"):
        return Shape("list" if type.form == "list" else "map", element=_shape(type.element))
    if type.form == "special":
        return SCALAR if type.name in _SCALAR_SPECIALS else UNTYPED
    return SCALAR


def _with_atomicity(shape: Shape, *, is_atomic: bool) -> Shape:
    return shape if is_atomic == shape.is_atomic else Shape("struct", fields_of=shape.fields_of, is_atomic=is_atomic)


def _key_defaults(element: ValueType | None, keys: tuple[str, ...]) -> dict[str, Any]:
    """What a list key has when an item leaves it out."""
    if element is None or element.form != "struct":
        return {}
    fields = element.struct.fields
    return {key: fields[key].facts["default"] for key in keys if "default" in fields[key].facts}
