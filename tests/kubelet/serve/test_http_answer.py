"""Answers of guests, in one piece and in many, good and bad."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.http_answer import (
    LONGEST_HEAD_BYTES,
    MOST_CHUNK_LINES,
    MOST_HEADERS,
    MOST_INTERIM,
    AnswerReader,
    BadAnswer,
)

LIMIT = 1000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
COUNTED = HEAD + b"Content-Length: 5\r\n\r\nhello"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
CLOSED = HEAD + b"\r\nhello"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + COUNTED


def read(answer: bytes, step: int = 1 << 20, limit: int = LIMIT) -> AnswerReader:
    reader = AnswerReader(limit)
    for start in range(0, len(answer), step):
        reader.feed(answer[start : start + step])
    if not reader.is_done:
        reader.end()
    return reader


@pytest.mark.parametrize("answer", [COUNTED, CHUNKED, CLOSED, CONTINUED])
@pytest.mark.parametrize("step", [1, 2, 7, 1 << 20])
def test_a_body_is_read_whoever_says_where_it_ends(answer: bytes, step: int) -> None:
    reader = read(answer, step)
    assert (reader.status, reader.headers["content-type"], reader.body) == (200, "text/plain", b"hello")


@pytest.mark.parametrize("answer", [COUNTED, CHUNKED, CLOSED])
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_body_is_cut_at_the_limit_and_nothing_is_read_beyond(answer: bytes, step: int) -> None:
    reader = read(answer, step, limit=4)
    assert (reader.body, reader.is_done) == (b"hell", True)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204\r\n\r\n", b""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", b""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b""),
    ],
)
def test_an_answer_may_have_no_body(answer: bytes, body: bytes) -> None:
    reader = AnswerReader(LIMIT)
    reader.feed(answer)
    assert (reader.is_done, reader.body) == (True, body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.0\r\n\r\n",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 9\r\n\r\nhello",
        HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 5000,
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * LONGEST_HEAD_BYTES,
        b"HTTP/1.1 000 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * (MOST_HEADERS + 1) + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (MOST_INTERIM + 1) + COUNTED,
    ],
)
@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_what_is_no_answer_is_a_sentence(answer: bytes, step: int) -> None:
    with pytest.raises(BadAnswer):
        read(answer, step)


@given(st.binary(max_size=300), st.sampled_from([b"", HEAD, HEAD + b"Transfer-Encoding: chunked\r\n\r\n"]), st.integers(1, 300))
def test_no_bytes_are_too_odd(data: bytes, before: bytes, step: int) -> None:
    try:
        reader = read(before + data, step)
    except BadAnswer:
        return
    assert len(reader.body) <= LIMIT
    assert 200 <= reader.status <= 999


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 50))
def test_chunks_come_out_as_they_went_in(chunks: list[bytes], step: int) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    answer = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"
    assert read(answer, step).body == b"".join(chunks)


CONTROL = [bytes([code]) for code in (*range(9), *range(10, 32), 127)]


@pytest.mark.parametrize("control", CONTROL)
def test_a_header_with_a_control_character_is_refused(control: bytes) -> None:
    """A guest's Content-Type with a bare newline was passed on; the server of the metrics refused it with a traceback."""
    for field in (b"Content-Type: text" + control + b"X: 1", b"Con" + control + b"tent: x"):
        with pytest.raises(BadAnswer, match="no header"):
            read(b"HTTP/1.1 200 OK\r\n" + field + b"\r\nContent-Length: 2\r\n\r\nhi")


def test_a_header_may_hold_tabs_and_letters_of_other_languages() -> None:
    reader = read(b"HTTP/1.1 200 OK\r\nX-Odd: \ta\tb \xe9\r\nContent-Length: 0\r\n\r\n")
    assert reader.headers["x-odd"] == "a\tb \xe9"


CHUNKED_HEAD = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "endless",
    [
        CHUNKED_HEAD + b"1\r\nx\r\n" * MOST_CHUNK_LINES,
        CHUNKED_HEAD + b"0\r\n" + b"Trailer: x\r\n" * (MOST_CHUNK_LINES + 1),
    ],
    ids=["chunks", "trailers"],
)
@pytest.mark.parametrize("step", [1000, 1 << 20])
def test_a_guest_cannot_keep_its_host_busy_with_crumbs(endless: bytes, step: int) -> None:
    """A guest that sent its metrics byte by byte, each a chunk of its own, kept the agent busy until the deadline."""
    with pytest.raises(BadAnswer, match="crumbs"):
        read(endless, step, limit=1 << 20)


def test_a_long_answer_in_ordinary_chunks_is_read() -> None:
    line = b'jobs_total{queue="default"} 1\n'
    chunk = b"%x\r\n%b\r\n" % (len(line), line)
    answer = CHUNKED_HEAD + chunk * MOST_CHUNK_LINES + b"0\r\n\r\n"
    assert read(answer, 1 << 16, limit=1 << 20).body == line * MOST_CHUNK_LINES
