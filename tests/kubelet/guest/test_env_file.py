r"""The environment file gives every value back, and guests that know only `\n` and `\r` read what they read before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.errors import BadInput
from applecart.kubelet.guest.env_file import env_file, is_variable_name, read_env_file
from applecart.secrets import Secret

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
BACKSLASHES = st.text("\\nr\n\rx=", max_size=20)


def old_guest(line: str) -> str:
    """How guest images in the field decode a value."""
    return line.replace("\\n", "\n").replace("\\r", "\r")


def old_guest_reads(data: bytes) -> dict[str, str]:
    lines = (line.partition("=") for line in data.decode().split("\n") if line)
    return {name: old_guest(value) for name, _, value in lines}


@given(st.dictionaries(NAMES, TEXTS | BACKSLASHES, max_size=6))
def test_every_value_is_read_back_exactly(values: dict[str, str]) -> None:
    r"""Weakness 35: a literal backslash and n in a secret came out of the guest as a line break."""
    assert read_env_file(env_file(values)) == values


@given(st.dictionaries(NAMES, TEXTS.filter(lambda text: "\\" not in text), max_size=6))
def test_an_old_guest_reads_every_value_without_backslashes(values: dict[str, str]) -> None:
    assert old_guest_reads(env_file(values)) == values


def test_an_old_guest_still_reads_a_backslash_that_begins_no_escape() -> None:
    values = {"PATTERN": r"^\d+\.\w$", "WINDOWS": "C:\\Users", "END": "ends with \\"}
    assert old_guest_reads(env_file(values)) == values
    assert env_file({"PATTERN": r"\d"}) == b"PATTERN=\\d\n"


def test_lines_are_sorted_and_hold_one_variable_each() -> None:
    assert env_file({"B": "two\r\nlines", "A": "x=y", "C": ""}) == b"A=x=y\nB=two\\r\\nlines\nC=\n"
    assert env_file({}) == b""


def test_a_secret_is_written_in_clear_text() -> None:
    assert env_file({"TOKEN": Secret("hunter2-hunter2")}) == b"TOKEN=hunter2-hunter2\n"


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "end\udfff"])
def test_a_value_that_no_guest_can_read_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(BadInput, match="variable TOKEN") as caught:
        env_file({"TOKEN": Secret("hunter2-hunter2" + value)})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("A", True),
        ("_a9", True),
        ("a.b-c", True),
        ("9A", False),
        ("", False),
        ("A B", False),
        ("A=B", False),
        ("Ä", False),
        ("A\n", False),
    ],
)
def test_a_name_is_one_that_a_guest_can_set(name: str, is_good: bool) -> None:
    assert is_variable_name(name) is is_good
    if not is_good:
        with pytest.raises(BadInput, match="no name of a variable"):
            env_file({name: "x"})


@given(st.binary(max_size=60))
def test_whatever_bytes_are_read_never_end_in_a_traceback(data: bytes) -> None:
    assert all("\n" not in name for name in read_env_file(data))
