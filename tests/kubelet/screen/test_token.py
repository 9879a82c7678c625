import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.screen.token import is_opened_by, read_hash, token_hash

HASH = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"  # of "abc", the standard's own example


def test_the_hash_is_base64url_of_sha_256_without_padding() -> None:
    assert token_hash(b"abc") == HASH


@pytest.mark.parametrize("text", [HASH, f"{HASH}=", f"  {HASH}\n"])
def test_a_hash_is_read_as_people_and_programs_write_it(text: str) -> None:
    assert read_hash(text) == HASH


@pytest.mark.parametrize("text", ["", " ", "abc", HASH[:-1], f"{HASH}A", f"{HASH}==", HASH.replace("-", "+"), "é" * 43])
def test_what_is_no_hash_opens_nothing(text: str) -> None:
    assert read_hash(text) is None


@pytest.mark.parametrize(
    ("line", "opens"),
    [
        (b"tuist-vnc-token abc", True),
        (b"tuist-vnc-token abc\r", True),
        (b"tuist-vnc-token abcd", False),
        (b"tuist-vnc-token  abc", False),
        (b"tuist-vnc-token ab c", False),
        (b"tuist-vnc-token", False),
        (b"tuist-vnc-token ", False),
        (b"TUIST-VNC-TOKEN abc", False),
        (b"abc", False),
        (b"RFB 003.008", False),
        (b"", False),
    ],
)
def test_only_the_whole_token_after_its_word_opens(line: bytes, opens: bool) -> None:
    assert is_opened_by(line, HASH) is opens


def test_an_empty_token_opens_nothing_although_it_has_a_hash() -> None:
    assert not is_opened_by(b"tuist-vnc-token ", token_hash(b""))


@given(line=st.binary(max_size=600), expected=st.text(max_size=60))
def test_no_line_opens_a_hash_that_is_not_its_own(line: bytes, expected: str) -> None:
    opens = is_opened_by(line, expected)
    assert not opens or expected == token_hash(line.removesuffix(b"\r").removeprefix(b"tuist-vnc-token "))
