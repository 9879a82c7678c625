"""Quantities in the form the API stores: `0.5` is `500m`, `1024Mi` is `1Gi`.

Follows the rules of a real API server to the letter, its odd ones too: text that is nearly canonical (`1500Mi`, `007`) is
kept as it was written, so that a client finds again what it sent.
"""

import re
from decimal import ROUND_UP, Context, Decimal, InvalidOperation, Overflow
from functools import lru_cache

FORMAT_WRONG = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_WRONG = "unable to parse quantity's suffix"
NUMBER_WRONG = "unable to parse numeric part of quantity"

_PARTS = re.compile(r"([+-]?)(0*)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX = {power: suffix for suffix, power in _BINARY.items()}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")

_MAX_DIGITS = 18  # what fits an int64 whatever its digits are
_MAX_INT64 = 2**63 - 1
_MAX_EXPONENT = 1000  # a real server takes more and then computes with such a number for minutes
_MAX_LENGTH = 400  # no amount needs more; longer text would only cost time
_EXACT = Context(prec=1000, Emax=999_999_999, Emin=-999_999_999)
_NANO = -9
_MILLI = -3


class BadQuantity(ValueError):
    """Text that is no quantity; the message is the server's."""


@lru_cache(maxsize=4096)
def canonical(text: str, *, rounds_to_milli: bool = False) -> str:
    """The stored form. Amounts of a resource list are rounded up to thousandths."""
    text = text.strip()
    if text == "0":
        return text
    sign, number, fraction, suffix = _split(text)
    exponent, form = _scale(suffix)
    digits = number + fraction
    if _keeps_text(number, fraction, exponent, form) and not (rounds_to_milli and exponent - len(fraction) < _MILLI):
        return text
    amount = _amount(sign, digits, len(fraction), exponent, form)
    if rounds_to_milli:
        amount = _rounded_up(amount, _MILLI)
    return _written(amount, form)


def _split(text: str) -> tuple[str, str, str, str]:
    match = _PARTS.fullmatch(text) if text and len(text) <= _MAX_LENGTH else None
    if match is None:
        raise BadQuantity(FORMAT_WRONG)
    return match[1], match[3] or "0", match[5] or "", match[6]


def _scale(suffix: str) -> tuple[int, str]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return _BINARY[suffix], "binary"
    match = _EXPONENT.fullmatch(suffix)
    if match is None or abs(exponent := int(match[1])) > _MAX_EXPONENT:
        raise BadQuantity(SUFFIX_WRONG)
    return exponent, "exponent"


def _keeps_text(number: str, fraction: str, exponent: int, form: str) -> bool:
    """The server keeps text that it takes for canonical after a short look."""
    digits = number + fraction
    if form == "binary":
        value = int(number)
        room = 15 - len(number) - int(exponent * 3 / 10) - 1
        return not fraction and room >= 0 and value << exponent <= _MAX_INT64 and value & 0x07 != 0
    scale = exponent - len(fraction)
    return (
        len(digits) <= _MAX_DIGITS
        and scale >= _NANO
        and scale % 3 == 0
        and not digits.endswith("000")
        and not digits.startswith("0")
    )


def _amount(sign: str, digits: str, places: int, exponent: int, form: str) -> Decimal:
    try:
        if form == "binary":
            amount = _EXACT.multiply(Decimal(digits).scaleb(-places, _EXACT), Decimal(1 << exponent))
            amount = min(_rounded_up(amount, _NANO), Decimal(_MAX_INT64))
        else:
            amount = _rounded_up(Decimal(digits).scaleb(exponent - places, _EXACT), _NANO)
    except (InvalidOperation, Overflow) as error:
        raise BadQuantity(NUMBER_WRONG) from error
    return -amount if sign == "-" else amount


def _rounded_up(amount: Decimal, power: int) -> Decimal:
    """Away from zero: who asks for a little gets at least that."""
    if not amount or int(amount.as_tuple().exponent) >= power:
        return amount
    if amount.adjusted() < power:  # too small for quantize to reach, and there may be very many places
        return Decimal(1).scaleb(power).copy_sign(amount)
    return amount.quantize(Decimal(1).scaleb(power), rounding=ROUND_UP, context=_EXACT)


def _written(amount: Decimal, form: str) -> str:
    if not amount:
        return "0"
    if form == "binary" and abs(amount) >= 1024 and amount == amount.to_integral_value(context=_EXACT):
        value, power = int(amount), 0
        while value % 1024 == 0:
            value, power = value // 1024, power + 10
        return f"{value}{_BINARY_SUFFIX.get(power, '')}"
    sign, figures, exponent = amount.as_tuple()
    digits, exponent = "".join(map(str, figures)), int(exponent)
    stripped = digits.rstrip("0")
    exponent += len(digits) - len(stripped)
    stripped += "0" * (exponent % 3)
    exponent -= exponent % 3
    minus = "-" if sign else ""
    if form == "exponent":
        return f"{minus}{stripped}e{exponent}" if exponent else f"{minus}{stripped}"
    return f"{minus}{stripped}{_DECIMAL_SUFFIX.get(exponent, '')}"
