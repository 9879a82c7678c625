"""Whether a failed call is tried again, and when. Reads no clock and makes no call.

A call may be repeated when it surely did nothing (429, no connection was made) or when doing it twice is the same as doing it
once. Creating an object and a JSON patch are not: after a lost answer the caller decides, because only the caller knows
whether a second object would hurt.
"""

import random

from applecart.errors import DeadlineExceeded, NeverSent, Unreachable
from applecart.kube.backoff import Pace
from applecart.kube.errors import ApiError, ServerFault, TooManyRequests

PACE = Pace(first_s=0.1, longest_s=5.0)  # a call has 30 s by default: about eight attempts
LONGEST_RETRY_AFTER_S = 60.0  # a server that asks for more is treated as down; the caller's own backoff takes over


def retry_wait_s(error: Exception, failures: int, *, repeatable: bool, chance: random.Random) -> float | None:
    """Seconds until the next attempt, or None to give the error to the caller."""
    if isinstance(error, TooManyRequests | ServerFault):
        did_nothing = isinstance(error, TooManyRequests) or error.retry_after_s is not None
        return _polite_wait_s(error, failures, chance) if did_nothing or repeatable else None
    if isinstance(error, NeverSent):
        return PACE.wait_s(failures, chance)
    if isinstance(error, Unreachable | DeadlineExceeded) and repeatable:
        return PACE.wait_s(failures, chance)
    return None


def _polite_wait_s(error: ApiError, failures: int, chance: random.Random) -> float | None:
    own_s = PACE.wait_s(failures, chance)
    if error.retry_after_s is None:
        return own_s
    if error.retry_after_s > LONGEST_RETRY_AFTER_S:
        return None
    # Jitter goes on top: coming back before the server asked for is what it forbade.
    return error.retry_after_s + own_s
