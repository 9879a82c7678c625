"""Cutting, choosing and cleaning of lines."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.log_lines import (
    BLOCK_BYTES,
    LONGEST_LINE_BYTES,
    LineCutter,
    cleaned,
    last_lines_start,
    stamped,
    starts,
)
from applecart.secrets import Secret
from tests.secret_guard import SecretGuard


def read_of(data: bytes):  # type: ignore[no-untyped-def]
    return lambda start, count: data[start : start + count]


@given(st.lists(st.lists(st.sampled_from([b"a", b"\xff", b"\r", b"\n"])).map(b"".join), max_size=20))
def test_lines_are_the_same_however_they_come(pieces: list[bytes]) -> None:
    cutter = LineCutter()
    lines = [line for piece in pieces for line in cutter.feed(piece)] + cutter.rest()
    whole = b"".join(pieces)
    assert b"".join(lines) == (whole if whole.endswith(b"\n") or not whole else whole + b"\n")
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)


@given(st.integers(1, 5 * LONGEST_LINE_BYTES), st.integers(1, BLOCK_BYTES))
def test_a_line_that_never_ends_is_held_in_bounded_memory(length: int, step: int) -> None:
    cutter = LineCutter()
    shown = 0
    for start in range(0, length, max(step, length // 20)):
        for line in cutter.feed(b"x" * min(max(step, length // 20), length - start)):
            assert len(line) <= LONGEST_LINE_BYTES + 1
            shown += len(line) - 1
    assert shown + sum(len(line) - 1 for line in cutter.rest()) == length


@pytest.mark.parametrize("before", [0, LONGEST_LINE_BYTES - 10, LONGEST_LINE_BYTES, 2 * LONGEST_LINE_BYTES - 5])
def test_a_secret_is_masked_wherever_a_long_line_is_cut(before: int, secret_guard: SecretGuard) -> None:
    secret = Secret("s3cr3t-of-a-registry-login")
    line = b"x" * before + secret.reveal().encode() + b"y" * 3 * LONGEST_LINE_BYTES
    cutter = LineCutter()
    shown = [piece for start in range(0, len(line), BLOCK_BYTES) for piece in cutter.feed(line[start : start + BLOCK_BYTES])]
    text = b"".join(piece[:-1] for piece in (*shown, *cutter.rest()))
    assert text == b"x" * before + b"***" + b"y" * 3 * LONGEST_LINE_BYTES


def test_a_secret_printed_again_and_again_without_an_end_of_line_never_shows_half_of_itself(secret_guard: SecretGuard) -> None:
    """I9: masks made the line shorter than the cut, and it was shown up to where reading had come, half a secret."""
    secret = Secret("s3cr3t-" + "0123456789abcdef" * 60)
    printed = (secret.reveal().encode() * 400)[: -len(secret.reveal()) // 2]
    cutter = LineCutter()
    shown = [
        piece for start in range(0, len(printed), BLOCK_BYTES) for piece in cutter.feed(printed[start : start + BLOCK_BYTES])
    ]
    assert b"".join(shown).replace(b"*", b"").replace(b"\n", b"") == b""
    with secret_guard.looking_away():
        assert len(b"".join(cutter.rest())) < len(secret.reveal())  # what really ends in the middle of a secret shows it


def test_half_a_line_at_the_beginning_is_dropped() -> None:
    cutter = LineCutter()
    cutter.begin_inside_a_line()
    assert cutter.feed(b"et-half") == []
    assert cutter.feed(b"still\nwhole\nbegun") == [b"whole\n"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain", b"plain"),
        (
            b"VNC server is running at vnc://:deep-blue-sea-fox@127.0.0.1:5901",
            b"VNC server is running at vnc://:REDACTED@127.0.0.1:5901",
        ),
        (b"vnc://u:p@w@host:1 and a@b", b"vnc://:REDACTED@host:1 and a@b"),
        (b"vnc://host:5901", b"vnc://host:5901"),
        (b"\xff\xfe not text", b"\xff\xfe not text"),
    ],
)
def test_passwords_of_screens_are_not_shown(line: bytes, shown: bytes) -> None:
    assert cleaned(line) == shown


@pytest.mark.timeout(10)
def test_a_line_full_of_addresses_of_screens_is_cleaned_in_no_time() -> None:
    """A guest that printed `vnc://` on and on held up the heartbeat of its node for minutes."""
    line = b"vnc://" * 100_000
    assert cleaned(line) == line


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    key = Secret('{\n  "type": "service_account",\n  "client_secret": "GOCSPX-hunter2hunter2"\n}\n')
    shown = LineCutter().feed(b"$ cat credentials.json\n" + key.reveal().encode())
    assert b"".join(shown) == b"$ cat credentials.json\n{\n  ***,\n  ***\n}\n"


def test_a_time_is_written_as_a_kubelet_writes_it() -> None:
    at = datetime(2026, 3, 1, 12, 0, 0, 5, tzinfo=UTC)
    assert stamped(b"a\n", at) == b"2026-03-01T12:00:00.000005000Z a\n"


@pytest.mark.parametrize(
    ("data", "lines", "expected"),
    [
        (b"", 3, (0, 0)),
        (b"a\nb\nc\n", 0, (6, 0)),
        (b"a\nb\nc\n", 1, (4, 1)),
        (b"a\nb\nc\n", 3, (0, 3)),
        (b"a\nb\nc\n", 9, (0, 3)),
        (b"a\nb\nc", 1, (4, 1)),
        (b"\n\n\n", 2, (1, 2)),
    ],
)
def test_the_last_lines_are_found_from_the_end(data: bytes, lines: int, expected: tuple[int, int]) -> None:
    assert last_lines_start(read_of(data), 0, len(data), lines) == expected


@given(st.lists(st.sampled_from([b"", b"a", b"b" * (BLOCK_BYTES // 2), b"c" * BLOCK_BYTES]), max_size=8), st.integers(0, 10))
def test_the_last_lines_are_those_that_splitting_would_give(texts: list[bytes], lines: int) -> None:
    data = b"".join(text + b"\n" for text in texts)
    start, found = last_lines_start(read_of(data), 0, len(data), lines)
    wanted = data.splitlines(keepends=True)[max(0, len(texts) - lines) :]
    assert (data[start:], found) == (b"".join(wanted), len(wanted))


@pytest.mark.parametrize(
    ("first", "second", "tail", "wanted", "expected"),
    [
        (b"a\nb\n", b"c\nd\n", None, (True, True), b"a\nb\nc\nd\n"),
        (b"a\nb\n", b"c\nd\n", 3, (True, True), b"b\nc\nd\n"),
        (b"a\nb\n", b"c\nd\n", 2, (True, True), b"c\nd\n"),
        (b"a\nb\n", b"c\nd\n", 1, (True, True), b"d\n"),
        (b"a\nb\n", b"c\nd\n", 9, (True, True), b"a\nb\nc\nd\n"),
        (b"a\nb\n", b"c\nd\n", None, (False, True), b"c\nd\n"),
        (b"a\nb\n", b"c\nd\n", 3, (False, True), b"c\nd\n"),
        (b"a\nb\n", b"c\nd\n", 1, (True, False), b"b\n"),
    ],
)
def test_two_logs_are_one(first: bytes, second: bytes, tail: int | None, wanted: tuple[bool, bool], expected: bytes) -> None:
    begins = starts([(read_of(log), 0, len(log)) for log in (first, second)], tail, wanted)
    assert first[begins[0] :] + second[begins[1] :] == expected
