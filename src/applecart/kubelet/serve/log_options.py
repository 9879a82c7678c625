"""What a reader of a log asks for: the query of `/containerLogs`, checked. Pure.

The API server has checked the same rules before; whoever calls the agent directly is held to them here.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

UNREADABLE = '{"message": "Unable to decode query."}'  # a kubelet's own answer
LARGEST = (1 << 63) - 1


class BadLogQuery(ValueError):
    """The text is the answer."""


class LogOptions(msgspec.Struct, frozen=True):
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    limit_bytes: int | None = None


def read_log_options(query: Mapping[str, str], now: datetime) -> LogOptions:
    """Raises BadLogQuery."""
    return LogOptions(
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail_lines=_number(query, "tailLines", least=0),
        since=_since(query, now),
        limit_bytes=_number(query, "limitBytes", least=1),
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "false").lower() not in ("", "false", "0")


def _number(query: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > len(str(LARGEST)) + 1:
        raise BadLogQuery(UNREADABLE)
    number = int(text) if text.count("-") <= 1 else -1
    if not least <= number <= LARGEST:
        raise BadLogQuery(f"{name} is {text}; it must be {least} or more")
    return number


def _since(query: Mapping[str, str], now: datetime) -> datetime | None:
    if "sinceSeconds" in query and "sinceTime" in query:
        raise BadLogQuery("at most one of sinceTime and sinceSeconds may be given")
    seconds = _number(query, "sinceSeconds", least=1)
    try:
        if seconds is not None:
            return now - timedelta(seconds=seconds)
        text = query.get("sinceTime")
        if text is None:
            return None
        instant = datetime.fromisoformat(text)
        return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
    except ValueError:
        raise BadLogQuery(UNREADABLE) from None
