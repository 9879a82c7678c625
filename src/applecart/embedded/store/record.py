"""What the store holds: an object at a revision, and a change from one to the next.

The value is the object's JSON without apiVersion and kind (the resource knows them), encoded once: the same bytes are stored,
answered and sent to watchers. What selectors ask for lies beside it, so that nothing is parsed to filter.
"""

from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from applecart.api.meta import Key

NOTHING: dict[str, str] = {}


class Op(IntEnum):
    """What a row of the log says. The numbers are stored."""

    ADDED = 0
    MODIFIED = 1
    DELETED = 2


class Traits(NamedTuple):
    """What is known of an object without parsing it again."""

    uid: str
    labels: dict[str, str]
    fields: dict[str, str]  # what field selectors may ask for


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object as it was at one revision."""

    key: Key
    revision: int
    value: bytes
    traits: Traits

    def document(self) -> dict[str, Any]:
        """The object as fresh plain values, without apiVersion and kind."""
        document: dict[str, Any] = msgspec.json.decode(self.value)
        return document


class Change:
    """One committed write, in the one order that all watchers see."""

    __slots__ = ("frames", "op", "previous", "record", "revision")

    def __init__(self, op: Op, record: Record, previous: Record | None) -> None:
        self.op = op
        self.record = record  # of a deletion: the last state, with the deletion's revision
        self.previous = previous
        self.revision = record.revision
        self.frames: dict[Any, bytes] = {}  # what was sent of it, so that each form is encoded once for all watchers


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A write on its way to the log."""

    label: str
    op: Op
    record: Record
