"""Which Pod is tried next, and who waits for what.

Ready Pods come by rank: the higher priority, then the older. A Pod that fits nowhere waits with the others of its shape; when
room appears that this shape fits, only the first of them is woken, and each one that leaves wakes the next: a freed slot costs
one attempt, not one per waiting Pod. Independent of events, everybody is tried again in the end (I10): after a failure by
backoff, after a change of nodes that did not help within the same backoff (the sentence may have changed), and else rarely.

Plain memory; the caller says what time it is.
"""

from bisect import bisect_left, insort
from enum import Enum

import msgspec

from applecart.api.meta import Key
from applecart.embedded.controllers.scheduler.pod_shape import PodShape, Rank, Wants
from applecart.kube.workqueue import KeyedHeap

FIRST_BACKOFF_S = 1.0
LONGEST_BACKOFF_S = 10.0
DOUBLINGS_MAX = 10  # beyond the longest backoff; more would overflow a float one day
LONGEST_WAIT_S = 300.0  # a wake-up that was lost costs five minutes, as in the real scheduler


class State(Enum):
    READY = "ready"
    TRIED = "tried"  # handed out, and not heard of since
    WAITING = "waiting"  # fits nowhere
    FAILED = "failed"  # the API was in the way: room does not help, time does


class PendingPod(msgspec.Struct):
    wants: Wants
    standing: State = State.READY
    attempts: int = 0  # in vain
    told: str = ""  # the last Event about it...
    told_at_s: float = 0.0  # ...and when

    @property
    def backoff_s(self) -> float:
        return min(FIRST_BACKOFF_S * 2.0 ** min(max(self.attempts - 1, 0), DOUBLINGS_MAX), LONGEST_BACKOFF_S)

    def is_worth_telling(self, message: str, now_s: float) -> bool:
        """Whether this says something new, or what was said is so long ago that people may have lost it; then it is told."""
        if message == self.told and now_s - self.told_at_s < LONGEST_WAIT_S:
            return False
        self.told, self.told_at_s = message, now_s
        return True


class Pending:
    """Pods without a node."""

    def __init__(self) -> None:
        self._entries: dict[Key, PendingPod] = {}
        self._ready: list[Rank] = []  # sorted; a rank ends in the Pod's key, so no two are equal
        self._waiting: dict[PodShape, list[Rank]] = {}  # sorted
        self._due: KeyedHeap[Key] = KeyedHeap()  # by when time alone makes them ready

    def __len__(self) -> int:
        return len(self._entries)

    def count(self, *standings: State) -> int:
        return sum(entry.standing in standings for entry in self._entries.values())

    def get(self, key: Key) -> PendingPod | None:
        return self._entries.get(key)

    def put(self, wants: Wants) -> None:
        """A Pod that has no node, as it is now. One that asks for the same as before keeps its place."""
        known = self._entries.get(wants.key)
        if known is not None and known.wants == wants:
            return
        if known is not None:
            self.drop(wants.key)
        self._entries[wants.key] = PendingPod(wants)
        insort(self._ready, wants.rank)

    def drop(self, key: Key) -> None:
        """The Pod has a node, or is gone."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        was_on_its_way = entry.standing in (State.READY, State.TRIED)
        self._leave(entry)
        if was_on_its_way:
            self.room_appeared(entry.wants.shape)  # the room that it was woken for may still be there

    def done(self, entry: PendingPod) -> None:
        """An attempt ended well. Another Pod that took the name meanwhile stays."""
        if self._entries.get(entry.wants.key) is entry:
            self.drop(entry.wants.key)

    def next(self, now_s: float) -> PendingPod | None:
        """The first in rank of those that are ready; it is out until `done`, `waits` or `failed`."""
        while (due_s := self._due.first_order()) is not None and due_s <= now_s:
            self._make_ready(self._entries[self._due.pop()])
        if not self._ready:
            return None
        entry = self._entries[self._ready.pop(0).key]
        entry.standing = State.TRIED
        return entry

    def due_in_s(self, now_s: float) -> float | None:
        """When time alone makes somebody ready; None when nobody waits."""
        due_s = self._due.first_order()
        return None if due_s is None else max(0.0, due_s - now_s)

    def waits(self, entry: PendingPod, now_s: float) -> None:
        """It fits nowhere."""
        if not self._is_tried(entry):
            return
        entry.attempts += 1
        entry.standing = State.WAITING
        insort(self._waiting.setdefault(entry.wants.shape, []), entry.wants.rank)
        self._due.put(entry.wants.key, now_s + LONGEST_WAIT_S)

    def failed(self, entry: PendingPod, now_s: float) -> None:
        """The attempt came to no end. One that waits already goes on waiting, but what should be said about it was not."""
        if self._is_tried(entry):
            entry.attempts += 1
            entry.standing = State.FAILED
            self._due.put(entry.wants.key, now_s + entry.backoff_s)
            self.room_appeared(entry.wants.shape)
        elif self._entries.get(entry.wants.key) is entry and entry.standing is State.WAITING:
            self._due.put(entry.wants.key, now_s + entry.backoff_s)

    def waiting_shapes(self) -> list[PodShape]:
        return list(self._waiting)

    def nodes_changed(self, now_s: float) -> None:
        """The sentences of all who wait may be out of date."""
        for ranks in self._waiting.values():
            for rank in ranks:
                due_s = now_s + self._entries[rank.key].backoff_s
                if due_s < (self._due.order_of(rank.key) or due_s):
                    self._due.put(rank.key, due_s)

    def _is_tried(self, entry: PendingPod) -> bool:
        """Whether nobody replaced or dropped the entry while it was out."""
        return self._entries.get(entry.wants.key) is entry and entry.standing is State.TRIED

    def _make_ready(self, entry: PendingPod) -> None:
        self._leave(entry)
        entry.standing = State.READY
        insort(self._ready, entry.wants.rank)

    def room_appeared(self, shape: PodShape) -> None:
        """Wake the first of a shape that the room fits."""
        if ranks := self._waiting.get(shape):
            self._make_ready(self._entries[ranks[0].key])

    def _leave(self, entry: PendingPod) -> None:
        rank, shape = entry.wants.rank, entry.wants.shape
        self._due.discard(rank.key)
        if entry.standing is State.READY:
            _remove(self._ready, rank)
        elif entry.standing is State.WAITING:
            _remove(self._waiting[shape], rank)
            if not self._waiting[shape]:
                del self._waiting[shape]


def _remove(ranks: list[Rank], rank: Rank) -> None:
    at = bisect_left(ranks, rank)
    if at < len(ranks) and ranks[at] == rank:
        del ranks[at]
