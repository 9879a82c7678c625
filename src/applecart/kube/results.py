"""What a reconcile says when it ends: done, wait for an event, or look again later.

`DONE` and `WAIT` both leave the next look to an event. They differ for the people who watch: a key that waits is a key that
needs something from somebody else, so its age is exported and it is looked at again even when no event ever comes (I10).
"""

from datetime import timedelta
from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """How a reconcile ended; a label value. The failures among them match `applecart.kube.backoff.Failure`."""

    DONE = "done"
    WAIT = "wait"
    AGAIN = "again"
    OVERRUN = "overrun"
    CONFLICT = "conflict"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNEXPECTED = "unexpected"


class Result(msgspec.Struct, frozen=True):
    outcome: Outcome
    after: timedelta = timedelta()


DONE = Result(Outcome.DONE)
WAIT = Result(Outcome.WAIT)


def again_in(delay: timedelta) -> Result:
    """Look at the key again after this time, or earlier when an event comes."""
    return Result(Outcome.AGAIN, delay)
