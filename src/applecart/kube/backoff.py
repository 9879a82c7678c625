"""How long to wait before the next attempt, and whether there is one: pure arithmetic for calls, watches and work queues.

Failed work is tried again by what went wrong: the class of an error picks a backoff and the word its metrics use. A `Conflict`
only needs a fresh look, so it returns at once; a `Permanent` error waits for a person, who usually causes an event that ends
the wait early; what we did not foresee is a bug of ours and must not become load.

A failed call may be repeated when it surely did nothing (429, no connection was made) or when doing it twice is the same as
doing it once. Creating an object and a JSON patch are not: after a lost answer the caller decides, because only the caller
knows whether a second object would hurt.
"""

import random
from enum import StrEnum

import msgspec

from applecart.errors import ApplecartError, DeadlineExceeded, NeverSent, Permanent, Unreachable
from applecart.kube.errors import ApiError, Conflict, ServerFault, TooManyRequests

LONGEST_RETRY_AFTER_S = 60.0  # a call that is asked for more fails; whoever goes on by itself waits no longer for it


class Backoff(msgspec.Struct, frozen=True):
    """Waits that double from `first_s` up to `longest_s`."""

    first_s: float
    longest_s: float

    def wait_s(self, failures: int, chance: random.Random) -> float:
        """The wait after so many failures in a row (1 or more).

        Between half and the whole of the doubled step, so that clients that failed together do not come back together.
        """
        exponent = min(max(failures, 1) - 1, 60)  # 2**60 steps are beyond any cap; more would overflow a float
        step_s = min(self.first_s * 2.0**exponent, self.longest_s)
        return step_s * (0.5 + chance.random() / 2)


OF_CALLS = Backoff(first_s=0.1, longest_s=5.0)  # a call has 30 s by default: about eight attempts


class Failure(StrEnum):
    """What kind of failure a retry answers; a label value."""

    CONFLICT = "conflict"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNEXPECTED = "unexpected"


class FailureBackoffs(msgspec.Struct, frozen=True):
    """One backoff per kind of failure."""

    conflict: Backoff = Backoff(first_s=0.05, longest_s=5.0)  # a cache catches up within milliseconds, a busy API in seconds
    transient: Backoff = Backoff(first_s=0.5, longest_s=120.0)  # longer would leave a healed host idle for no reason
    permanent: Backoff = Backoff(first_s=30.0, longest_s=900.0)  # a fix without an event (a Secret, a quota): within 15 min
    unexpected: Backoff = Backoff(first_s=1.0, longest_s=600.0)


def failure_of(error: BaseException) -> Failure:
    if isinstance(error, Conflict):
        return Failure.CONFLICT
    if isinstance(error, Permanent):
        return Failure.PERMANENT
    return Failure.TRANSIENT if isinstance(error, ApplecartError) else Failure.UNEXPECTED


def asked_s(error: BaseException) -> float:
    """For how long a server asked not to come back; one that asks for a day is asked again within minutes."""
    return min(error.retry_after_s or 0.0, LONGEST_RETRY_AFTER_S) if isinstance(error, ApiError) else 0.0


def requeue_after_s(error: BaseException, failures: int, backoffs: FailureBackoffs, chance: random.Random) -> float:
    """Seconds until failed work is tried again, after so many failures in a row and the pause that a server asked for."""
    backoff: Backoff = getattr(backoffs, failure_of(error))
    return asked_s(error) + backoff.wait_s(failures, chance)


def retry_wait_s(error: Exception, failures: int, *, repeatable: bool, chance: random.Random) -> float | None:
    """Seconds until a failed call is sent again, or None to give the error to the caller."""
    if isinstance(error, TooManyRequests | ServerFault):
        did_nothing = isinstance(error, TooManyRequests) or error.retry_after_s is not None
        return _polite_wait_s(error, failures, chance) if did_nothing or repeatable else None
    if isinstance(error, NeverSent) or (isinstance(error, Unreachable | DeadlineExceeded) and repeatable):
        return OF_CALLS.wait_s(failures, chance)
    return None


def _polite_wait_s(error: ApiError, failures: int, chance: random.Random) -> float | None:
    own_s = OF_CALLS.wait_s(failures, chance)
    if error.retry_after_s is None:
        return own_s
    if error.retry_after_s > LONGEST_RETRY_AFTER_S:
        return None
    # Jitter goes on top: coming back before the server asked for is what it forbade.
    return error.retry_after_s + own_s
