"""The columns that most tables share, and the table of a built-in kind.

A row never fails: objects were checked when they were written, but a table is a list for people, and one odd object must not
hide the others. What cannot be read is shown as a row of nothing but the name.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document

NAME = Column("Name", format="name", description="Name of the object, unique within its namespace and kind.")
AGE = Column("Age", type="date", description="Time since the object was created.")
AGE_TEXT = Column("Age", description="Time since the object was created.")
CREATED_AT = Column("Created At", type="date", description="When the object was created.")

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"

Row = Callable[[Document, dict[str, Any], datetime], list[Any]]  # of an object, its metadata, and the instant of the request
Conditions = Callable[[Document], list[dict[str, str]] | None]


class BuiltInTable:
    """How objects of a built-in kind look as rows. `conditions` says of a row what cells cannot: that it is over."""

    __slots__ = ("_conditions", "_row", "columns")

    def __init__(self, columns: tuple[Column, ...], row: Row, conditions: Conditions | None = None) -> None:
        self.columns = columns
        self._row = row
        self._conditions = conditions

    def cells(self, obj: Document, now: datetime) -> list[Any]:
        try:
            return self._row(obj, obj["metadata"], now)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError):
            return self._unreadable(obj)

    def conditions(self, obj: Document) -> list[dict[str, str]] | None:
        return self._conditions(obj) if self._conditions else None

    def _unreadable(self, obj: Document) -> list[Any]:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return [name if column.format == NAME.format else None for column in self.columns]


def default_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"]


DEFAULT = BuiltInTable((NAME, CREATED_AT), default_row)
