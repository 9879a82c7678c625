"""Events as rows, in both of their views: the core one, and `events.k8s.io`, which names the same things otherwise."""

from datetime import datetime
from typing import Any

from applecart.embedded.kinds.kind import Column
from applecart.embedded.kinds.rules import Document
from applecart.embedded.tables.ages import age
from applecart.embedded.tables.columns import BuiltInTable

COLUMNS = (
    Column("Last Seen", description="Time since it was last seen."),
    Column("Type", description="Normal or Warning."),
    Column("Reason", description="Why it was sent, in one word."),
    Column("Object", description="What it is about."),
    Column("Subobject", description="The part of the object it is about.", priority=1),
    Column("Source", description="Who reported it.", priority=1),
    Column("Message", description="What happened, as a sentence."),
    Column("First Seen", description="Time since it was first seen.", priority=1),
    Column("Count", description="How often it was seen.", priority=1),
    Column("Name", format="name", description="Name of the Event.", priority=1),
)


def core_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    source = obj.get("source") or {}
    return _row(
        obj,
        metadata,
        now,
        subject=obj.get("involvedObject") or {},
        message=obj.get("message"),
        first=obj.get("firstTimestamp"),
        last=obj.get("lastTimestamp"),
        count=obj.get("count"),
        source=source,
        reporter=obj.get("reportingComponent"),
    )


def events_row(obj: Document, metadata: dict[str, Any], now: datetime) -> list[Any]:
    return _row(
        obj,
        metadata,
        now,
        subject=obj.get("regarding") or {},
        message=obj.get("note"),
        first=obj.get("deprecatedFirstTimestamp"),
        last=obj.get("deprecatedLastTimestamp"),
        count=obj.get("deprecatedCount"),
        source=obj.get("deprecatedSource") or {},
        reporter=obj.get("reportingController"),
    )


def _row(
    obj: Document,
    metadata: dict[str, Any],
    now: datetime,
    *,
    subject: dict[str, Any],
    message: str | None,
    first: str | None,
    last: str | None,
    count: int | None,
    source: dict[str, Any],
    reporter: str | None,
) -> list[Any]:
    first_seen = age(first or obj.get("eventTime"), now)
    last_seen = age(last, now) if last else first_seen
    series = obj.get("series")
    if series is not None:
        last_seen = age(series.get("lastObservedTime"), now)
        count = series.get("count") or 0
    component = source.get("component") or reporter or ""
    instance = source.get("host") or obj.get("reportingInstance")
    kind, name = (subject.get("kind") or "").lower(), subject.get("name")
    return [
        last_seen,
        obj.get("type") or "",
        obj.get("reason") or "",
        f"{kind}/{name}" if name else kind,
        subject.get("fieldPath") or "",
        f"{component}, {instance}" if instance else component,
        (message or "").strip(),
        first_seen,
        count if series is not None else count or 1,  # the newer API counts only what repeats
        metadata.get("name", ""),
    ]


CORE_EVENTS = BuiltInTable(COLUMNS, core_row)
EVENTS = BuiltInTable(COLUMNS, events_row)
