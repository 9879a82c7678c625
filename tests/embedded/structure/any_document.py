"""Random documents of built-in types, and random JSON, for property tests."""

import base64
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from applecart.embedded.structure.types import StructType, ValueType, built_in_kinds, struct_of, type_of

MAX_DEPTH = 6  # below it structs stay empty: schemas contain schemas
_SCHEMA = "apiextensions/v1.JSONSchemaProps"

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(texts.filter(bool), st.integers(0, 9) | texts, max_size=2)
_instants = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 30)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
_quantities = st.sampled_from(["0", "1", "500m", "1Gi", "1500Mi", "1k", "100"])
_SPECIALS: dict[str, st.SearchStrategy[Any]] = {
    "Time": _instants.map(lambda at: at.isoformat()[:19].rjust(19, "0") + "Z"),
    "MicroTime": _instants.map(lambda at: f"{at.isoformat()[:19]}.{at.microsecond:06d}Z"),
    "Quantity": _quantities,
    "IntOrString": st.integers(-(2**31), 2**31 - 1) | texts,
    "FieldsV1": _objects,
    "JSON": _objects | st.integers(0, 9) | texts,
}


@st.composite
def documents(draw: st.DrawFn) -> tuple[dict[str, Any], StructType]:
    """A document of any built-in kind that fits its type, and the type."""
    api_version, kind = draw(st.sampled_from(built_in_kinds()))
    type = type_of(api_version, kind)
    assert type is not None
    return {"apiVersion": api_version, "kind": kind, **draw(members(type, 0))}, type


@st.composite
def members(draw: st.DrawFn, type: StructType, depth: int) -> dict[str, Any]:
    names = [name for name in type.fields if name not in ("apiVersion", "kind")]
    if not names or depth > MAX_DEPTH:
        return {}
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=True))
    return {name: draw(values(type.fields[name].type, depth + 1)) for name in chosen}


def values(type: ValueType, depth: int) -> st.SearchStrategy[Any]:
    if type.element is not None:
        inner = st.deferred(lambda: values(type.element or type, depth + 1))
        return st.lists(inner, max_size=2) if type.form == "list" else st.dictionaries(texts, inner, max_size=2)
    match type.form:
        case "struct":
            return members(type.struct, depth)
        case "string":
            return texts
        case "bool":
            return st.booleans()
        case "int":
            bound = 2**31 if type.name == "int32" else 2**63
            return st.just(0) | st.integers(-bound, bound - 1)
        case "float":
            return st.sampled_from([0, 1, 0.5, -2.25])
        case "bytes":
            return st.binary(max_size=4).map(lambda data: base64.b64encode(data).decode())
        case _:
            return _special(type.name, depth)


def _special(name: str, depth: int) -> st.SearchStrategy[Any]:
    short = name.rsplit(".", 1)[1]
    if short in _SPECIALS:
        return _SPECIALS[short]
    schema = members(struct_of(_SCHEMA), depth + 1)
    if short == "JSONSchemaPropsOrBool":
        return st.booleans() | schema
    if short == "JSONSchemaPropsOrArray":
        return schema | st.lists(schema, min_size=1, max_size=2)
    return schema | st.lists(texts, min_size=1, max_size=2)
