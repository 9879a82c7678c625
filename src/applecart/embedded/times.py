"""Instants as the API writes them: UTC, whole seconds."""

from datetime import UTC, datetime


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"


def read_stamp(text: str) -> datetime:
    """The instant of a timestamp; raises ValueError for text that is none."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return at.astimezone(UTC)
