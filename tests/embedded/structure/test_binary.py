"""Base64 of byte fields. The positions are those that a real API server names."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.embedded.structure.binary import BadBase64, canonical


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [("", ""), ("YQ==", "YQ=="), ("YQ==\n", "YQ=="), ("Y\r\nQ=\n=", "YQ=="), ("YR==", "YQ=="), ("AAEC", "AAEC")],
)
def test_bytes_are_stored_on_one_line(given_text: str, stored: str) -> None:
    assert canonical(given_text) == stored


@pytest.mark.parametrize(
    ("text", "at"),
    [("!!", 0), ("YQ", 0), ("YQ=", 3), ("YQ=x", 2), ("YQ==YQ==", 4), ("=YQ", 0), ("hunter2!", 7), ("YWE", 0), ("YWFhY", 4)],
)
def test_a_fault_is_told_by_its_place_and_not_by_its_text(text: str, at: int) -> None:
    with pytest.raises(BadBase64) as refused:
        canonical(text)
    assert str(refused.value) == f"illegal base64 data at input byte {at}"


@given(st.binary(max_size=40))
def test_what_was_encoded_is_stored_as_it_is(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical(text) == text


@given(st.text(max_size=12) | st.from_regex(r"[A-Za-z0-9+/=\n]{0,12}"))
def test_any_text_is_base64_or_refused(text: str) -> None:
    try:
        stored = canonical(text)
    except BadBase64:
        return
    assert base64.b64decode(stored, validate=True) is not None
