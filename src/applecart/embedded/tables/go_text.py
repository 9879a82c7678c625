"""Values as the text of a string column, the way the real server prints them.

Maps and lists become JSON with sorted keys and escaped `<`, `>` and `&`, numbers take Go's shortest form, a null is
`<no value>`. Never fails: a document may hold anything that JSON can.
"""

import math
from decimal import Decimal
from typing import Any

import msgspec

NO_VALUE = "<no value>"
MAX_INT = 2**63 - 1
MAX_DEPTH = 200  # of a value printed into one cell; deeper ones are shown as none


class _Style(msgspec.Struct, frozen=True):
    """Between which exponents a number is written without one, and whether `e-09` keeps its zero."""

    lowest: int
    highest: int
    pads_power: bool


TEXT = _Style(-4, 5, pads_power=True)
JSON = _Style(-6, 20, pads_power=False)

_encode_text = msgspec.json.Encoder().encode
_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"})


def cell_text(value: Any) -> str | None:
    """A value as the text of a cell; None when it cannot be printed."""
    if isinstance(value, str):
        return value
    if value is None:
        return NO_VALUE
    if isinstance(value, dict | list):
        try:
            return _json(value, 0)
        except RecursionError:
            return None
    return _scalar(value, TEXT)


def _json(value: Any, depth: int) -> str:
    if depth > MAX_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{','.join(_json(item, depth + 1) for item in value)}]"
    if isinstance(value, dict):
        # Go sorts by bytes, Python by code points: the same order for UTF-8.
        return f"{{{','.join(f'{_quoted(name)}:{_json(value[name], depth + 1)}' for name in sorted(value))}}}"
    return "null" if value is None else _scalar(value, JSON)


def _quoted(text: str) -> str:
    return _encode_text(text).decode().translate(_ESCAPES)


def _scalar(value: Any, style: _Style) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) <= MAX_INT + 1:
        return str(value)
    return _float(_as_float(value), style)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _float(value: float, style: _Style) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, figures, exponent = Decimal(repr(value)).normalize().as_tuple()
    digits = "".join(map(str, figures))
    power = len(digits) - 1 + int(exponent)
    return ("-" if sign else "") + (
        _plain(digits, power) if style.lowest <= power <= style.highest else _scientific(digits, power, style)
    )


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return f"0.{'0' * (-power - 1)}{digits}"
    whole, rest = digits[: power + 1].ljust(power + 1, "0"), digits[power + 1 :]
    return f"{whole}.{rest}" if rest else whole


def _scientific(digits: str, power: int, style: _Style) -> str:
    mantissa = f"{digits[0]}.{digits[1:]}" if len(digits) > 1 else digits
    figures = f"{abs(power):02}" if style.pads_power or power > 0 else str(abs(power))
    return f"{mantissa}e{'-' if power < 0 else '+'}{figures}"
