"""The bad network of the tests does exactly what its faults say."""

import asyncio
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.clock import run_virtual
from applecart.errors import DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.transport import Request, Response, Stream
from tests.kube.faults import (
    Cut,
    Ends,
    Fault,
    FaultyTransport,
    Hung,
    Late,
    Lost,
    Refused,
    Repeats,
    RepeatsLines,
    Says,
    Slow,
    Stalls,
    StreamFault,
    in_turn,
)
from tests.virtual_time import elapse

REQUEST = Request("GET", "/api/v1/pods", deadline_s=10.0)


class Lines:
    """A server that counts its calls and streams the chunks it was given."""

    def __init__(self, *chunks: bytes) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self.calls = 0
        self._chunks = list(chunks)

    async def send(self, request: Request) -> Response:
        self.calls += 1
        return Response(200, b"done")

    async def open(self, request: Request) -> Stream:
        self.calls += 1
        return self

    async def read(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    async def aclose(self) -> None: ...


async def streamed(fault: StreamFault | None, *chunks: bytes) -> tuple[bytes, str]:
    """What comes through, and how it ends."""
    stream = await FaultyTransport(Lines(*chunks), in_turn([fault])).open(REQUEST)
    received = b""
    try:
        async with asyncio.timeout(60):
            while chunk := await stream.read():
                received += chunk
    except Unreachable:
        return received, "broken"
    except TimeoutError:
        return received, "frozen"
    return received, "ended"


@pytest.mark.parametrize(
    ("fault", "error", "took_s", "reached"),
    [
        (Refused(), NeverSent, 0, 0),
        (Lost(), Unreachable, 0, 1),
        (Cut(5), Unreachable, 0, 1),
        (Hung(), DeadlineExceeded, 10, 0),
        (Stalls(), DeadlineExceeded, 10, 0),
        (Slow(99), DeadlineExceeded, 10, 0),
        (Late(99), DeadlineExceeded, 10, 1),
    ],
    ids=repr,
)
async def test_a_call_fails_as_its_fault_says(fault: Fault, error: type[Exception], took_s: float, reached: int) -> None:
    server = Lines()
    network = FaultyTransport(server, in_turn([fault]))
    started_s = asyncio.get_running_loop().time()
    with pytest.raises(error) as caught:
        await network.send(REQUEST)
    assert type(caught.value) is error
    assert asyncio.get_running_loop().time() - started_s == pytest.approx(took_s)
    assert server.calls == reached
    assert (await network.send(REQUEST)).body == b"done"


@pytest.mark.parametrize(("fault", "reached_at_once"), [(Slow(3), 0), (Late(3), 1)], ids=repr)
async def test_what_takes_a_while_is_the_request_or_its_answer(fault: Fault, reached_at_once: int) -> None:
    server = Lines()
    call = asyncio.create_task(FaultyTransport(server, in_turn([fault])).send(REQUEST))
    await elapse(2.9)
    assert server.calls == reached_at_once
    await elapse(0.2)
    assert call.result().body == b"done"
    assert server.calls == 1


async def test_a_status_comes_from_the_network_and_not_from_the_server() -> None:
    server = Lines()
    response = await FaultyTransport(server, in_turn([Says(429, 7)])).send(REQUEST)
    assert (response.status, response.headers["retry-after"], server.calls) == (429, "7", 0)


pieces = st.lists(st.binary(min_size=1, max_size=20), max_size=6)


@given(pieces, st.integers(0, 60))
def test_a_stream_ends_after_its_bytes_in_its_way(chunks: list[bytes], after_bytes: int) -> None:
    whole = b"".join(chunks)
    reaches = after_bytes <= len(whole)
    for fault, way in ((Cut(after_bytes), "broken"), (Ends(after_bytes), "ended"), (Stalls(after_bytes), "frozen")):
        received, ended = run_virtual(streamed(fault, *chunks))
        assert received == whole[:after_bytes]
        assert ended == (way if reaches else "ended")


@given(pieces, st.integers(0, 60), st.integers(1, 10))
def test_repeated_bytes_come_twice(chunks: list[bytes], after_bytes: int, count_bytes: int) -> None:
    whole = b"".join(chunks)
    received, _ = run_virtual(streamed(Repeats(after_bytes, count_bytes), *chunks))
    before = whole[:after_bytes]
    again = before[-count_bytes:] if after_bytes <= len(whole) else b""
    assert received == before + again + whole[after_bytes:]


async def test_repeated_lines_come_twice_and_whole() -> None:
    received, _ = await streamed(RepeatsLines(4, count_lines=2), b"1\n2\n3", b"3\n4", b"4\n")
    assert received.split() == [b"1", b"2", b"33", b"2", b"33", b"44"]


async def test_open_streams_can_be_broken_and_frozen_from_outside() -> None:
    server = Lines()
    network = FaultyTransport(server)
    for strike, error in ((network.sever, Unreachable), (network.freeze, TimeoutError)):
        stream = await network.open(REQUEST)
        strike()
        with pytest.raises(error):
            async with asyncio.timeout(3600):
                await stream.read()
