"""Quantities in their stored form. Every expectation is what a real API server answered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.api.quantity import BAD_FORMAT, BAD_SUFFIX, BadQuantity, parse_quantity


def canonical(text: str, *, rounds_to_milli: bool = False) -> str:
    amount = parse_quantity(text)
    return amount.in_milli if rounds_to_milli else amount.canonical


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("0", "0"),
        ("00", "0"),
        ("0m", "0"),
        ("0Mi", "0"),
        ("0e5", "0"),
        (" 1 ", "1"),
        ("1.0", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("0.1", "100m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("100000", "100k"),
        ("1001", "1001"),
        ("65536", "65536"),
        ("1000G", "1T"),
        ("1000000000000000000000n", "1T"),
        ("12345678901234567890", "12345678901234567890"),
        ("-1", "-1"),
        ("-0.5", "-500m"),
    ],
)
def test_decimal_amounts_move_into_the_largest_suffix(given_text: str, stored: str) -> None:
    assert canonical(given_text) == stored


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("1024Mi", "1Gi"),
        ("2048Ki", "2Mi"),
        ("4096Mi", "4Gi"),
        ("8Gi", "8Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("0.3Ki", "307200m"),
        ("1.1Mi", "1153433600m"),
        ("1.0000000000000001Ki", "1024000000001n"),
        ("7Ei", "7Ei"),
        ("16Ei", "9223372036854775807"),
        ("123456789012345678901234567890Gi", "9223372036854775807"),
    ],
)
def test_binary_amounts_move_into_the_largest_suffix_and_are_capped(given_text: str, stored: str) -> None:
    assert canonical(given_text) == stored


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1e03", "1e03"),
        ("12e-1", "1200e-3"),
        ("1e-5", "10e-6"),
        ("1e-10", "1e-9"),
        ("1e30", "1e30"),
    ],
)
def test_exponents_stay_exponents(given_text: str, stored: str) -> None:
    assert canonical(given_text) == stored


@pytest.mark.parametrize("text", ["1500Mi", "1025Ki", "007", "+1", "1.500", "5.", "1.Gi", "01Mi", "1000000Mi", "1e+3"])
def test_text_that_a_short_look_takes_for_canonical_is_kept(text: str) -> None:
    assert canonical(text) == text


@pytest.mark.parametrize(
    ("given_text", "stored"), [("100u", "1m"), ("1n", "1m"), ("0.0001", "1m"), ("1500m", "1500m"), ("2", "2")]
)
def test_resource_lists_round_up_to_thousandths(given_text: str, stored: str) -> None:
    assert canonical(given_text, rounds_to_milli=True) == stored


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", BAD_FORMAT),
        ("much", BAD_FORMAT),
        ("1 Mi", BAD_FORMAT),
        ("1_0", BAD_FORMAT),
        ("1.2.3", BAD_FORMAT),
        ("\u0663", BAD_FORMAT),
        ("1ki", BAD_SUFFIX),
        ("1i", BAD_SUFFIX),
        ("1e", BAD_SUFFIX),
    ],
)
def test_text_that_is_no_quantity_is_refused_in_the_servers_words(text: str, why: str) -> None:
    with pytest.raises(BadQuantity) as refused:
        canonical(text)
    assert str(refused.value) == why


@pytest.mark.parametrize("text", ["1e1000000", "1e-1000000", "1e99999999999", "1" * 5000])
def test_a_number_beyond_all_reason_is_refused_at_once(text: str) -> None:
    """A real server computes with such a number until somebody restarts it."""
    with pytest.raises(BadQuantity):
        canonical(text)


@given(st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,12})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_the_stored_form_is_stored_as_it_is(text: str) -> None:
    if text:
        once = canonical(text)
        assert canonical(once) == once


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        assert canonical(text)
    except BadQuantity as refused:
        assert str(refused)  # noqa: PT017
