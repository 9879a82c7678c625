"""Resource quantities (`4`, `500m`, `2Gi`, `1e3`): reading, comparing and writing them as the API does.

A quantity is an exact whole number of nano units, so sums and comparisons never lose anything. What is finer than a nano is
rounded up, and what is said in binary units is cut to 63 bits, both as a real server does. `canonical` is the text a real
server stores, which keeps some texts as they were written. Text that is no quantity raises `BadQuantity`.
"""

import re
from functools import lru_cache
from typing import NamedTuple

NANOS = 10**9
MICROS = 10**6  # nanos of one thousandth
LARGEST_BINARY = (2**63 - 1) * NANOS
LARGEST_INT = 2**63 - 1
TEXT_MAX = 256  # characters: far above any real quantity, and keeps hostile input cheap
EXPONENT_MAX = 512  # likewise; a real server computes with any, we refuse to
CACHED_TEXTS = 2048  # the same few sizes appear in every Pod
FAST_DIGITS = 18  # digits that fit 63 bits: only such numbers keep their text
FAST_BINARY_DIGITS = 14  # likewise, before the suffix takes its share

BAD_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
BAD_NUMBER = "unable to parse numeric part of quantity"
BAD_SUFFIX = "unable to parse quantity's suffix"

_parts = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)").fullmatch
_exponent = re.compile(r"[eE]([+-]?[0-9]+)").fullmatch
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}


class BadQuantity(ValueError):
    """The text is no quantity."""


class Quantity(NamedTuple):
    """`nanos` is the amount; `canonical` is the text the API stores for what was written."""

    nanos: int
    canonical: str

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divided(self.nanos, NANOS)

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _divided(self.nanos, MICROS)

    @property
    def in_milli(self) -> str:
        """The text the API stores where thousandths are the finest (amounts of resources), rounded away from zero."""
        if self.nanos % MICROS == 0:
            return self.canonical
        return _written(_divided(self.nanos, MICROS) * MICROS, "e" in self.canonical)

    @property
    def is_whole(self) -> bool:
        return self.nanos % NANOS == 0


def quantity_of(value: object) -> Quantity:
    """A quantity as a document may carry it: text, or a bare number."""
    if isinstance(value, str):
        return parse_quantity(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadQuantity(BAD_FORMAT)
    if isinstance(value, int) and abs(value) > LARGEST_INT:
        raise BadQuantity(BAD_NUMBER)
    return parse_quantity(repr(value))


@lru_cache(CACHED_TEXTS)
def parse_quantity(text: str) -> Quantity:
    text = text.strip(" ")
    found = _parts(text)
    if found is None or not text or len(text) > TEXT_MAX:
        raise BadQuantity(BAD_FORMAT)
    sign, whole, fraction, suffix = found[1], found[2].lstrip("0"), found[3] or "", found[4]
    if suffix in _BINARY:
        return _binary(text, sign, whole or "0", fraction, suffix)
    power, is_exponent = _power(suffix)
    digits = (whole or "0") + fraction
    nanos = _signed(sign, _times_ten_to(int(digits), power - len(fraction) + 9))
    scale = power - len(fraction)
    is_kept = len(digits) <= FAST_DIGITS and scale >= -9 and scale % 3 == 0
    if is_kept and not digits.endswith("000") and digits[0] != "0":
        return Quantity(nanos, text)
    return Quantity(nanos, _written(nanos, is_exponent))


def _binary(text: str, sign: str, whole: str, fraction: str, suffix: str) -> Quantity:
    bits = _BINARY[suffix]
    amount = _times_ten_to(int(whole + fraction) << bits, 9 - len(fraction))
    nanos = _signed(sign, min(amount, LARGEST_BINARY))
    is_fast = not fraction and FAST_BINARY_DIGITS - len(whole) - bits * 3 // 10 >= 0
    if is_fast and int(whole) & 7:
        return Quantity(nanos, text)
    if nanos % NANOS or abs(nanos) < 1024 * NANOS:
        return Quantity(nanos, _written(nanos, False))
    units, unit = abs(nanos) // NANOS, ""
    for unit_of, shift in reversed(_BINARY.items()):
        if units % (1 << shift) == 0:
            units, unit = units >> shift, unit_of
            break
    return Quantity(nanos, f"{'-' if nanos < 0 else ''}{units}{unit}")


def _power(suffix: str) -> tuple[int, bool]:
    """Ten to which power a suffix multiplies by, and whether it is written as an exponent."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], False
    exponent = _exponent(suffix)
    if exponent is None:
        raise BadQuantity(BAD_SUFFIX)
    power = int(exponent[1])
    if abs(power) > EXPONENT_MAX:
        raise BadQuantity(BAD_NUMBER)
    return power, True


def _times_ten_to(number: int, power: int) -> int:
    """Exact upwards; downwards rounded up, because a nano is the finest."""
    if power >= 0:
        return number * int(10**power)
    return -(-number // int(10**-power))


def _signed(sign: str, amount: int) -> int:
    return -amount if sign == "-" else amount


def _written(nanos: int, is_exponent: bool) -> str:
    """With the largest power of a thousand that leaves a whole number."""
    if nanos == 0:
        return "0"
    mantissa, power = nanos, -9
    while mantissa % 1000 == 0 and (is_exponent or power < 18):
        mantissa, power = mantissa // 1000, power + 3
    if is_exponent:
        return f"{mantissa}e{power}" if power else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIX[power]}"


def _divided(number: int, by: int) -> int:
    return -(-number // by) if number >= 0 else number // by
