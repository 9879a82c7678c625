"""The columns of a custom kind, from its CRD's `additionalPrinterColumns`, and values as the real server prints them.

The first column is always the name. A kind without columns of its own shows its age. A path that selects several values shows
the first; one that selects none, or a value of another type than the column's, shows nothing. A path that cannot be read ends
the columns there, as on the real server: the CRD is installed all the same. In a text column maps and lists become JSON with
sorted keys and escaped `<`, `>` and `&`, numbers take Go's shortest form, a null is `<no value>`.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec

from applecart.embedded.kinds.kind import Column, Table
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.schema.budget import budget
from applecart.embedded.schema.checking import as_float
from applecart.embedded.tables.columns import AGE, NAME, custom_age
from applecart.embedded.tables.json_path import JsonPath, LiteralInt

NO_VALUE = "<no value>"
MAX_INT = 2**63 - 1
OF_A_ROW = 10_000  # steps of all paths together; columns that need more are empty
MAX_DEPTH = 200  # of a value printed into one cell; deeper ones are shown as none
_encode_text = msgspec.json.Encoder().encode
_ESCAPES = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"})
MIN_INT = -MAX_INT - 1  # what a number that fits no 64 bits becomes in an integer column
_DEFAULT_PATH = ".metadata.creationTimestamp"


class _Style(msgspec.Struct, frozen=True):
    """Between which exponents a number is written without one, and whether `e-09` keeps its zero."""

    lowest: int
    highest: int
    pads_power: bool


TEXT = _Style(-4, 5, pads_power=True)
JSON = _Style(-6, 20, pads_power=False)


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
    return _float(as_float(value), style)


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


class PrinterColumns:
    """How objects of one version of a custom kind look as rows."""

    def __init__(self, columns: Sequence[tuple[Column, JsonPath]]) -> None:
        self.columns = (NAME, *(column for column, _ in columns))
        self._readers = [(column.type, path.values) for column, path in columns]
        self._searches = any(path.searches for _, path in columns)

    def cells(self, obj: Document, now: datetime) -> list[Any]:
        if not self._searches:
            return self._cells(obj, now)
        with budget(OF_A_ROW):
            return self._cells(obj, now)

    def _cells(self, obj: Document, now: datetime) -> list[Any]:
        metadata = obj.get("metadata")
        cells = [metadata.get("name", "") if isinstance(metadata, dict) else ""]
        for kind, values in self._readers:
            found = values(obj)
            cells.append(cell(kind, found[0], now) if found else None)
        return cells


def table_of_columns(additional_printer_columns: Sequence[dict[str, Any]] | None) -> Table:
    """The table of one version of a custom kind."""
    if not additional_printer_columns:
        return PrinterColumns([(AGE, JsonPath(_DEFAULT_PATH))])
    columns = []
    for wanted in additional_printer_columns:
        path_text = str(wanted.get("jsonPath", ""))
        try:
            path = JsonPath(path_text)
        except ValueError:
            break
        priority = wanted.get("priority")
        description = wanted.get("description") or f"Custom resource definition column (in JSONPath format): {path_text}"
        column = Column(
            name=str(wanted.get("name", "")),
            type=str(wanted.get("type", "")),
            format=str(wanted.get("format") or ""),
            description=str(description),
            priority=priority if isinstance(priority, int) else 0,
        )
        columns.append((column, path))
    return PrinterColumns(columns)


def cell(kind: str, value: Any, now: datetime) -> Any:
    """A value as the cell of a column of this type; None for a value of another type."""
    match kind, value:
        case "string", _:
            return cell_text(value)
        case "boolean", bool():
            return value
        case "date", str():
            return custom_age(value, now)
        case (("integer" | "number"), bool() | LiteralInt()):
            return None
        case "integer", (int() | float()):
            return _integer(value)
        case "number", (int() | float()):
            return _number(value)
    return None


def _integer(value: int | float) -> int:
    if value != value or not MIN_INT <= value <= MAX_INT:
        return MIN_INT
    return int(value)


def _number(value: int | float) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
