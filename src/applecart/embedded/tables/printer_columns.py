"""The columns of a custom kind, from its CRD's `additionalPrinterColumns`.

The first column is always the name. A kind without columns of its own shows its age. A path that selects several values shows
the first; one that selects none, or a value of another type than the column's, shows nothing. A path that cannot be read ends
the columns there, as on the real server: the CRD is installed all the same.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column, Table
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import custom_age
from applecart.embedded.tables.columns import AGE, NAME
from applecart.embedded.tables.go_text import MAX_INT, cell_text
from applecart.embedded.tables.json_path import JsonPath, LiteralInt

MIN_INT = -MAX_INT - 1  # what a number that fits no 64 bits becomes in an integer column

_DEFAULT_PATH = ".metadata.creationTimestamp"


class PrinterColumns:
    """How objects of one version of a custom kind look as rows."""

    def __init__(self, columns: Sequence[tuple[Column, JsonPath]]) -> None:
        self.columns = (NAME, *(column for column, _ in columns))
        self._readers = [(column.type, path.values) for column, path in columns]

    def cells(self, obj: Document, now: datetime) -> list[Any]:
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
