"""Which of the nodes that fit is best. Lower is better, so that a plain sort decides.

Liking comes first: fewest soft taints, then most weight of preferred affinity (a runner prefers hosts that hold its golden).
Among equally liked nodes the emptiest wins, or with `packing` the fullest; then the name, so the same fleet gives the same
answer every time.
"""

from collections.abc import Mapping
from typing import NamedTuple

from applecart.embedded.controllers.scheduler.matching import is_tolerated, matches_term
from applecart.embedded.controllers.scheduler.node_facts import NodeFacts
from applecart.embedded.controllers.scheduler.requests import CPU, MEMORY
from applecart.embedded.controllers.scheduler.wants import Shape

SHARE_UNITS = 1_000_000  # shares are whole numbers, so no rounding of floats decides between two nodes
SHARED = (CPU, MEMORY)


class Liking(NamedTuple):
    """What the Pod's own words say about a node; depends on nothing that runs there."""

    soft_taints: int
    less_weight: int  # the preferred weight, negated


def liking(shape: Shape, facts: NodeFacts) -> Liking:
    soft = sum(not is_tolerated(taint, shape.tolerations) for taint in facts.soft_taints)
    weight = sum(
        preferred.weight for preferred in shape.preferred if matches_term(preferred.preference, facts.name, facts.labels)
    )
    return Liking(soft, -weight)


def emptiness(facts: NodeFacts, free: Mapping[str, int], pod_count: int) -> int:
    """How much of cpu, memory and Pod slots is left: the sum of three shares."""
    allowed = facts.allowed_pods
    left = (allowed - pod_count) * SHARE_UNITS // allowed if allowed > 0 else 0
    for resource in SHARED:
        offered = facts.allocatable.get(resource, 0)
        if offered > 0:
            left += free.get(resource, 0) * SHARE_UNITS // offered
    return left
