"""Structural schemas, as Kubernetes wants them in a CustomResourceDefinition, from the structs we decode into.

Types give the shape. Everything else the API server must know of a field (limits, defaults, descriptions, CEL rules) is said
with `described`, which the decoder ignores on purpose: an object that was stored before a limit existed must still be read.
For the same reason a struct's default is only what absence decodes to; a default the server fills in is `described`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import inspect

Schema = dict[str, Any]

_REQUIRED = "x-applecart-required"  # never leaves this module
_ABSENT = object()


class Rule(msgspec.Struct, frozen=True):
    """A CEL rule. The message is the sentence a person reads: it names the field and says what to write instead."""

    rule: str
    message: str
    field_path: str = ""  # below the place of the rule, when the rule stands higher than the field it is about
    reason: str = ""

    def as_schema(self) -> Schema:
        entry = {"rule": self.rule, "message": self.message, "fieldPath": self.field_path, "reason": self.reason}
        return {name: value for name, value in entry.items() if value}


def described(
    text: str, *, required: bool = False, default: Any = _ABSENT, rules: Sequence[Rule] = (), **keywords: Any
) -> msgspec.Meta:
    """What the API says about a field. `keywords` are the schema's own: minimum, maxLength, enum, format and so on."""
    if default is not _ABSENT:
        keywords["default"] = default
    if rules:
        keywords["x-kubernetes-validations"] = [rule.as_schema() for rule in rules]
    if required:
        keywords[_REQUIRED] = True
    return msgspec.Meta(description=text, extra_json_schema=keywords)


def list_map(*keys: str) -> Schema:
    """For `described`: a list whose elements are told apart by these keys, so that two writers do not overwrite each other."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def structural_schema(kind: type[msgspec.Struct]) -> Schema:
    """The schema of a struct. A struct may hold `cel_rules`, rules about the object as a whole."""
    return _convert(inspect.type_info(kind), kind.__name__, ())


def _convert(type_: inspect.Type, path: str, inside: tuple[type, ...]) -> Schema:
    if isinstance(type_, inspect.Metadata):
        return {**_convert(type_.type, path, inside), **(type_.extra_json_schema or {})}
    for known, make in _MAKERS:
        if isinstance(type_, known):
            return make(type_, path, inside)
    raise TypeError(f"{path}: a {type(type_).__name__} has no structural schema; use another type for this field")


def _struct(type_: Any, path: str, inside: tuple[type, ...]) -> Schema:
    if type_.cls in inside:
        raise TypeError(f"{path}: {type_.cls.__name__} holds itself; a structural schema cannot recurse")
    schema: Schema = {"type": "object"}
    if text := type_.cls.__dict__.get("__doc__"):
        schema["description"] = " ".join(text.split())
    properties: Schema = {}
    required = []
    for field in type_.fields:
        name = field.encode_name
        properties[name] = _convert(field.type, f"{path}.{name}", (*inside, type_.cls))
        if properties[name].pop(_REQUIRED, False) or field.required:
            required.append(name)
            if _allows_none(field.type):
                properties[name]["nullable"] = True
    schema["properties"] = properties
    if required:
        schema["required"] = sorted(required)
    if rules := getattr(type_.cls, "cel_rules", ()):
        schema["x-kubernetes-validations"] = [rule.as_schema() for rule in rules]
    return schema


def _allows_none(type_: inspect.Type) -> bool:
    if isinstance(type_, inspect.Metadata):
        return _allows_none(type_.type)
    return isinstance(type_, inspect.UnionType) and any(isinstance(t, inspect.NoneType) for t in type_.types)


def _union(type_: Any, path: str, inside: tuple[type, ...]) -> Schema:
    others = [t for t in type_.types if not isinstance(t, inspect.NoneType)]
    if len(others) == 1:
        return _convert(others[0], path, inside)
    if {type(t) for t in others} == {inspect.IntType, inspect.StrType}:
        return {"x-kubernetes-int-or-string": True}
    raise TypeError(f"{path}: a structural schema knows no union but int-or-string; use one type for this field")


def _array(type_: Any, path: str, inside: tuple[type, ...]) -> Schema:
    limits = {"minItems": type_.min_length or None, "maxItems": type_.max_length}
    return _given({"type": "array", "items": _convert(type_.item_type, f"{path}[]", inside), **limits})


def _map(type_: Any, path: str, inside: tuple[type, ...]) -> Schema:
    values = _convert(type_.value_type, f"{path}.*", inside)
    return _given({"type": "object", "additionalProperties": values, "maxProperties": type_.max_length})


def _string(type_: Any, *_: Any) -> Schema:
    limits = {"minLength": type_.min_length, "maxLength": type_.max_length, "pattern": type_.pattern}
    return _given({"type": "string", **limits})


def _number(name: str) -> Callable[..., Schema]:
    def make(type_: Any, *_: Any) -> Schema:
        low, high = (type_.ge, type_.gt), (type_.le, type_.lt)
        return _given(
            {
                "type": name,
                "minimum": low[0] if low[0] is not None else low[1],
                "exclusiveMinimum": True if low[1] is not None else None,  # a boolean in OpenAPI 3.0
                "maximum": high[0] if high[0] is not None else high[1],
                "exclusiveMaximum": True if high[1] is not None else None,
                "multipleOf": type_.multiple_of,
            }
        )

    return make


def _enum(type_: Any, path: str, *_: Any) -> Schema:
    is_literal = isinstance(type_, inspect.LiteralType)
    values = list(type_.values) if is_literal else [member.value for member in type_.cls]
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        raise TypeError(f"{path}: the values of an enum must be all strings or all integers")
    return {"type": "string" if kinds == {str} else "integer", "enum": values}


def _anything(*_: Any) -> Schema:
    return {"x-kubernetes-preserve-unknown-fields": True}


def _given(schema: Schema) -> Schema:
    return {keyword: value for keyword, value in schema.items() if value is not None}


_MAKERS: tuple[tuple[Any, Callable[..., Schema]], ...] = (
    (inspect.StructType, _struct),
    (inspect.UnionType, _union),
    ((inspect.VarTupleType, inspect.ListType), _array),
    (inspect.DictType, _map),
    (inspect.StrType, _string),
    (inspect.BoolType, lambda *_: {"type": "boolean"}),
    (inspect.IntType, _number("integer")),
    (inspect.FloatType, _number("number")),
    (inspect.DateTimeType, lambda *_: {"type": "string", "format": "date-time"}),
    (inspect.BytesType, lambda *_: {"type": "string", "format": "byte"}),
    ((inspect.LiteralType, inspect.EnumType), _enum),
    ((inspect.AnyType, inspect.RawType), _anything),
)
