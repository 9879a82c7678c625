"""A struct's types and descriptions become the schema an API server enforces."""

import enum
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta, Struct, field

from applecart.api.schema import Rule, described, list_map, structural_schema
from applecart.embedded.schema.versions import schema_part_errors


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct, rename="camel"):
    """A part of it."""

    some_name: str = ""


class Undocumented(Struct):
    value: int


def schema_of(type_: Any, *, default: Any = msgspec.NODEFAULT) -> dict[str, Any]:
    kind = msgspec.defstruct("Kind", [("value", type_, default)] if default is not msgspec.NODEFAULT else [("value", type_)])
    result: dict[str, Any] = structural_schema(kind)["properties"]["value"]
    return result


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (datetime, {"type": "string", "format": "date-time"}),
        (bytes, {"type": "string", "format": "byte"}),
        (int | str, {"x-kubernetes-int-or-string": True}),
        (int | str | None, {"x-kubernetes-int-or-string": True, "nullable": True}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
        (msgspec.Raw, {"x-kubernetes-preserve-unknown-fields": True}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Annotated[int, Meta(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (
            Annotated[float, Meta(gt=0, lt=1)],
            {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
        ),
        (Annotated[int, Meta(multiple_of=2)], {"type": "integer", "multipleOf": 2}),
        (
            Annotated[str, Meta(min_length=1, max_length=3, pattern="^a")],
            {"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^a"},
        ),
        (
            Annotated[tuple[str, ...], Meta(min_length=1, max_length=2)],
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        ),
        (
            Inner,
            {"type": "object", "description": "A part of it.", "properties": {"someName": {"type": "string"}}},
        ),
        (
            Undocumented,
            {"type": "object", "properties": {"value": {"type": "integer"}}, "required": ["value"]},
        ),
    ],
)
def test_a_type_has_this_schema(type_: Any, expected: dict[str, Any]) -> None:
    assert schema_of(type_) == expected
    assert schema_part_errors({"type": "object", "properties": {"value": schema_of(type_)}}, "schema", False) == []


def test_a_field_that_may_be_left_out_is_not_nullable() -> None:
    """Absent is how such a field is unset; null would be a second spelling of it that the server had to store."""
    assert schema_of(str | None, default=None) == {"type": "string"}


def test_a_field_that_must_be_there_but_may_be_null_is_nullable() -> None:
    assert schema_of(str | None) == {"type": "string", "nullable": True}


def test_a_field_without_a_default_is_required_by_its_wire_name() -> None:
    class Kind(Struct, rename="camel"):
        first_thing: int
        pod_ip: str = field(name="podIP")
        other: str = ""

    assert structural_schema(Kind)["required"] == ["firstThing", "podIP"]


def test_a_field_can_be_required_by_the_api_and_still_be_absent_when_decoding() -> None:
    class Kind(Struct):
        image: Annotated[str, described("The image.", required=True, minLength=1)] = ""

    schema = structural_schema(Kind)
    assert schema["required"] == ["image"]
    assert schema["properties"]["image"] == {"type": "string", "description": "The image.", "minLength": 1}
    assert msgspec.json.decode(b'{"image": ""}', type=Kind).image == ""
    assert msgspec.json.decode(b"{}", type=Kind).image == ""


def test_a_struct_default_is_not_a_default_of_the_api() -> None:
    assert "default" not in schema_of(int, default=5)


@pytest.mark.parametrize("default", [0, False, "", {}, []])
def test_a_described_default_is_kept_even_when_it_is_empty(default: Any) -> None:
    assert schema_of(Annotated[Any, described("x", default=default)])["default"] == default


def test_rules_are_written_beside_the_field_and_on_the_object() -> None:
    class Kind(Struct):
        cel_rules: ClassVar[tuple[Rule, ...]] = (
            Rule("self.n > 0", "n must be above zero", field_path=".n", reason="FieldValueInvalid"),
        )
        n: Annotated[int, described("A number.", rules=(Rule("self < 9", "n must be below nine"),))] = 1

    schema = structural_schema(Kind)
    assert schema["x-kubernetes-validations"] == [
        {"rule": "self.n > 0", "message": "n must be above zero", "fieldPath": ".n", "reason": "FieldValueInvalid"}
    ]
    assert schema["properties"]["n"]["x-kubernetes-validations"] == [{"rule": "self < 9", "message": "n must be below nine"}]


def test_a_list_map_names_its_keys() -> None:
    schema = schema_of(Annotated[tuple[Undocumented, ...], described("Things.", **list_map("value"))])
    assert (schema["x-kubernetes-list-type"], schema["x-kubernetes-list-map-keys"]) == ("map", ["value"])
    assert schema_part_errors({"type": "object", "properties": {"value": schema}}, "schema", False) == []


def test_a_description_of_the_field_wins_over_the_docstring_of_its_type() -> None:
    assert schema_of(Annotated[Inner, described("Here.")])["description"] == "Here."


def test_a_field_may_keep_what_it_does_not_know() -> None:
    extra: dict[str, Any] = {"x-kubernetes-preserve-unknown-fields": True}
    assert schema_of(Annotated[Inner, described("Open.", **extra)])["x-kubernetes-preserve-unknown-fields"] is True


class Tree(Struct):
    children: "tuple[Tree, ...]" = ()


@pytest.mark.parametrize(
    ("type_", "sentence"),
    [
        (Tree, "Kind.value.children\\[\\]: Tree holds itself"),
        (int | bytes, "Kind.value: a structural schema knows no union but int-or-string"),
        (complex, "Kind.value: a CustomType has no structural schema"),
        (Literal["a", 1], "Kind.value: the values of an enum must be all strings or all integers"),
    ],
)
def test_a_type_without_a_schema_is_a_sentence_with_the_place(type_: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence):
        schema_of(type_)
