from typing import Any

import pytest

from applecart.embedded.patching.forms import BadItem, below, element_of, form_of, is_named, keyed
from applecart.embedded.shape import SCALAR, UNTYPED, Shape
from tests.embedded.patching.shapes import CONTAINER, PROBE, atomic, map_of, set_of, struct
from tests.embedded.patching.shapes import keyed as keyed_list

SPEC = PROBE.fields["spec"]
PORTS = CONTAINER.fields["ports"]


@pytest.mark.parametrize(
    ("shape", "content", "form"),
    [
        (SCALAR, "x", "leaf"),
        (SCALAR, {}, "leaf"),
        (struct("a"), {}, "map"),
        (struct("a"), None, "map"),
        (struct("a", is_atomic=True), {}, "leaf"),
        (map_of(), {}, "map"),
        (map_of(is_atomic=True), {}, "leaf"),
        (atomic(), [], "leaf"),
        (set_of(), [], "list"),
        (PORTS, None, "list"),
        (UNTYPED, {}, "map"),
        (UNTYPED, None, "map"),
        (UNTYPED, [], "leaf"),
        (UNTYPED, 5, "leaf"),
        (Shape("untyped", is_atomic=True), {}, "leaf"),
    ],
)
def test_a_value_is_a_leaf_or_has_parts(shape: Shape, content: Any, form: str) -> None:
    assert form_of(shape, content) == form


@pytest.mark.parametrize(
    ("shape", "item", "element"),
    [
        (set_of(), "a", 'v:"a"'),
        (set_of(), 1, "v:1"),
        (SPEC.fields["items"], {"name": "a", "value": "b"}, 'k:{"name":"a"}'),
        (PORTS, {"containerPort": 1}, 'k:{"containerPort":1,"protocol":"TCP"}'),
        (PORTS, {"containerPort": 1, "protocol": "UDP"}, 'k:{"containerPort":1,"protocol":"UDP"}'),
        (keyed_list(struct("a", "b"), "a", "b"), {"b": 1}, 'k:{"b":1}'),
    ],
)
def test_an_item_is_known_by_its_value_or_its_keys(shape: Shape, item: Any, element: str) -> None:
    assert element_of(item, shape) == element


@pytest.mark.parametrize(
    ("shape", "item", "problem"),
    [
        (set_of(), {}, "associative list without keys has an element that's a map type"),
        (set_of(), [], "not supported: associative list with lists as elements"),
        (set_of(), None, "associative list without keys has an element that's an explicit null"),
        (PORTS, None, "associative list with keys may not have a null element"),
        (PORTS, "x", "associative list with keys may not have non-map elements"),
        (
            SPEC.fields["items"],
            {},
            'associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
    ],
)
def test_an_item_that_cannot_be_identified_is_refused(shape: Shape, item: Any, problem: str) -> None:
    with pytest.raises(BadItem) as bad:
        element_of(item, shape)
    assert str(bad.value) == problem


def test_stored_items_that_cannot_be_identified_are_passed_over() -> None:
    assert list(keyed(["a", None, {}, "b"], set_of())) == [('v:"a"', "a"), ('v:"b"', "b")]
    assert list(keyed("no list", set_of())) == []


def test_only_members_of_structs_are_named() -> None:
    assert is_named(SPEC, "items")
    assert not is_named(SPEC, "unknown")
    assert not is_named(SPEC.fields["labels"], "a")


def test_shapes_are_found_along_elements() -> None:
    assert below(SPEC, "f:items") is SPEC.fields["items"]
    assert below(SPEC.fields["items"], 'k:{"name":"a"}') is SPEC.fields["items"].element
    assert below(SPEC.fields["tags"], 'v:"a"') is UNTYPED
    assert below(SPEC.fields["items"], "f:strange") is UNTYPED
