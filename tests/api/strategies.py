"""Random structs of any kind, for property tests: every field filled or left out, as its type allows."""

import string
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

TEXT = st.text(alphabet=string.ascii_letters + string.digits + '-./: ü"\\\n', max_size=12)
INTEGERS = st.integers(min_value=-(2**31), max_value=2**31 - 1)
INSTANTS = st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
JSON_VALUES = st.recursive(st.none() | st.booleans() | INTEGERS | TEXT, lambda inner: st.lists(inner, max_size=2))

_BY_TYPE: dict[type, st.SearchStrategy[Any]] = {
    inspect.StrType: TEXT,
    inspect.IntType: INTEGERS,
    inspect.BoolType: st.booleans(),
    inspect.DateTimeType: INSTANTS,
    inspect.NoneType: st.none(),
    inspect.AnyType: JSON_VALUES,
}


def structs(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    return _of_type(inspect.type_info(kind))


def _of_type(type_: inspect.Type) -> st.SearchStrategy[Any]:
    if isinstance(type_, inspect.Metadata):
        return _of_type(type_.type)
    if isinstance(type_, inspect.UnionType):
        return st.one_of(*map(_of_type, type_.types))
    if isinstance(type_, inspect.VarTupleType):
        return st.lists(st.deferred(lambda: _of_type(type_.item_type)), max_size=2).map(tuple)
    if isinstance(type_, inspect.DictType):
        return st.dictionaries(TEXT, _of_type(type_.value_type), max_size=2)
    if isinstance(type_, inspect.StructType):
        required = {f.name: _of_type(f.type) for f in type_.fields if f.required}
        optional = {f.name: _of_type(f.type) for f in type_.fields if not f.required}
        return st.fixed_dictionaries(required, optional=optional).map(lambda values: type_.cls(**values))
    return _BY_TYPE[type(type_)]
