"""The built-in kinds as the published Go API declares them: their types for decoding, their shapes for patches and ownership.

Both come from `types.json`, which is generated (`python -m tools.api_types`) and read when first needed. There, `kinds` and
`shared` name the struct of a kind; `named` are named types that are no structs, with "message" where protobuf wraps them; a
struct lists its fields as `[JSON name, Go type, protobuf number, what Go leaves out ("", "empty", "zero"), patch facts]`, where
an empty name is a struct whose fields JSON shows inline. Lists without a marker are owned as a whole. Nothing here judges a
value.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from applecart.embedded.shape import SCALAR, UNTYPED, Shape

Form = Literal["string", "bool", "int", "float", "bytes", "struct", "list", "map", "special"]

_SCALARS: dict[str, Form] = {
    "string": "string",
    "bool": "bool",
    "int": "int",
    "int32": "int",
    "int64": "int",
    "uint8": "int",
    "float64": "float",
}
OBJECT_META = "meta/v1.ObjectMeta"  # what every object has, custom ones too
SPECIALS = frozenset(
    {
        "meta/v1.FieldsV1",
        "meta/v1.MicroTime",
        "meta/v1.Time",
        "resource.Quantity",
        "intstr.IntOrString",
        "apiextensions/v1.JSON",
        "apiextensions/v1.JSONSchemaPropsOrArray",
        "apiextensions/v1.JSONSchemaPropsOrBool",
        "apiextensions/v1.JSONSchemaPropsOrStringArray",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class ValueType:
    """The type of one value."""

    form: Form
    go: str  # as Go prints it: `v1.PullPolicy`, `[]v1.Container`
    name: str = ""  # of a struct or special type in the table; of a scalar its Go kind ("int32")
    element: "ValueType | None" = None  # of a list's items or a map's values
    is_pointer: bool = False
    is_message: bool = False  # protobuf wraps the list in a message

    @property
    def struct(self) -> "StructType":
        return struct_of(self.name)

    @property
    def inner(self) -> "ValueType":
        """The element of a type that has one."""
        assert self.element is not None
        return self.element


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    name: str
    type: ValueType
    number: int
    omit: str
    facts: Mapping[str, Any]
    embedded: tuple[str, ...] = ()  # the Go structs that JSON shows inline around this field, outermost first


@dataclass(eq=False)
class StructType:
    """One struct. Its fields are read when they are needed, since structs may contain themselves."""

    name: str  # `core/v1.Pod`
    is_atomic: bool
    _rows: list[list[Any]] = field(repr=False)

    @cached_property
    def go_name(self) -> str:
        """As an error names it: `Pod`."""
        return self.name.rsplit(".", 1)[1]

    @property
    def package(self) -> str:
        return self.name.rsplit(".", 1)[0]

    @cached_property
    def own(self) -> tuple[Field, ...]:
        """The Go fields; those whose struct JSON shows inline have no name."""
        return tuple(Field(row[0], parse(row[1]), row[2], row[3], row[4] if len(row) > 4 else {}) for row in self._rows)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The JSON members by name, inline ones among them; apiVersion stands before kind."""
        found = {each.name: each for each in self._flat()}
        return {name: found[name] for name in ("apiVersion", "kind") if name in found} | found

    def _flat(self) -> Iterator[Field]:
        for each in self.own:
            if each.name:
                yield each
            else:
                inner = each.type.struct
                for member in inner.fields.values():
                    around = (inner.go_name, *member.embedded)
                    yield Field(member.name, member.type, member.number, member.omit, member.facts, around)

    @cached_property
    def by_number(self) -> dict[int, Field]:
        """The fields as protobuf numbers them."""
        return {each.number: each for each in self.own if each.number}


@cache
def _file() -> dict[str, Any]:
    table: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("types.json").read_bytes())
    return table


@cache
def struct_of(name: str) -> StructType:
    row = _file()["structs"][name]
    return StructType(name, row.get("atomic", False), row["fields"])


def struct_name(api_version: str, kind: str) -> str | None:
    """The struct of a kind; None for a kind that the table lacks."""
    table = _file()
    found: str | None = table["kinds"].get(f"{api_version}/{kind}") or table["shared"].get(kind)
    return found


def built_in_kinds() -> tuple[tuple[str, str], ...]:
    """Every apiVersion and kind of the table, without those that all groups share."""
    return tuple((version, kind) for version, _, kind in (key.rpartition("/") for key in _file()["kinds"]))


@cache
def parse(text: str) -> ValueType:
    """A Go type expression of the table."""
    if text.startswith("*"):
        inner = parse(text[1:])
        return ValueType(inner.form, inner.go, inner.name, inner.element, True, inner.is_message)
    if text in ("[]byte", "[]uint8"):
        return ValueType("bytes", "[]uint8")
    if text.startswith("[]"):
        element = parse(text[2:])
        return ValueType("list", f"[]{_shown(element)}", element=element)
    if text.startswith("map["):
        key, _, value = text[4:].partition("]")
        element = parse(value)
        return ValueType("map", f"map[{_go(key)}]{_shown(element)}", element=element)
    if text in _SCALARS:
        return ValueType(_SCALARS[text], text, text)
    if text in SPECIALS:
        return ValueType("special", _go(text), text)
    if named := _file()["named"].get(text):
        inner = parse(named[0])
        # A named list or map keeps its name in errors; which one it is matters for resource lists.
        return ValueType(inner.form, _go(text), inner.name or text, inner.element, False, len(named) > 1)
    return ValueType("struct", _go(text), text)


def _go(name: str) -> str:
    """`core/v1.Pod` as Go prints it: the last part of the package only."""
    return name.rsplit("/", 1)[-1]


def _shown(element: ValueType) -> str:
    return f"*{element.go}" if element.is_pointer else element.go


_SCALAR_SPECIALS = {"meta/v1.Time", "meta/v1.MicroTime", "resource.Quantity", "intstr.IntOrString"}


def type_of(api_version: str, kind: str) -> StructType | None:
    """The type of a kind; None for one that is not built in. DeleteOptions and Status exist in every group."""
    name = struct_name(api_version, kind)
    return struct_of(name) if name else None


def all_structs() -> tuple[StructType, ...]:
    """Every struct of the table."""
    return tuple(map(struct_of, _file()["structs"]))


def shape_of(api_version: str, kind: str) -> Shape:
    """The shape of a kind; untyped for one that is not built in."""
    name = struct_name(api_version, kind)
    return struct_shape(name) if name else UNTYPED


@cache
def struct_shape(name: str) -> Shape:
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
        shape = struct_shape(type.name)
        return _as_field(shape, is_atomic=facts.get("atomic", shape.is_atomic), is_replaced="replace" in strategy)
    if type.form == "map":
        return Shape("map", element=_shape(type.element), is_atomic=facts.get("atomic", False))
    if type.form != "list":
        return _shape(type)
    element = _shape(type.element)
    keys = tuple(facts.get("keys", ()))
    return Shape(
        "list",
        element=element,
        list_type=facts.get("list", "atomic"),
        list_keys=keys,
        key_defaults=_key_defaults(type.element, keys),
        merges="merge" in strategy,
        merge_key=facts.get("key", ""),
    )


def _shape(type: ValueType | None) -> Shape:
    if type is None:
        return UNTYPED
    if type.form == "struct":
        return struct_shape(type.name)
    if type.form in ("list", "map"):
        return Shape("list" if type.form == "list" else "map", element=_shape(type.element))
    if type.form == "special":
        return SCALAR if type.name in _SCALAR_SPECIALS else UNTYPED
    return SCALAR


def _as_field(shape: Shape, *, is_atomic: bool, is_replaced: bool) -> Shape:
    if is_atomic == shape.is_atomic and not is_replaced:
        return shape
    return Shape("struct", fields_of=shape.fields_of, is_atomic=is_atomic, is_replaced=is_replaced)


def _key_defaults(element: ValueType | None, keys: tuple[str, ...]) -> dict[str, Any]:
    """What a list key has when an item leaves it out."""
    if element is None or element.form != "struct":
        return {}
    fields = element.struct.fields
    return {key: fields[key].facts["default"] for key in keys if "default" in fields[key].facts}
