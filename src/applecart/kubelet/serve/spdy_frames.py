"""The frames of SPDY/3.1, as far as a remote command needs them: API servers before 1.36 speak nothing else to an agent.

Pure: bytes in, frames out, and back. Header blocks are compressed in one go over the life of a connection, so every one of
them is read, also those that nobody asked for. A peer can neither make us hold more than one small block nor more than a piece
of its data, and thousands of frames that come at once hold up nobody else. What breaks the rules raises `BadFrame`, after which
a connection can only be closed.
"""

import asyncio
import struct
import zlib
from collections.abc import AsyncGenerator
from typing import Protocol

import msgspec

SYN_STREAM, SYN_REPLY, RST_STREAM, PING, HEADERS = 1, 2, 3, 6, 8
REFUSED_STREAM = 3
FIN = 1
STREAM_MASK = 0x7FFFFFFF
VERSION = 3
CONTROL_LIMIT_BYTES = 16 << 10  # of one control frame; the headers of a remote command are a few words
BLOCK_LIMIT_BYTES = 64 << 10  # of its headers, unpacked
MOST_HEADERS = 64  # a hundred bytes can be unpacked to thousands of empty ones, and each takes its time
PIECE_BYTES = 64 << 10  # a frame of data may have 16 MB; nobody waits for all of it

# What both sides' compression begins with, word for word as the protocol says it.
_COUNTED = (
    "options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|"
    "authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|content-location|"
    "content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|"
    "if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|proxy-authenticate|proxy-authorization|range|"
    "referer|retry-after|server|te|trailer|transfer-encoding|upgrade|user-agent|vary|via|warning|www-authenticate|method|get|"
    "status|200 OK|version|HTTP/1.1|url|public|set-cookie|keep-alive|origin"
)
_REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
    "401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 "
    "Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch"
    "charset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = b"".join(struct.pack(">I", len(word)) + word.encode() for word in _COUNTED.split("|")) + _REST.encode()


class BadFrame(Exception):
    """The peer does not speak SPDY/3.1."""


class Source(Protocol):
    async def read(self, n: int) -> bytes: ...
    async def readexactly(self, n: int) -> bytes: ...


class Opened(msgspec.Struct, frozen=True):
    stream: int
    headers: dict[str, str]
    is_last: bool


class Data(msgspec.Struct, frozen=True):
    stream: int
    data: bytes
    is_last: bool


class Reset(msgspec.Struct, frozen=True):
    stream: int


class Ping(msgspec.Struct, frozen=True):
    id: int


Frame = Opened | Data | Reset | Ping


async def read_frames(source: Source) -> AsyncGenerator[Frame, None]:
    """Until the peer closes; it ends in the middle of a frame as quietly as between two."""
    unpacker = zlib.decompressobj(zdict=DICTIONARY)
    while True:
        await asyncio.sleep(0)  # what has come already is read without a pause otherwise
        try:
            first, second = struct.unpack(">II", await source.readexactly(8))
            flags, length = second >> 24, second & 0xFFFFFF
            if not first >> 31:
                async for piece in _pieces(source, first, length, is_last=bool(flags & FIN)):
                    yield piece
                continue
            if first >> 16 & 0x7FFF != VERSION:
                raise BadFrame(f"a frame of SPDY version {first >> 16 & 0x7FFF}")
            if length > CONTROL_LIMIT_BYTES:
                raise BadFrame(f"a control frame of {length} bytes")
            frame = _control(first & 0xFFFF, flags, await source.readexactly(length), unpacker)
        except EOFError:
            return
        except (struct.error, zlib.error, UnicodeDecodeError) as error:
            raise BadFrame(f"a frame that cannot be read: {error}") from None
        if frame is not None:
            yield frame


async def _pieces(source: Source, stream: int, length: int, *, is_last: bool) -> AsyncGenerator[Data, None]:
    while length > PIECE_BYTES:
        piece = await source.readexactly(PIECE_BYTES)
        length -= len(piece)
        yield Data(stream, piece, is_last=False)
    yield Data(stream, await source.readexactly(length), is_last=is_last)


def _control(kind: int, flags: int, body: bytes, unpacker: "zlib._Decompress") -> Frame | None:
    """None: of no meaning for us."""
    if kind in (SYN_REPLY, HEADERS):
        _headers(body[4:], unpacker)
        return None
    if kind not in (SYN_STREAM, RST_STREAM, PING):
        return None
    (number,) = struct.unpack_from(">I", body)
    if kind == SYN_STREAM:
        return Opened(number & STREAM_MASK, _headers(body[10:], unpacker), is_last=bool(flags & FIN))
    return Ping(number) if kind == PING else Reset(number & STREAM_MASK)


def _headers(packed: bytes, unpacker: "zlib._Decompress") -> dict[str, str]:
    block = unpacker.decompress(packed, BLOCK_LIMIT_BYTES)
    if unpacker.unconsumed_tail:
        raise BadFrame(f"more than {BLOCK_LIMIT_BYTES} bytes of headers")
    words: list[str] = []
    at = 4
    (count,) = struct.unpack_from(">I", block)
    if count > MOST_HEADERS:
        raise BadFrame(f"{count} headers")
    while at < len(block) and len(words) < 2 * count:
        (length,) = struct.unpack_from(">I", block, at)
        at += 4 + length
        words.append(block[at - length : at].decode())
    if len(words) != 2 * count or at != len(block):
        raise BadFrame("headers that do not add up")
    return dict(zip(words[::2], words[1::2], strict=True))


class Replies:
    """That streams are taken, for one connection. Nothing is said about them, and even that is compressed."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(zdict=DICTIONARY)

    def to(self, stream: int) -> bytes:
        no_headers = self._packer.compress(struct.pack(">I", 0)) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        return control_frame(SYN_REPLY, struct.pack(">I", stream) + no_headers)


def refusal(stream: int) -> bytes:
    return control_frame(RST_STREAM, struct.pack(">II", stream, REFUSED_STREAM))


def ping(number: int) -> bytes:
    return control_frame(PING, struct.pack(">I", number))


def data(stream: int, sent: bytes, *, is_last: bool = False) -> bytes:
    """Of at most 16 MB."""
    return struct.pack(">II", stream, is_last << 24 | len(sent)) + sent


def control_frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">HHI", 0x8000 | VERSION, kind, len(body)) + body
