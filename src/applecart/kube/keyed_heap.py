"""A priority queue in which a key stands at most once and can be moved or taken out.

Plain memory, no time: the order is whatever the caller compares by. A key that was moved or taken out leaves its old entry
behind, which is skipped when it comes up; so that such entries cannot pile up behind a far one, the heap is rebuilt when they
outnumber the living. Every operation is O(log n), amortised.
"""

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

H = TypeVar("H", bound=Hashable)

SPARED_GHOSTS = 64  # below this a rebuild costs more than the entries it removes


class KeyedHeap(Generic[H]):
    """Lowest order first; among equals the one that was put first."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, int, H]] = []
        self._places: dict[H, tuple[float, int]] = {}
        self._puts = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: H) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[H]:
        return iter(self._places)

    def order_of(self, key: H) -> float | None:
        place = self._places.get(key)
        return place[0] if place else None

    def put(self, key: H, order: float) -> None:
        """Place the key, or move it."""
        self._puts += 1
        self._places[key] = (order, self._puts)
        heapq.heappush(self._entries, (order, self._puts, key))
        self._bury()

    def discard(self, key: H) -> None:
        if self._places.pop(key, None):
            self._bury()

    def first_order(self) -> float | None:
        """The order of the key that `pop` would give."""
        self._skip_ghosts()
        return self._entries[0][0] if self._entries else None

    def pop(self) -> H:
        self._skip_ghosts()
        _, _, key = heapq.heappop(self._entries)
        del self._places[key]
        return key

    def clear(self) -> None:
        self._entries.clear()
        self._places.clear()

    def _is_ghost(self, entry: tuple[float, int, H]) -> bool:
        return self._places.get(entry[2]) != entry[:2]

    def _skip_ghosts(self) -> None:
        while self._entries and self._is_ghost(self._entries[0]):
            heapq.heappop(self._entries)

    def _bury(self) -> None:
        if len(self._entries) > 2 * len(self._places) + SPARED_GHOSTS:
            self._entries = [entry for entry in self._entries if not self._is_ghost(entry)]
            heapq.heapify(self._entries)
