"""Answers that are good for a while: a bounded memory that forgets what is too old first.

A stranger can ask under as many names as he likes, so the number of answers is bounded, never only their age.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

from applecart.clock import Clock

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: K) -> V | None:
        found = self._answers.get(key)
        if found is None:
            return None
        good_until_s, value = found
        if self._clock.monotonic() >= good_until_s:
            del self._answers[key]
            return None
        return value

    def put(self, key: K, value: V, good_s: float) -> None:
        self._answers.pop(key, None)
        while len(self._answers) >= self._most:
            self._answers.popitem(last=False)
        self._answers[key] = (self._clock.monotonic() + good_s, value)
