"""String formats (most are proven by the recorded answers)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.schema.formats import CHECKS, LONGEST, checked_format, fits_format


@pytest.mark.parametrize(
    ("types", "name", "checked"),
    [
        (("string",), "date-time", "date-time"),
        (("string",), "int32", ""),
        (("integer",), "int32", "int32"),
        (("integer",), "date", ""),
        (("number",), "double", "double"),
        (("integer", "string"), "ipv4", "ipv4"),
        ((), "uuid", "uuid"),
        (("boolean",), "uuid", ""),
        (("string",), "made-up", ""),
    ],
)
def test_a_format_is_checked_only_where_the_real_server_does(types: tuple[str, ...], name: str, checked: str) -> None:
    assert checked_format(types, name) == checked


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("isbn10", "0321751043", "0321751044"),
        ("isbn13", "978-0321751041", "978-0321751042"),
        ("isbn", "0321751043", "1"),
        ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("ssn", "123-45-6789", "123-45-678"),
        ("rgbcolor", "rgb(255, 0, 1)", "rgb(256,0,1)"),
        ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
        ("uuid3", "123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-42d3-a456-426614174000"),
        ("uuid5", "123e4567-e89b-52d3-a456-426614174000", "123e4567-e89b-52d3-c456-426614174000"),
        ("mac", "0123.4567.89ab", "0123.4567"),
        ("hostname", "münchen.de", "a..b"),
    ],
)
def test_rare_formats_are_told_apart(name: str, good: str, bad: str) -> None:
    assert fits_format(name, good)
    assert not fits_format(name, bad)


@given(st.sampled_from(sorted(CHECKS)), st.text(max_size=30))
def test_no_text_breaks_a_format(name: str, text: str) -> None:
    assert fits_format(name, text) in (True, False)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("piece", ["1", "1 ", "a.", "(", "::", "1h"])
def test_a_text_longer_than_anything_real_fits_no_format_that_is_short(name: str, piece: str) -> None:
    """A duration of 20,000 digits once took 18 s: every digit began another try."""
    fits_format(name, piece * LONGEST)
    assert fits_format(name, f"{piece * 100_000}!") is (name == "password")
