"""Which Events are written, and which are folded into one that exists: decisions without a clock or an API.

The same sentence about the same object raises a count. Many different sentences with one reason become a single series. An
object that keeps talking is limited by a token bucket, and so is the process as a whole. The limits are client-go's, which
people who read Events know. Memory is bounded: what was not heard of for longest is forgotten first.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

import msgspec

SIMILAR_ALLOWED = 10  # different messages of one object and reason within SIMILAR_WITHIN_S; more are combined
SIMILAR_WITHIN_S = 600.0
COMBINED = "(combined from similar events): "
OBJECT_BURST = 25
OBJECT_REFILL_S = 300.0  # one more Event per object every five minutes
GLOBAL_BURST = 200  # a fleet of 500 hosts that all have something to say at once
GLOBAL_REFILL_S = 0.1  # then ten a second, far below what an API server notices
REMEMBERED = 4096  # about 5 MB of a controller that looks after a fleet

T = TypeVar("T")


class Subject(NamedTuple):
    """What an Event is about, and with which word."""

    uid: str
    kind: str
    namespace: str
    name: str
    type: str
    reason: str


class Series(msgspec.Struct):
    """One Event that is counted up. `name` is empty until the API has it."""

    message: str
    count: int = 0
    name: str = ""
    first_at: datetime | None = None


class Bucket(msgspec.Struct):
    """Tokens that come back with time."""

    tokens: float
    at_s: float


class _Similar(msgspec.Struct):
    """The different messages heard lately with one reason."""

    at_s: float
    messages: set[str]


class Remembered(OrderedDict[str | tuple[object, ...], T], Generic[T]):
    """A dictionary that forgets what was not looked at for longest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def recall(self, key: str | tuple[object, ...], otherwise: T) -> T:
        value = self.setdefault(key, otherwise)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
        return value


class Folding:
    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._series: Remembered[Series] = Remembered(remembered)
        self._similar: Remembered[_Similar] = Remembered(remembered)
        self._buckets: Remembered[Bucket] = Remembered(remembered)
        self._all = Bucket(GLOBAL_BURST, 0.0)

    def fold(self, subject: Subject, message: str, now_s: float) -> Series | None:
        """The series to write after this message, counted up, or None when a limit says that nothing is written."""
        combined = self._is_one_of_many(subject, message, now_s)
        key = (subject, combined, "" if combined else message)
        series = self._series.recall(key, Series(message))
        series.count += 1
        series.message = f"{COMBINED}{message}" if combined else message
        return series if self._may_write(subject, now_s) else None

    def _is_one_of_many(self, subject: Subject, message: str, now_s: float) -> bool:
        similar = self._similar.recall(subject, _Similar(now_s, set()))
        if now_s - similar.at_s > SIMILAR_WITHIN_S:
            similar.messages.clear()
        similar.at_s = now_s
        if message in similar.messages:
            return False
        if len(similar.messages) >= SIMILAR_ALLOWED:
            return True
        similar.messages.add(message)
        return False

    def _may_write(self, subject: Subject, now_s: float) -> bool:
        of_object = self._buckets.recall(subject[:4], Bucket(OBJECT_BURST, now_s))
        refill(of_object, OBJECT_BURST, OBJECT_REFILL_S, now_s)
        refill(self._all, GLOBAL_BURST, GLOBAL_REFILL_S, now_s)
        if of_object.tokens < 1 or self._all.tokens < 1:
            return False
        of_object.tokens -= 1
        self._all.tokens -= 1
        return True


def refill(bucket: Bucket, burst: int, refill_s: float, now_s: float) -> None:
    """What came back since the last look, never more than the burst."""
    bucket.tokens = min(burst, bucket.tokens + max(0.0, now_s - bucket.at_s) / refill_s)
    bucket.at_s = now_s
