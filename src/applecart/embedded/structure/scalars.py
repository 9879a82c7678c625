"""Values with a stored form of their own, base64 and timestamps, read with the refusals of a Go server.

A refusal of base64 tells the position of the fault and never the text: byte fields hold secrets.
"""

import base64
import binascii
import re
from datetime import UTC, datetime, timedelta
from typing import NoReturn

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_NEWLINES = frozenset(b"\r\n")  # allowed anywhere
_PAD = ord("=")


class BadBase64(ValueError):
    """Text that is no base64; the message is the server's."""


def canonical(text: str) -> str:
    """The same bytes in the form the API stores: padded, on one line."""
    raw = text.encode("utf-8", "surrogatepass")
    if (fault := _fault(raw)) is not None:
        raise BadBase64(f"illegal base64 data at input byte {fault}")
    return encoded(binascii.a2b_base64(raw))


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _fault(raw: bytes) -> int | None:
    """Where the text stops being base64, counted as Go counts; None if it is all good."""
    at, filled, size = 0, 0, len(raw)
    while at < size:
        char = raw[at]
        at += 1
        if char in _NEWLINES:
            continue
        if char in _ALPHABET:
            filled = (filled + 1) % 4
        elif char == _PAD and filled >= 2:
            return _fault_in_padding(raw, at, filled)
        else:
            return at - 1
    return at - filled if filled else None


def _fault_in_padding(raw: bytes, at: int, filled: int) -> int | None:
    """After the first pad: a second one where only two characters came before, and nothing else."""
    at = _after_newlines(raw, at)
    if filled == 2:
        if at == len(raw):
            return at
        if raw[at] != _PAD:
            return at - 1
        at = _after_newlines(raw, at + 1)
    return at if at < len(raw) else None


def _after_newlines(raw: bytes, at: int) -> int:
    while at < len(raw) and raw[at] in _NEWLINES:
        at += 1
    return at


SECONDS = "2006-01-02T15:04:05Z07:00"  # how Go writes down a format: by a reference time
MICROSECONDS = "2006-01-02T15:04:05.000000Z07:00"

# What stands before the zone, with the number of digits; 0 for a character that stands for itself.
_DAY = (("2006", 4), ("-", 0), ("01", 2), ("-", 0), ("02", 2))
_ELEMENTS = (*_DAY, ("T", 0), ("15", 2), (":", 0), ("04", 2), (":", 0), ("05", 2))
_RANGES = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}
_FRACTION = re.compile(r"[.,]\d+", re.ASCII)
_MICRO = re.compile(r"[.,]\d{6}", re.ASCII)
_ZONE = re.compile(r"Z|([+-])(\d\d):(\d\d)", re.ASCII)
_ZERO = "0001-01-01T00:00:00Z"  # Go's time without a value


class BadInstant(ValueError):
    """Text that is no timestamp; the message is the server's."""


def whole_seconds(text: str) -> str | None:
    """The stored form; None for Go's zero time."""
    at, _ = _parse(text, SECONDS)
    written = _stamp(at)
    return None if written == _ZERO else written


def microseconds(text: str) -> str | None:
    """The stored form with six digits; None for Go's zero time."""
    at, micro = _parse(text, MICROSECONDS)
    written = f"{_stamp(at)[:-1]}.{micro}Z"
    return None if written == f"{_ZERO[:-1]}.000000Z" else written


def from_unix(seconds: int, microsecond: str = "") -> str | None:
    """The stored form of an instant that protobuf carried; None for Go's zero time."""
    try:
        written = _stamp(datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds))
    except OverflowError as error:
        raise BadInstant("year outside of range [0,9999]") from error
    if written == _ZERO and not microsecond.strip("0"):
        return None
    return f"{written[:-1]}.{microsecond}Z" if microsecond else written


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")  # some systems do not pad the year


def _parse(text: str, layout: str) -> tuple[datetime, str]:
    rest = text
    numbers: dict[str, int] = {}
    for element, digits in _ELEMENTS:
        if digits:
            # Only the hour may lack its leading zero.
            width = 1 if element == "15" and not rest[1:2].isdigit() else digits
            figures = rest[:width]
            if len(figures) < width or not (figures.isascii() and figures.isdigit()):
                _stop(text, layout, rest, element)
            numbers[element], rest = int(figures), rest[width:]
            low, high, name = _RANGES.get(element, (0, 9999, ""))
            if not low <= numbers[element] <= high:
                raise BadInstant(f"parsing time {_quoted(text)}: {name} out of range")
        elif not rest.startswith(element):
            _stop(text, layout, rest, element)
        else:
            rest = rest[1:]
    micro = ""
    if layout == MICROSECONDS:
        if _MICRO.match(rest) is None:
            _stop(text, layout, rest, ".000000")
        micro, rest = rest[1:7], rest[7:]
    elif match := _FRACTION.match(rest):
        rest = rest[match.end() :]
    zone = _ZONE.match(rest)
    if zone is None:
        _stop(text, layout, rest, "Z07:00")
    if extra := rest[zone.end() :]:
        raise BadInstant(f"parsing time {_quoted(text)}: extra text: {_quoted(extra)}")
    return _instant(text, numbers, zone), micro


def _instant(text: str, numbers: dict[str, int], zone: re.Match[str]) -> datetime:
    offset = timedelta()
    if zone[1]:
        hours, minutes = int(zone[2]), int(zone[3])
        if hours > 24 or minutes > 60:
            raise BadInstant(
                f"parsing time {_quoted(text)}: time zone offset {'hour' if hours > 24 else 'minute'} out of range"
            )
        offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[1] == "-" else 1)
    year, month, day = numbers["2006"], numbers["01"], numbers["02"]
    try:
        at = datetime(year, month, day, numbers["15"], numbers["04"], numbers["05"], tzinfo=UTC)
    except ValueError as error:
        # Year 0 exists in Go and not here; nobody means it.
        raise BadInstant(f"parsing time {_quoted(text)}: {'day' if year else 'year'} out of range") from error
    try:
        return at - offset
    except OverflowError as error:
        raise BadInstant(f"parsing time {_quoted(text)}: year out of range") from error


def _stop(text: str, layout: str, rest: str, element: str) -> NoReturn:
    raise BadInstant(f'parsing time {_quoted(text)} as "{layout}": cannot parse {_quoted(rest)} as "{element}"')


def _quoted(text: str) -> str:
    """In quotes; what is not plain ASCII as bytes, as Go's time package does."""
    out = []
    for char in text:
        if char in '"\\':
            out.append(f"\\{char}")
        elif " " <= char <= "~":
            out.append(char)
        else:
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    return f'"{"".join(out)}"'
