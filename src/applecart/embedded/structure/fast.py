"""The quick way to conform: a struct that msgspec checks and writes again, compiled once per type.

It takes only documents that need no judgement: known fields, right types, quantities and timestamps already in stored form.
Everything else it refuses without saying why, and `walk` does the work. The two must agree on what they both take; a property
test holds them together.
"""

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from applecart.embedded.structure.table import Field, StructType, ValueType
from applecart.embedded.structure.zero import ABSENT, unset

# February 29 is left to the exact way, which knows the years.
_DATE = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_MOMENT = rf"(?!0001-01-01T00:00:00)(?!0000)\d{{4}}-{_DATE}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
# Quantities of which nothing can move into a larger suffix; n, u and Ei may have to be rounded or capped.
_MULTIPLES = "|".join(str(number) for number in range(1024, 100_000, 1024))
_DECIMAL = r"[1-9]\d{0,14}(?<!000)[mkMGTPE]?"
_BINARY = rf"[1-9]\d{{0,2}}Pi|(?!(?:{_MULTIPLES})[KMGT])[1-9]\d{{0,4}}[KMGT]i"

_SPECIALS: dict[str, Any] = {
    "meta/v1.Time": Annotated[str, Meta(pattern=rf"(?a)\A{_MOMENT}Z\Z")],
    "meta/v1.MicroTime": Annotated[str, Meta(pattern=rf"(?a)\A{_MOMENT}\.\d{{6}}Z\Z")],
    "resource.Quantity": Annotated[str, Meta(pattern=rf"(?a)\A(?:0|{_DECIMAL}|{_BINARY})\Z")],
    "intstr.IntOrString": Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | str,
    "meta/v1.FieldsV1": dict[str, Any],
}
_INTEGERS: dict[str, Any] = {
    "int32": Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)],
    "int64": Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)],
}
_PLAIN: dict[str, Any] = {"string": str, "bool": bool, "float": float, "bytes": bytes}
_IS_RECURSIVE = "apiextensions/v1"  # schemas contain schemas; they are rare and take the exact way


def conform_fast(document: Any, type: StructType) -> dict[str, Any] | None:
    """The stored form, or None when the document needs the exact way."""
    if type.package == _IS_RECURSIVE:
        return None
    try:
        written: dict[str, Any] = msgspec.to_builtins(msgspec.convert(document, _compiled(type)))
    except (msgspec.ValidationError, RecursionError):
        return None
    return written


@cache
def _compiled(type: StructType) -> Any:
    names = {f"f{number}": name for number, name in enumerate(type.fields)}  # JSON names need not be Python's
    members = [(short, *_member(type.fields[name])) for short, name in names.items()]
    return msgspec.defstruct(type.go_name, members, rename=names, omit_defaults=True, forbid_unknown_fields=True, gc=False)


def _member(field: Field) -> tuple[Any, Any]:
    """Type and default of one member. What equals its default is not written; what a factory makes always is."""
    type = field.type
    checked = _checked(type)
    nothing = unset(field)
    if type.is_pointer or type.name in ("meta/v1.Time", "meta/v1.MicroTime"):
        return checked | None, None if nothing is ABSENT else msgspec.field(default_factory=_null)
    if type.form == "struct":
        return checked, msgspec.field(default_factory=checked)
    if type.form in ("list", "map") and nothing is ABSENT:
        return checked, msgspec.field(default_factory=list if type.form == "list" else dict)
    if type.form in ("list", "map", "bytes"):  # empty ones become null or absent, which the exact way does
        return Annotated[checked, Meta(min_length=1)], None if nothing is ABSENT else msgspec.field(default_factory=_null)
    if nothing is ABSENT:
        return checked, {"string": "", "bool": False, "int": 0}[type.form]
    return checked, msgspec.field(default_factory=nothing.__class__ if not nothing else _zero_quantity)


def _checked(type: ValueType) -> Any:
    if type.form == "struct":
        return _compiled(type.struct)
    if type.form == "special":
        return _SPECIALS[type.name]
    if type.form == "int":
        return _INTEGERS[type.name]
    if type.element is None:
        return _PLAIN[type.form]
    element = _checked(type.element)
    if type.element.form in ("list", "map") or type.element.is_pointer:
        element = Annotated[element, Meta(min_length=1)]
    return list[element] if type.form == "list" else dict[str, element]  # type: ignore[valid-type]


def _null() -> None:
    return None


def _zero_quantity() -> str:
    return "0"
