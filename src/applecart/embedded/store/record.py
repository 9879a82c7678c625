"""What the store holds: an object at a revision, and a change from one to the next.

The value is the object's JSON without apiVersion and kind (the resource knows them), encoded once: the same bytes are stored,
answered and sent to watchers. What selectors ask for lies beside it, so that nothing is parsed to filter.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from applecart.api.meta import Key

NOTHING: dict[str, str] = {}
_parts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


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

    @property
    def size_bytes(self) -> int:
        return len(self.value)

    def document(self) -> dict[str, Any]:
        """The object as fresh plain values, without apiVersion and kind."""
        document: dict[str, Any] = msgspec.json.decode(self.value)
        return document

    def said_at(self, revision: int) -> "Record":
        """The same object, said to be of another revision; what stays as it is, is not parsed."""
        document = _parts(self.value)
        metadata = _parts(document["metadata"])
        metadata["resourceVersion"] = msgspec.Raw(b'"%d"' % revision)
        document["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
        return Record(self.key, revision, msgspec.json.encode(document), self.traits)


class Change:
    """One committed write, in the one order that all watchers see."""

    __slots__ = ("frames", "held", "held_bytes", "op", "previous", "record", "revision", "size_bytes")

    def __init__(self, op: Op, record: Record, previous: Record | None, held: Callable[[int], None] | None = None) -> None:
        self.op = op
        self.record = record  # of a deletion: the last state, with the deletion's revision
        self.previous = previous
        self.revision = record.revision
        previous_bytes = len(previous.value) if previous is not None else 0
        self.size_bytes = max(len(record.value), previous_bytes)  # of what is told of it: what it left behind, to some
        # What only a ring keeps in memory: the newest state is the table's, and an older one is previous to another change.
        self.held_bytes = previous_bytes + (len(record.value) if op is Op.DELETED else 0)
        self.held = held  # counts what a ring holds in it; None once the ring has let go
        self.frames: dict[Any, bytes] = {}  # what was sent of it, so that each form is encoded once for all watchers

    def share(self, form: Any, frame: bytes) -> None:
        """Keep an encoded form for other watchers, for as long as the ring keeps the change. On the loop, as it may let go."""
        if self.held is not None and form not in self.frames:
            self.frames[form] = frame
            self.held_bytes += len(frame)
            self.held(len(frame))

    def let_go(self) -> None:
        """The ring forgets it; readers that still have it before them encode it themselves."""
        self.held = None
        self.frames.clear()


class LogEntry(msgspec.Struct, frozen=True, gc=False):
    """A write on its way to the log."""

    label: str
    op: Op
    record: Record
