"""Brings a document of a built-in kind into the form the API stores, or refuses it in the words of a real server.

The result is what decoding into the Go type and encoding again would give, before defaults: unknown members are dropped and
reported, zeros and nulls shown as Go shows them, quantities and timestamps canonical. Most documents need no judgement and take
the quick way: a struct that msgspec checks and writes again, compiled once per type. The others are walked. The two agree on
what they both take; a property test holds them together. The given document is not changed.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.structure.types import Field, StructType, ValueType
from applecart.embedded.structure.walk import ABSENT, Misfit, Walk, unset

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
_NULL: Any = msgspec.field(default_factory=lambda: None)  # is always written
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
        return checked | None, None if nothing is ABSENT else _NULL
    if type.form == "struct":
        return checked, msgspec.field(default_factory=checked)
    if type.form in ("list", "map") and nothing is ABSENT:
        return checked, msgspec.field(default_factory=list if type.form == "list" else dict)
    if type.form in ("list", "map", "bytes"):  # empty ones become null or absent, which the exact way does
        return Annotated[checked, Meta(min_length=1)], None if nothing is ABSENT else _NULL
    if nothing is ABSENT:
        return checked, {"string": "", "bool": False, "int": 0}[type.form]
    return checked, msgspec.field(default_factory=nothing.__class__ if not nothing else lambda: "0")  # of a quantity


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


MAX_REPORTED = 100  # strict problems that a server lists; the rest would only fill a log


@dataclass(frozen=True, slots=True)
class Conformed:
    document: dict[str, Any]
    unknown: tuple[str, ...] = ()  # paths of members that were dropped, in the order of the document

    @property
    def problems(self) -> list[str]:
        """What strict validation would refuse, as sentences."""
        return [f"unknown field {quoted(path)}" for path in dict.fromkeys(self.unknown)][:MAX_REPORTED]


def conform(document: dict[str, Any], type: StructType) -> Conformed:
    """The stored form. Raises Refusal (400) for a document that does not fit its type."""
    quick = conform_fast(document, type)
    return Conformed(quick) if quick is not None else conform_exactly(document, type)


def conform_exactly(document: dict[str, Any], type: StructType) -> Conformed:
    """The same, without the quick way."""
    walk = Walk()
    try:
        conformed = walk.struct(document, type, f"v1.{type.go_name}")
    except Misfit as error:
        raise _refusal(document, type, str(error)) from error
    except RecursionError as error:
        raise _refusal(document, type, "exceeded max depth") from error
    if walk.mismatch:
        raise _refusal(document, type, walk.mismatch)
    return Conformed(conformed, tuple(walk.unknown))


def _refusal(document: Any, type: StructType, why: str) -> Refusal:
    named = document if isinstance(document, dict) else {}
    kind = named.get("kind") if isinstance(named.get("kind"), str) else ""
    api_version = named.get("apiVersion") if isinstance(named.get("apiVersion"), str) else ""
    version = str(api_version or type.package).rsplit("/", 1)[-1]
    return bad_request(f"{kind or type.go_name} in version {quoted(version)} cannot be handled as a {type.go_name}: {why}")
