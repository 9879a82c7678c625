"""How soon failed work is tried again, by what went wrong.

A pure table: the class of an error picks a pace and the word its metrics use. A `Conflict` only needs a fresh look, so it
returns at once; a `Permanent` error waits for a person, who usually causes an event that ends the wait early; what we did not
foresee is a bug of ours and must not become load.
"""

import random
from enum import StrEnum

import msgspec

from applecart.errors import ApplecartError, Permanent
from applecart.kube.backoff import Pace
from applecart.kube.errors import ApiError, Conflict


class Failure(StrEnum):
    """What kind of failure a retry answers; a label value."""

    CONFLICT = "conflict"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNEXPECTED = "unexpected"


class Paces(msgspec.Struct, frozen=True):
    """One pace per kind of failure."""

    conflict: Pace = Pace(first_s=0.05, longest_s=5.0)  # a cache catches up within milliseconds, behind a busy API in seconds
    transient: Pace = Pace(first_s=0.5, longest_s=120.0)  # longer would leave a healed host idle for no reason
    permanent: Pace = Pace(first_s=30.0, longest_s=900.0)  # a fix that causes no event (a Secret, a quota) is found in 15 min
    unexpected: Pace = Pace(first_s=1.0, longest_s=600.0)


def failure_of(error: BaseException) -> Failure:
    if isinstance(error, Conflict):
        return Failure.CONFLICT
    if isinstance(error, Permanent):
        return Failure.PERMANENT
    return Failure.TRANSIENT if isinstance(error, ApplecartError) else Failure.UNEXPECTED


def retry_after_s(error: BaseException, failures: int, paces: Paces, chance: random.Random) -> float:
    """Seconds until the next attempt after so many failures in a row; never earlier than a server asked for."""
    pace: Pace = getattr(paces, failure_of(error))
    wait_s = pace.wait_s(failures, chance)
    if isinstance(error, ApiError) and error.retry_after_s is not None:
        return error.retry_after_s + wait_s
    return wait_s
