"""What a reason is: the CamelCase word in a condition, an Event or a status, with what belongs to it.

One file per writer below this package. A word used both as a condition's reason and as an Event's is spelled once, in the
condition, and becomes an Event with `as_event`. Alerts, runbooks and people match on these words, so a word is never
reused for another meaning and never carries a detail: details go into the message.
"""

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    """How a Cluster API v1beta1 condition that is not `True` is meant. metav1 conditions have none."""

    NONE = ""
    INFO = "Info"
    WARNING = "Warning"  # retried without anybody
    ERROR = "Error"  # waits for a person


class EventType(StrEnum):
    NORMAL = "Normal"
    WARNING = "Warning"


class EventReason(Struct, frozen=True):
    """Why an Event is recorded, and whether it is a warning."""

    name: str
    type: EventType
    meaning: str


class ConditionReason(Struct, frozen=True):
    """Why a condition of type `condition` has its status."""

    name: str
    condition: str
    severity: Severity
    meaning: str

    def as_event(self, type: EventType) -> EventReason:
        return EventReason(self.name, type, self.meaning)


class StatusReason(Struct, frozen=True):
    """A word in a status field that is not a condition; `field` says which."""

    name: str
    field: str
    meaning: str

    def as_event(self, type: EventType) -> EventReason:
        return EventReason(self.name, type, self.meaning)


def normal(name: str, meaning: str) -> EventReason:
    return EventReason(name, EventType.NORMAL, meaning)


def warning(name: str, meaning: str) -> EventReason:
    return EventReason(name, EventType.WARNING, meaning)
