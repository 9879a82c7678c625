"""The quick way refuses what it cannot judge, and what it takes needs no change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.quantity import parse_quantity
from applecart.embedded.structure.fast import conform_fast
from applecart.embedded.structure.types import type_of

POD = type_of("v1", "Pod")
EVENT = type_of("v1", "Event")


def takes_quantity(text: object) -> bool:
    assert POD is not None
    return conform_fast({"spec": {"containers": [{"name": "c", "resources": {"limits": {"x": text}}}]}}, POD) is not None


def takes_instant(text: object) -> bool:
    assert EVENT is not None
    return conform_fast({"firstTimestamp": text}, EVENT) is not None


@pytest.mark.parametrize("text", ["0", "1", "500m", "1500m", "100", "12345", "4", "8Gi", "1000Mi", "1500Mi", "999Pi", "1k"])
def test_usual_quantities_take_the_quick_way(text: str) -> None:
    assert takes_quantity(text)
    assert parse_quantity(text).in_milli == text


@given(st.integers(0, 10**17).map(str), st.sampled_from(["", "n", "u", *"mkMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]))
def test_a_quantity_that_takes_the_quick_way_is_stored_as_it_is(number: str, suffix: str) -> None:
    if takes_quantity(number + suffix):
        assert parse_quantity(number + suffix).in_milli == number + suffix


@pytest.mark.parametrize("value", ["1024Mi", "1000", "1000m", "0.5", "100u", "16Ei", "1e3", " 1", "1\n", "+1", "", 1, None])
def test_a_quantity_that_changes_takes_the_exact_way(value: object) -> None:
    assert not takes_quantity(value)


@pytest.mark.parametrize("text", ["2026-11-16T10:00:00Z", "2026-01-31T23:59:59Z", "1999-09-30T00:00:00Z"])
def test_usual_instants_take_the_quick_way(text: str) -> None:
    assert takes_instant(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:00.5Z",
        "2026-01-01T00:00:00+01:00",
        "2026-01-01T00:00:00Z\n",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "\u0662\u0660\u0662\u0666-01-01T00:00:00Z",
        5,
    ],
)
def test_an_instant_that_changes_or_fails_takes_the_exact_way(text: object) -> None:
    assert not takes_instant(text)
