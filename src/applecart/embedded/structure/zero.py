"""What Go shows of a value that nobody set.

Leaving a field out of JSON and setting it to its zero value are the same for a Go server, unless the field is a pointer. What
it then shows depends on the field alone: nothing, a zero, `null`, or a struct with what its own fields show.
"""

from functools import cache
from typing import Any

from applecart.embedded.structure.table import Field, StructType, ValueType


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
