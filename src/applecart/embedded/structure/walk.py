"""The exact way to conform: walks a document beside its type and does what a Go server's decoder would do.

It drops nulls, zeros and unknown members, adds what Go always shows, and brings special values into their stored form. Leaving
a field out and setting it to its zero value are the same for Go, unless the field is a pointer; what it then shows depends on
the field alone. A value of the wrong type is remembered and the walk goes on; a special value that makes no sense ends it. The
one that ended it, else the first remembered, is what the server would answer. A refusal never shows text, except what was meant
as a timestamp.
"""

from functools import cache
from typing import Any

from applecart.api import quantity
from applecart.embedded.field_errors import json_type
from applecart.embedded.structure import scalars
from applecart.embedded.structure.types import Field, StructType, ValueType


class _Absent:
    """Not even null: the field is not shown."""


ABSENT = _Absent()

_SCALARS: dict[str, Any] = {"string": "", "bool": False, "int": 0, "float": 0}
_SPECIALS: dict[str, Any] = {"resource.Quantity": "0", "intstr.IntOrString": 0}


def zero_of(type: ValueType) -> Any:
    """The zero value itself, as an item of a list or a value of a map shows it."""
    if type.is_pointer or type.form in ("list", "map", "bytes"):
        return None
    if type.form == "struct":
        return zero_struct(type.struct)
    if type.form == "special":
        return _SPECIALS.get(type.name)
    return _SCALARS[type.form]


def unset(field: Field) -> Any:
    """What a field shows that nobody set; ABSENT for nothing."""
    is_always_shown = field.type.form in ("struct", "special") and not field.type.is_pointer
    if field.omit == "zero" or (field.omit == "empty" and not is_always_shown):
        return ABSENT
    return zero_of(field.type)


def zero_struct(type: StructType) -> dict[str, Any]:
    """A struct without anything set."""
    return {name: zero_of(each.type) for name, each in shown_when_unset(type)}


@cache
def shown_when_unset(type: StructType) -> tuple[tuple[str, Field], ...]:
    return tuple((name, each) for name, each in type.fields.items() if unset(each) is not ABSENT)


_RESOURCES = "core/v1.ResourceList"
_CORE = "core/v1"
_KEEPS_EMPTY_LISTS = "apiextensions/v1"  # stored as JSON; all other kinds go through protobuf, which knows no empty list
_SCHEMA = ValueType("struct", "v1.JSONSchemaProps", "apiextensions/v1.JSONSchemaProps")
_SCHEMA_EXPECTED = "boolean or JSON schema expected"
_LONGEST = 10**400  # beyond every float
_RANGES = {"int": 2**63, "int64": 2**63, "int32": 2**31}


class Misfit(Exception):
    """A special value ends the walk. The message is the server's."""


class Mismatch(Exception):
    """A value of the wrong type inside a special one, before it is known where that stands."""

    def __init__(self, word: str, go: str, inside: tuple[str, ...] = ()) -> None:
        self.word = word
        self.go = go
        self.inside = inside


class Walk:
    """One walk over one document. `unknown` are the members that the type lacks, as paths."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.mismatch: str = ""  # the first one, as a sentence
        self.first: Mismatch | None = None
        self._struct = ""
        self._stack: list[str] = []

    def struct(self, value: Any, type: StructType, go: str, path: str = "") -> Any:
        if not isinstance(value, dict):
            return self._wrong(json_type(value), go)
        fields = type.fields
        seen: dict[str, Any] = {}
        outer, depth = self._struct, len(self._stack)
        prefix = f"{path}." if path else ""
        for name, inner in value.items():
            field = fields.get(name)
            if field is None:
                self.unknown.append(f"{prefix}{name}")
                continue
            self._struct = type.go_name
            self._stack += field.embedded
            self._stack.append(name)
            seen[name] = self._member(inner, field, type, f"{prefix}{name}")
            del self._stack[depth:]
            self._struct = outer
        return _assembled(type, seen)

    def _member(self, value: Any, field: Field, owner: StructType, path: str) -> Any:
        if field.type.name == _RESOURCES and owner.package == _CORE and isinstance(value, dict):
            return {name: self._quantity(amount, rounds_to_milli=True) for name, amount in value.items()}
        return None if value is None else self.value(value, field.type, path)

    def value(self, value: Any, type: ValueType, path: str) -> Any:
        """One value that is not null."""
        form = type.form
        if form == "string":
            return value if isinstance(value, str) else self._wrong(json_type(value), type.go)
        if form == "struct":
            return self.struct(value, type.struct, type.go, path)
        if form == "list":
            return self._list(value, type, path)
        if form == "map":
            return self._map(value, type, path)
        if form == "special":
            return self._special(value, type)
        if form == "bytes":
            return self._bytes(value, type)
        if form == "bool":
            return value if isinstance(value, bool) else self._wrong(json_type(value), type.go)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._wrong(json_type(value), type.go)
        if form == "float":
            return value
        return self._integer(value, type)

    def _integer(self, value: int | float, type: ValueType) -> Any:
        bound = _RANGES[type.name]
        if isinstance(value, float) or not -bound <= value < bound:
            return self._wrong(_number(value), type.go)
        return value

    def _list(self, value: Any, type: ValueType, path: str) -> Any:
        if not isinstance(value, list):
            return self._wrong(json_type(value), type.go)
        element = type.inner
        return [
            zero_of(element) if each is None else self.value(each, element, f"{path}[{index}]")
            for index, each in enumerate(value)
        ]

    def _map(self, value: Any, type: ValueType, path: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong(json_type(value), type.go)
        element = type.inner
        if element.form == "bytes":  # a map shows an absent value as an empty one
            return {name: "" if each is None else self._bytes(each, element) for name, each in value.items()}
        return {
            name: zero_of(element) if each is None else self.value(each, element, f"{path}.{name}")
            for name, each in value.items()
        }

    def _bytes(self, value: Any, type: ValueType) -> Any:
        if isinstance(value, list):  # Go also takes the bytes as numbers
            for each in value:
                if isinstance(each, bool) or not isinstance(each, int | float):
                    return self._wrong(json_type(each), "uint8")
                if isinstance(each, float) or not 0 <= each < 256:
                    return self._wrong(_number(each), "uint8")
            return scalars.encoded(bytes(value))
        if not isinstance(value, str):
            return self._wrong(json_type(value), type.go)
        try:
            return scalars.canonical(value)
        except scalars.BadBase64 as error:
            self.mismatch = self.mismatch or str(error)
            return ""

    def _special(self, value: Any, type: ValueType) -> Any:
        try:
            return self._special_value(value, type.name)
        except Mismatch as error:
            raise Misfit(self._sentence(error)) from error
        except scalars.BadInstant as error:
            raise Misfit(str(error)) from error

    def _special_value(self, value: Any, name: str) -> Any:
        match name:
            case "meta/v1.Time" | "meta/v1.MicroTime":
                if not isinstance(value, str):
                    raise Mismatch(json_type(value), "string")
                return scalars.whole_seconds(value) if name == "meta/v1.Time" else scalars.microseconds(value)
            case "resource.Quantity":
                return self._quantity(value)
            case "intstr.IntOrString":
                return _int_or_string(value)
            case "apiextensions/v1.JSONSchemaPropsOrBool":
                if isinstance(value, bool):
                    return value
                if not isinstance(value, dict):
                    raise Misfit(_SCHEMA_EXPECTED)
                return _apart(value, _SCHEMA)
            case "apiextensions/v1.JSONSchemaPropsOrArray":
                return _schema_or_list(value, ValueType("list", "[]v1.JSONSchemaProps", element=_SCHEMA))
            case "apiextensions/v1.JSONSchemaPropsOrStringArray":
                return _schema_or_list(value, ValueType("list", "[]string", element=ValueType("string", "string", "string")))
            case _:  # any JSON
                return value

    def _quantity(self, value: Any, *, rounds_to_milli: bool = False) -> str:
        if value is None:
            return "0"
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise Misfit(quantity.BAD_FORMAT)
        try:
            amount = quantity.parse_quantity(str(value))
            return amount.in_milli if rounds_to_milli else amount.canonical
        except (quantity.BadQuantity, ValueError) as error:
            # Python refuses to write out very long integers; no quantity is as long.
            raise Misfit(str(error) if isinstance(error, quantity.BadQuantity) else quantity.BAD_FORMAT) from error

    def _wrong(self, word: str, go: str) -> None:
        """Remember the first value of a wrong type; the walk goes on, since something worse may follow."""
        if not self.mismatch:
            self.first = Mismatch(word, go, tuple(self._stack))
            self.mismatch = self._sentence(Mismatch(word, go))

    def _sentence(self, error: Mismatch) -> str:
        if not self._stack:
            return f"json: cannot unmarshal {error.word} into Go value of type {error.go}"
        place = ".".join((self._struct, *self._stack, *error.inside))
        return f"json: cannot unmarshal {error.word} into Go struct field {place} of type {error.go}"


def _assembled(type: StructType, seen: dict[str, Any]) -> dict[str, Any]:
    """The struct as Go writes it, its members in the order of the type."""
    shown: dict[str, Any] = {}
    for name, field in type.fields.items():
        value = seen.get(name)
        if value is None:
            nothing = unset(field)
            if nothing is not ABSENT:
                shown[name] = nothing
        elif value or field.type.is_pointer or field.type.form in ("struct", "special"):
            shown[name] = value
        elif field.omit == "":
            is_lost = field.type.form in ("list", "map") and type.package != _KEEPS_EMPTY_LISTS
            shown[name] = None if is_lost else value
    return shown


def _int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Mismatch(json_type(value), "int32")
    if isinstance(value, float) or not -(2**31) <= value < 2**31:
        raise Mismatch(_number(value), "int32")
    return value


def _schema_or_list(value: Any, list_type: ValueType) -> Any:
    """Anything else than a schema or a list counts as neither."""
    if isinstance(value, dict):
        return _apart(value, _SCHEMA)
    if isinstance(value, list) and value:
        return _apart(value, list_type)
    return None


def _apart(value: Any, type: ValueType) -> Any:
    """Decode a value that Go decodes on its own: unknown members are not reported, and a mismatch ends the whole walk."""
    walk = Walk()
    decoded = walk.value(value, type, "")
    if walk.first is not None:
        raise walk.first
    return decoded


def _number(value: int | float) -> str:
    """A number that does not fit, by its digits; Python refuses to write out very long ones."""
    return f"number {value}" if abs(value) < _LONGEST else "number"
