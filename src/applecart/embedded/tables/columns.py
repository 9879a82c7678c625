"""The columns that most tables share, the table of a built-in kind, and ages as kubectl says them: `0s`, `5m12s`, `3d4h`, `2y`.

A row never fails: objects were checked when they were written, but a table is a list for people, and one odd object must not
hide the others. What cannot be read is shown as a row of nothing but the name. No clock is read: the instant of the request is
passed in, so that all rows of one table agree.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.strategy import Document

NAME = Column("Name", format="name", description="Name of the object, unique within its namespace and kind.")
AGE = Column("Age", type="date", description="Time since the object was created.")
AGE_TEXT = Column("Age", description="Time since the object was created.")
CREATED_AT = Column("Created At", type="date", description="When the object was created.")

NONE = "<none>"
UNKNOWN = "<unknown>"

Row = Callable[[Document, dict[str, Any], datetime], list[Any]]  # of an object, its metadata, and the instant of the request
Conditions = Callable[[Document], list[dict[str, str]] | None]
INVALID = "<invalid>"
MINUTE_S = 60
HOUR_S = 3600
DAY_HOURS = 24
YEAR_DAYS = 365
MAX_YEARS = 292  # the longest duration the real server can hold; the year 1 is as long ago as 1734
_RFC3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})")
_ZERO = datetime.min.replace(tzinfo=UTC)  # what Go programs write for no instant


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
            metadata = obj.get("metadata")
            name = metadata.get("name") if isinstance(metadata, dict) else None
            return [name if column.format == NAME.format else None for column in self.columns]

    def conditions(self, obj: Document) -> list[dict[str, str]] | None:
        return self._conditions(obj) if self._conditions else None


DEFAULT = BuiltInTable(
    (NAME, CREATED_AT),
    lambda obj, metadata, now: [metadata.get("name", ""), metadata.get("creationTimestamp") or "0001-01-01T00:00:00Z"],
)


def duration_text(seconds: int) -> str:
    """A duration, cut to whole seconds towards zero."""
    if seconds < 0:
        return INVALID if seconds < -1 else "0s"  # a second of clock difference is no error
    if seconds < 2 * MINUTE_S:
        return f"{seconds}s"
    minutes = seconds // MINUTE_S
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    hours = seconds // HOUR_S
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 2 * DAY_HOURS:
        return f"{hours}h"
    days = hours // DAY_HOURS
    if days < 8:
        return _pair(days, "d", hours % DAY_HOURS, "h")
    if days < 2 * YEAR_DAYS:
        return f"{days}d"
    if days < 8 * YEAR_DAYS:
        return _pair(days // YEAR_DAYS, "y", days % YEAR_DAYS, "d")
    return f"{min(days // YEAR_DAYS, MAX_YEARS)}y"


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(stamp: Any, now: datetime) -> str:
    """The age of a timestamp of a built-in kind; `<unknown>` where there is none."""
    if not stamp:
        return UNKNOWN
    try:
        return duration_text(int((now - datetime.fromisoformat(stamp)).total_seconds()))
    except (TypeError, ValueError, OverflowError):
        return UNKNOWN


def custom_age(stamp: str, now: datetime) -> str:
    """The age in a date column of a custom kind, where the text is whatever the object holds."""
    if stamp in ("", "null"):
        return UNKNOWN
    if not _RFC3339.fullmatch(stamp):
        return INVALID
    try:
        at = datetime.fromisoformat(stamp.replace(",", "."))
        return UNKNOWN if at == _ZERO else duration_text(int((now - at).total_seconds()))
    except (ValueError, OverflowError):
        return INVALID
