"""Which node a Pod gets, or the sentence why none, as the real scheduler words it.

Pods come in few shapes, so what only depends on shape and facts is judged once and kept until a Node changes; a decision then
walks the liked nodes only and stops at the first group with room. A refusal is kept until anything changes: a thousand Pods
that wait for the same full fleet cost one judgement. Pure: the same fleet and Pod give the same answer.

A refusal reads `0/3 nodes are available: 1 Too many pods, 2 node(s) had untolerated taint(s). ...`: the reasons with how many
nodes gave each, sorted as text. This scheduler never evicts a Pod for another (I7), so the second half only says
whether evicting could have helped at all.
"""

from collections import Counter, OrderedDict
from collections.abc import Generator

import msgspec

from applecart.embedded.controllers.scheduler.fit import (
    Liking,
    emptiness,
    has_room,
    liking,
    refused_by_facts,
    refuses_all,
    shortage,
)
from applecart.embedded.controllers.scheduler.fleet import Fleet, NodeRoom
from applecart.embedded.controllers.scheduler.pod_shape import PodShape

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"  # the real one looks for devices to take back first; there are none here
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."
GATED = "Scheduling is blocked due to non-empty scheduling gates"

STEPS_OF_A_TURN = 10_000  # a few milliseconds; an ordinary Pod and a thousand nodes stay below
KEPT_SHAPES = 256  # a fleet has tens; more only costs judging again


def unschedulable(node_count: int, reasons: Counter[str], held_by_pods: int, *, may_preempt: bool) -> str:
    """No node fits. `held_by_pods` nodes lack only what other Pods hold."""
    return refused_everywhere(node_count, _histogram(reasons), held_by_pods, may_preempt=may_preempt)


def refused_everywhere(node_count: int, why: str, held_by_pods: int = 0, *, may_preempt: bool) -> str:
    """The Pod itself is why no node fits."""
    if node_count == 0:
        return NO_NODES
    preemption = NEVER_PREEMPTS
    if may_preempt:
        verdicts = Counter({NO_VICTIMS: held_by_pods, NOT_HELPFUL: node_count - held_by_pods})
        preemption = f"{_available(node_count)} {_histogram(verdicts)}."
    return f"{_available(node_count)} {why}. {NO_CLAIMS}, preemption: {preemption}"


def assigned(namespace: str, name: str, node: str) -> str:
    return f"Successfully assigned {namespace}/{name} to {node}"


def _available(node_count: int) -> str:
    return f"0/{node_count} nodes are available:"


def _histogram(reasons: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count > 0))


class Decision(msgspec.Struct, frozen=True):
    """A node, or why there is none."""

    node: str = ""
    message: str = ""


class Turn:
    """Counts the steps of a long work, so that others get a turn in between."""

    def __init__(self) -> None:
        self._left = STEPS_OF_A_TURN

    def spend(self, steps: int) -> bool:
        """Count these; true when there was no time left for them, and the next turn begins with them."""
        self._left -= steps
        if self._left >= 0:
            return False
        self._left = STEPS_OF_A_TURN - steps
        return True


class _Judged(msgspec.Struct):
    """A shape against all nodes."""

    facts_version: int
    liked: tuple[tuple[NodeRoom, ...], ...]  # the nodes that facts allow, best liked first
    reasons: tuple[str, ...]  # of the others
    refusal: str = ""
    refusal_version: int = -1


class Decider:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._kept: OrderedDict[PodShape, _Judged] = OrderedDict()

    def decide(self, shape: PodShape) -> Generator[None, None, Decision]:
        """Yields where others may have a turn; when the fleet changes there, the decision is about several moments."""
        version, turn = self._fleet.version, Turn()
        judged = yield from self._judged(shape, turn)
        if judged.refusal_version == version:
            return Decision(message=judged.refusal)
        if not refuses_all(shape):
            for group in judged.liked:
                best = yield from self._best(shape, group, turn)
                if best is not None:
                    return Decision(node=best.facts.name)
        refusal = yield from self._refusal(shape, judged, turn)
        judged.refusal, judged.refusal_version = refusal, version
        return Decision(message=refusal)

    def _best(self, shape: PodShape, group: tuple[NodeRoom, ...], turn: Turn) -> Generator[None, None, NodeRoom | None]:
        best, best_left, steps = None, 0, shape.steps
        for room in group:  # sorted by name, so the first of equals stays
            if turn.spend(steps):
                yield
            if not has_room(shape, room):
                continue
            left = emptiness(room.facts, room.free, room.pod_count)
            if best is None or left > best_left:
                best, best_left = room, left
        return best

    def _judged(self, shape: PodShape, turn: Turn) -> Generator[None, None, _Judged]:
        kept, facts_version, steps = self._kept.get(shape), self._fleet.facts_version, shape.steps
        if kept is not None and kept.facts_version == facts_version:
            self._kept.move_to_end(shape)
            return kept
        groups: dict[Liking, list[NodeRoom]] = {}
        reasons = []
        for room in sorted(self._fleet, key=lambda room: room.facts.name):
            if turn.spend(steps):
                yield
            if reason := refused_by_facts(shape, room.facts):
                reasons.append(reason)
            else:
                groups.setdefault(liking(shape, room.facts), []).append(room)
        liked = tuple(tuple(groups[like]) for like in sorted(groups))
        self._kept[shape] = judged = _Judged(facts_version, liked, tuple(reasons))
        self._kept.move_to_end(shape)
        if len(self._kept) > KEPT_SHAPES:
            self._kept.popitem(last=False)
        return judged

    def _refusal(self, shape: PodShape, judged: _Judged, turn: Turn) -> Generator[None, None, str]:
        allowed = [room for group in judged.liked for room in group]
        node_count = len(allowed) + len(judged.reasons)
        if why := refuses_all(shape):
            return refused_everywhere(node_count, why, may_preempt=shape.may_preempt)
        reasons, held_by_pods, steps = Counter(judged.reasons), 0, shape.steps
        for room in allowed:
            if turn.spend(steps):
                yield
            if (found := shortage(shape, room)) is not None:
                reasons.update(found.reasons)
                held_by_pods += found.is_held_by_pods
        return unschedulable(node_count, reasons, held_by_pods, may_preempt=shape.may_preempt)
