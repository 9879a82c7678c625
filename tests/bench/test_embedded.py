"""The parts of the API rows that decide something: when an answer is complete, what is sent, how old an event is."""

import json
import ssl
import time
from collections.abc import Iterator
from typing import Any

import pytest

from bench.embedded_answers import answer_size, status_of
from bench.embedded_load import at
from bench.embedded_requests import maker, micro_time, new_pod, render, standing_lease, standing_pod
from bench.embedded_rows import LOADS, NAMES, Results, rate_row, rows, tail_row
from bench.embedded_watchers import Watcher

PLAIN = b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"kind":"P"'
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{"kind":"P"\r\n1\r\n}\r\n0\r\n\r\n'


@pytest.mark.parametrize("answer", [PLAIN, CHUNKED, PLAIN.replace(b"Content-Length", b"content-length")])
def test_an_answer_is_complete_with_its_last_byte_and_not_before(answer: bytes) -> None:
    assert [answer_size(answer[:size]) for size in range(len(answer))] == [0] * len(answer)
    assert answer_size(answer) == len(answer)


def test_the_status_of_an_answer_is_read_from_its_first_line() -> None:
    assert status_of(PLAIN) == 201
    assert status_of(bytearray(CHUNKED)) == 200


def body_of(request: bytes) -> Any:
    return json.loads(request.partition(b"\r\n\r\n")[2])


@pytest.mark.parametrize("load", LOADS)
def test_a_request_is_whole_and_says_how_long_it_is(load: str) -> None:
    head, _, body = maker(load, "run")(3, 7).partition(b"\r\n\r\n")
    said = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    assert (int(said[0].split()[1]) if said else 0) == len(body)
    assert b"bench" in head


def test_created_pods_have_names_of_their_own_and_the_size_of_a_runner() -> None:
    make = maker("create", "run-1")
    requests = [make(connection, number) for connection in range(3) for number in range(3)]
    assert len({body_of(request)["metadata"]["name"] for request in requests}) == 9
    assert all(2_300 < len(request) < 3_300 for request in requests)
    assert "status" not in new_pod("a", 1)


def test_every_status_patch_and_renewal_of_a_connection_changes_its_object() -> None:
    for load in ("status", "lease"):
        make = maker(load, "run")
        assert len({make(1, number) for number in range(100)}) == 100
    assert standing_pod(4)["metadata"]["name"] == standing_lease(4)["metadata"]["name"] == "standing-4"
    assert micro_time(1) == "2026-01-01T00:00:01.000000Z"


def test_a_request_without_a_body_has_no_content() -> None:
    assert render("GET", "/x").endswith(b"\r\n\r\n")
    assert b"Content" not in render("GET", "/x")


@pytest.mark.parametrize(("share", "value"), [(0.0, 0.0), (0.5, 50.0), (0.99, 99.0), (1.0, 99.0)])
def test_a_percentile_is_one_of_the_measured_values(share: float, value: float) -> None:
    assert at([float(number) for number in range(100)], share) == value
    assert at([], share) == float("inf")


class Pieces:
    """A socket that hands out what it was given, piece by piece, and then has nothing for now."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)

    def recv(self, size: int) -> bytes:
        for piece in self._pieces:
            return piece
        raise ssl.SSLWantReadError


def test_the_age_of_an_event_is_told_once_its_line_is_whole() -> None:
    now = time.monotonic_ns()
    line = b'{"type":"MODIFIED","object":{"metadata":{"annotations":{"bench/sent":"%d"}}}}\n' % (now - 5_000_000)
    first = Watcher(Pieces(line[:40]))  # type: ignore[arg-type]
    assert first.ages_ns() == []
    first.socket = Pieces(line[40:] + line)  # type: ignore[assignment]
    ages = first.ages_ns()
    assert len(ages) == 2
    assert all(age >= 5_000_000 for age in ages)


def test_every_row_that_is_announced_is_judged() -> None:
    results = Results()
    for name in NAMES:
        for side in ("ours", "peer"):
            results.add(name, side, 2.0)
    judged = rows(results)
    assert sorted(row.name for row in judged) == sorted(NAMES)
    assert all(name.startswith("api ") for name in NAMES)
    bars = {row.name: str(row.bar) for row in judged}
    assert all(bars[rate_row(load)] == ">= 1.5" and bars[tail_row(load)] == "<= 1" for load in LOADS)
