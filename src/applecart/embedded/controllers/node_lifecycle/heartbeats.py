"""Who was heard of, and who has been silent for a whole grace period.

A heartbeat is any change of what a Node's agent writes (its Lease, its Ready condition), noted by our own monotonic clock, so
neither a host's clock nor a jump of ours makes a Node look dead. The clock of silence only runs while we look: two looks too
far apart (the API was away, this process slept or has just begun) mean that a heartbeat may have been missed, and everybody
gets a fresh grace period (I12). Pure: reads no clock and no API.
"""

from collections.abc import Iterable

import msgspec

from applecart.api.conditions import READY
from applecart.api.coordination import Lease
from applecart.api.nodes import Node

Mark = tuple[str, str]  # of a Lease and of a Ready condition; compared for equality only


class Timing(msgspec.Struct, frozen=True):
    look_every_s: float = 5.0
    grace_s: float = 50.0  # five missed renewals of a Lease
    startup_grace_s: float = 60.0  # for a Node whose agent never posted a status
    nodes_per_s: float = 0.1  # lost Nodes whose Pods may begin to leave; a wave of losses is more often ours than theirs
    slow_nodes_per_s: float = 0.01  # the same in a large zone of which more than half is lost
    deadline_s: float = 30.0  # for all calls about one Node or Pod (I13)

    @property
    def longest_gap_s(self) -> float:
        """Two looks further apart than this did not see what happened between them."""
        return 2 * self.look_every_s


class Seen(msgspec.Struct, frozen=True):
    """What one look sees of a Node's agent."""

    name: str
    uid: str
    mark: Mark
    has_posted: bool  # a status, at least once


class _Beat(msgspec.Struct):
    uid: str
    mark: Mark
    heard_s: float
    grace_s: float = 0.0
    live_mark: Mark | None = None  # what a live read showed while the looks lagged behind


def seen(node: Node, lease: Lease | None) -> Seen:
    ready = node.condition(READY)
    renewed = (lease.spec.renew_time or "") if lease is not None else ""
    posted = str(ready.last_heartbeat_time) if ready is not None else ""
    return Seen(node.name, node.uid, (renewed, posted), ready is not None)


class Heartbeats:
    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._beats: dict[str, _Beat] = {}
        self._looked_s: float | None = None

    def look(self, now_s: float, nodes: Iterable[Seen]) -> bool:
        """Take in what is seen now; whether the time since the last look must not count."""
        is_gap = not self.is_attentive(now_s)
        self._looked_s = now_s
        known, self._beats = self._beats, {}
        for node in nodes:
            beat = known.get(node.name)
            if is_gap or beat is None or beat.uid != node.uid or beat.mark != node.mark:
                beat = _Beat(node.uid, node.mark, now_s)
            beat.grace_s = self._timing.grace_s if node.has_posted else self._timing.startup_grace_s
            self._beats[node.name] = beat
        return is_gap

    def confirm(self, now_s: float, live: Seen) -> bool:
        """Whether a live read agrees that nothing was heard; one that shows a heartbeat counts as such."""
        beat = self._beats.get(live.name)
        if beat is None or beat.uid != live.uid:
            return False
        if live.mark in (beat.mark, beat.live_mark):
            return True
        beat.live_mark, beat.heard_s = live.mark, now_s
        return False

    def forgive(self, now_s: float) -> None:
        """A fresh grace period for everybody."""
        for beat in self._beats.values():
            beat.heard_s = now_s

    def is_attentive(self, now_s: float) -> bool:
        """Whether the last look is recent enough to act on."""
        return self._looked_s is not None and now_s - self._looked_s <= self._timing.longest_gap_s

    def is_silent(self, name: str) -> bool:
        """Nothing was heard for the whole grace period, as of the last look."""
        beat = self._beats.get(name)
        return self._looked_s is not None and beat is not None and self._looked_s - beat.heard_s > beat.grace_s
