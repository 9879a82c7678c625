"""Base64 of byte fields, with the refusals of a Go server.

A refusal tells the position of the fault and never the text: byte fields hold secrets.
"""

import base64
import binascii

_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_NEWLINES = frozenset(b"\r\n")  # allowed anywhere
_PAD = ord("=")


class BadBase64(ValueError):
    """Text that is no base64; the message is the server's."""


def canonical(text: str) -> str:
    """The same bytes in the form the API stores: padded, on one line."""
    raw = text.encode("utf-8", "surrogatepass")
    fault = _fault(raw)
    if fault is not None:
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
