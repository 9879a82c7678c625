"""Selectors as the API writes them, from plain values."""

from collections.abc import Mapping


def having(labels: Mapping[str, str | None]) -> str:
    """A selector for equal values; None means the key must exist."""
    return ",".join(key if value is None else f"{key}={value}" for key, value in sorted(labels.items()))
