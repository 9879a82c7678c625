"""The protobuf wire format: numbered fields out of bytes.

Knows nothing of types. Every read is bounded by the bytes that are there; what does not add up is Malformed, in the words of
the generated Go code.
"""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_MAX_VARINT_BYTES = 10  # 64 bits, seven at a time


class Malformed(ValueError):
    """Bytes that are no message; the message is the server's."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        if at >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & (2**64 - 1), at
    raise Malformed("proto: integer overflow")


def members(data: bytes, message: str) -> Iterator[tuple[int, int, int | bytes]]:
    """Every field as number, wire type and value. `message` names the type in refusals."""
    at, size = 0, len(data)
    while at < size:
        tag = data[at]  # most tags and lengths are one byte: no call for those
        tag, at = (tag, at + 1) if tag < 0x80 else varint(data, at)
        number, wire_type = (tag >> 3) & 0x1FFFFFFF, tag & 7
        if wire_type == 4:
            raise Malformed(f"proto: {message}: wiretype end group for non-group")
        if number == 0:
            raise Malformed(f"proto: {message}: illegal tag {number} (wire type {tag})")
        value: int | bytes
        if wire_type == VARINT:
            value, at = (data[at], at + 1) if at < size and data[at] < 0x80 else varint(data, at)
        elif wire_type == BYTES:
            length, start = (data[at], at + 1) if at < size and data[at] < 0x80 else varint(data, at)
            if length >= 2**63:
                raise Malformed("proto: negative length found during unmarshaling")
            at = start + length
            if at > size:
                raise Malformed("unexpected EOF")
            value = data[start:at]
        elif wire_type in (FIXED64, FIXED32):
            width = 8 if wire_type == FIXED64 else 4
            if at + width > size:
                raise Malformed("unexpected EOF")
            value = int.from_bytes(data[at : at + width], "little")
            at += width
        else:
            raise Malformed(f"proto: illegal wireType {wire_type}")
        yield number, wire_type, value


def signed(value: int, bits: int) -> int:
    """Two's complement of the lowest bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("proto: string field contains invalid UTF-8") from error
