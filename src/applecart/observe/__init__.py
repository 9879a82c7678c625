"""What leaves a component for people to read: logs, metrics, ages of everything that waits, health.

`published` is called by whoever writes text that ends outside this process for people to see: an Event, a condition, the argv
of a remote command, a metrics page. It does nothing by itself. `sinks` lets the tests read along, so that a secret in any of
these texts fails the test that published it (I9).
"""

from collections.abc import Callable

sinks: list[Callable[[str, str], None]] = []


def published(kind: str, text: str) -> None:
    """Say that a text goes out, before it does. The kind names the channel: "event", "condition", "error", "argv"."""
    for sink in sinks:
        sink(kind, text)
