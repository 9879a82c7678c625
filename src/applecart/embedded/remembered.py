"""Answers about short texts that come again and again: paths, selectors, names, images.

What a caller sends is a key here, often before it is known who sends it. So long texts are worked out anew each time: kept by
the thousand they would fill the memory, and nobody who means well sends many.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 512  # characters; the longest path of an object has some four hundred

Answer = TypeVar("Answer")


def remembered(most: int) -> Callable[[Callable[[str], Answer]], Callable[[str], Answer]]:
    """Keeps the newest so many answers of a pure function."""

    def keeping(work: Callable[[str], Answer]) -> Callable[[str], Answer]:
        known = lru_cache(most)(work)

        @wraps(work)
        def answer(text: str) -> Answer:
            return known(text) if len(text) <= LONGEST else work(text)

        return answer

    return keeping
