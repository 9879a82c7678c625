"""SPDY/3.1 on the wire, and what must not pass for it."""

import asyncio
import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applecart.kubelet.serve.spdy_frames import (
    BLOCK_LIMIT_BYTES,
    CONTROL_LIMIT_BYTES,
    DICTIONARY,
    HEADERS,
    MOST_HEADERS,
    PIECE_BYTES,
    SYN_STREAM,
    BadFrame,
    Data,
    Frame,
    Opened,
    Ping,
    Replies,
    Reset,
    control_frame,
    data,
    ping,
    read_frames,
    refusal,
)
from tests.kubelet.serve.spdy_client import opening

SETTINGS, GOAWAY, WINDOW_UPDATE = 4, 7, 9


async def read(*wire: bytes) -> list[Frame]:
    source = asyncio.StreamReader()
    source.feed_data(b"".join(wire))
    source.feed_eof()
    return [frame async for frame in read_frames(source)]


def test_the_dictionary_is_the_one_of_the_protocol() -> None:
    """Its length and checksum are those that every implementation names."""
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


async def test_frames_of_every_kind_are_read() -> None:
    packer = zlib.compressobj(zdict=DICTIONARY)
    got = await read(
        opening(packer, 1, {"streamtype": "error"}),
        opening(packer, 3, {"streamtype": "stdin", "port": "1"}, flags=1),
        data(3, b"hello"),
        data(3, b"", is_last=True),
        ping(7),
        refusal(3),
    )
    assert got == [
        Opened(1, {"streamtype": "error"}, is_last=False),
        Opened(3, {"streamtype": "stdin", "port": "1"}, is_last=True),
        Data(3, b"hello", is_last=False),
        Data(3, b"", is_last=True),
        Ping(7),
        Reset(3),
    ]


async def test_headers_that_nobody_asked_for_are_read_because_the_next_ones_build_on_them() -> None:
    packer = zlib.compressobj(zdict=DICTIONARY)
    first, second = (opening(packer, 1, {"streamtype": "a" * 40}) for _ in range(2))
    extra = control_frame(HEADERS, first[8:12] + first[18:])
    assert await read(extra, second) == [Opened(1, {"streamtype": "a" * 40}, is_last=False)]


@pytest.mark.parametrize("kind", [SETTINGS, GOAWAY, WINDOW_UPDATE, 5, 99])
async def test_what_means_nothing_to_us_is_passed_over(kind: int) -> None:
    assert await read(control_frame(kind, b"12345678"), ping(1)) == [Ping(1)]


async def test_a_large_frame_comes_in_pieces_and_only_the_last_is_the_last() -> None:
    sent = bytes(range(256)) * (PIECE_BYTES // 100)
    got = [frame for frame in await read(data(1, sent, is_last=True)) if isinstance(frame, Data)]
    assert b"".join(piece.data for piece in got) == sent
    assert max(len(piece.data) for piece in got) <= PIECE_BYTES
    assert [piece.is_last for piece in got] == [False] * (len(got) - 1) + [True]


async def test_replies_are_read_by_who_shares_the_compression() -> None:
    replies = Replies()
    unpacker = zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3, 5):
        frame = replies.to(stream)
        assert struct.unpack(">HHII", frame[:12]) == (0x8003, 2, len(frame) - 8, stream)
        assert unpacker.decompress(frame[12:]) == b"\0\0\0\0"


def packed(block: bytes) -> bytes:
    packer = zlib.compressobj(zdict=DICTIONARY)
    return struct.pack(">IIH", 1, 0, 0) + packer.compress(block) + packer.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    "wire",
    [
        b"GET / HTTP/1.1\r\n\r\n".replace(b"G", b"\x80", 1),
        struct.pack(">HHI", 0x8002, 6, 4) + b"\0\0\0\1",
        struct.pack(">HHI", 0x8003, SYN_STREAM, CONTROL_LIMIT_BYTES + 1),
        control_frame(SYN_STREAM, b"abc"),
        control_frame(SYN_STREAM, b"\0" * 10 + b"not compressed"),
        control_frame(SYN_STREAM, packed(struct.pack(">I", 1))),
        control_frame(SYN_STREAM, packed(struct.pack(">II", 1, 1 << 30) + b"a")),
        control_frame(SYN_STREAM, packed(struct.pack(">II", 1, 1) + b"\xff" + struct.pack(">I", 0))),
        control_frame(SYN_STREAM, packed(b"\0" * (BLOCK_LIMIT_BYTES + 1))),
        control_frame(SYN_STREAM, packed(struct.pack(">I", MOST_HEADERS + 1) + bytes(8 * (MOST_HEADERS + 1)))),
        control_frame(6, b""),
    ],
    ids=["http", "version", "too long", "short", "no zlib", "missing", "too little", "no utf-8", "bomb", "many", "empty ping"],
)
async def test_what_breaks_the_rules_is_a_bad_frame(wire: bytes) -> None:
    with pytest.raises(BadFrame):
        await read(wire, b"\0" * 100)


async def test_frames_that_come_at_once_hold_up_nobody() -> None:
    """A client sent ten thousand pings in one go, and the heartbeat of the node waited for all the answers."""
    source = asyncio.StreamReader()
    source.feed_data(ping(1) * 100 + control_frame(SETTINGS, b"12345678") * 100 + data(1, b"x") * 100)
    source.feed_eof()
    turns = 0

    async def heartbeat() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beating = asyncio.create_task(heartbeat())
    assert len([frame async for frame in read_frames(source)]) == 200
    beating.cancel()
    assert turns >= 300


@given(st.binary(max_size=200), st.integers(0, 9), st.binary(max_size=100))
async def test_nothing_that_a_peer_sends_is_more_than_a_bad_frame(junk: bytes, kind: int, body: bytes) -> None:
    for wire in (junk, control_frame(kind, body) + junk):
        with suppress(BadFrame):
            await read(wire)
