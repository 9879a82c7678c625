"""Quantities: the text a server keeps, the amount it means, and nothing else for any input."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from applecart.api.quantity import BadQuantity, Quantity, parse_quantity, quantity_of

SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BAD = ["", "abc", "1 Gi", "1kk", "1KiB", "--1", "1.1.1", "1e", "1ii", "1m5", "1\n", "1e9999", "9" * 300]
ANYTHING = st.one_of(st.text(), st.none(), st.booleans(), st.floats(), st.integers())
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30}  # larger ones would be cut to 63 bits


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Decimal]:
    """A quantity's text and its exact value."""
    digits = draw(st.integers(0, 10**9))
    places = draw(st.integers(0, 3))
    number = f"{digits}" if not places else f"{digits // 10**places}.{digits % 10**places:0{places}}"
    suffix = draw(st.sampled_from([*SUFFIXES, *BINARY, "e3", "E-2", "e0", "e+5"]))
    if suffix in BINARY:
        return number + suffix, Decimal(number) * 2 ** BINARY[suffix]
    power = SUFFIXES[suffix] if suffix in SUFFIXES else int(suffix[1:])
    return number + suffix, Decimal(number) * Decimal(10) ** power


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("4", "4"),
        ("0.5", "500m"),
        ("1.500", "1.500"),  # kept as it was written, as a real server does
        ("+5", "+5"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("16384Mi", "16Gi"),
        ("1023Ki", "1023Ki"),
        ("1.5Gi", "1536Mi"),
        ("0.1Ki", "102400m"),
        ("0.5Gi", "512Mi"),
        ("1e3", "1e3"),
        ("1e4", "10e3"),
        ("1e-10", "1e-9"),
        ("0.1n", "1n"),
        ("00100", "00100"),
        (".5", "500m"),
        ("1.G", "1.G"),
        ("8Ki", "8Ki"),
        ("10Ei", "9223372036854775807"),
        ("100000000000000000000", "100E"),
        ("e3", "0"),
    ],
)
def test_a_quantity_is_kept_in_the_text_of_a_real_server(text: str, canonical: str) -> None:
    assert parse_quantity(text).canonical == canonical


@pytest.mark.parametrize("text", BAD)
def test_other_text_is_no_quantity(text: str) -> None:
    with pytest.raises(BadQuantity):
        parse_quantity(text)


def test_values_round_away_from_zero() -> None:
    assert parse_quantity("1500m") == Quantity(1_500_000_000, "1500m")
    assert (parse_quantity("1500m").value, parse_quantity("1500m").milli) == (2, 1500)
    assert (parse_quantity("-1500m").value, parse_quantity("1u").milli) == (-2, 1)
    assert not parse_quantity("1500m").is_whole


def test_amounts_of_resources_are_in_thousandths_rounded_up() -> None:
    assert parse_quantity("0.0001").in_milli == "1m"
    assert parse_quantity("1.0005").in_milli == "1001m"
    assert parse_quantity("1e-6").in_milli == "1e-3"
    assert parse_quantity("16Gi").in_milli == "16Gi"


def test_a_bare_number_is_a_quantity_too() -> None:
    assert quantity_of(2).canonical == "2"
    assert quantity_of(0.5).canonical == "500m"


@given(written())
def test_the_amount_is_exact_down_to_a_nano(case: tuple[str, Decimal]) -> None:
    text, value = case
    nanos = value * 10**9
    assert 0 <= parse_quantity(text).nanos - nanos < 1


@given(written())
def test_writing_and_reading_again_changes_nothing(case: tuple[str, Decimal]) -> None:
    once = parse_quantity(case[0])
    assert parse_quantity(once.canonical) == once
    assert parse_quantity(once.in_milli).in_milli == once.in_milli


@given(written(), written())
def test_amounts_compare_as_numbers_do(a: tuple[str, Decimal], b: tuple[str, Decimal]) -> None:
    if parse_quantity(a[0]).nanos < parse_quantity(b[0]).nanos:
        assert a[1] < b[1]


@given(st.one_of(ANYTHING, st.text("0123456789.eEinumkKMGTP+-", max_size=12)))
@example(["1"])
@example({})
@example(10**400)
def test_any_input_is_a_quantity_or_a_bad_one(value: Any) -> None:
    try:
        quantity = quantity_of(value)
    except BadQuantity:
        return
    assert parse_quantity(quantity.canonical).nanos == quantity.nanos
