"""Whether the fleet as a whole looks sane enough to move Pods off lost Nodes, and how fast.

When no Node is ready, the fault is ours or the network's: nobody is moved. When more than half of a zone is lost, a small zone
stops and a large one goes on slowly. Else lost Nodes are taken one by one at a steady rate. The thresholds are the real
controller's. Pure: the caller says what time it is.
"""

from collections.abc import Iterable

import msgspec

from applecart.api.nodes import Node
from applecart.embedded.controllers.node_lifecycle.timing import Timing

REGION_LABEL = "topology.kubernetes.io/region"
ZONE_LABEL = "topology.kubernetes.io/zone"
OLD_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
NOT_COUNTED_LABEL = "node.kubernetes.io/exclude-disruption"
UNHEALTHY_SHARE = 0.55
FEW = 2  # lost Nodes that never make a zone suspicious, whatever share they are
LARGE_ZONE = 50  # Nodes; below that a zone that is mostly lost is left alone

Zone = tuple[str, str]


class Outlook(msgspec.Struct, frozen=True):
    """How the fleet looks: no Node is ready anywhere, or how many lost Nodes a second each zone may give up."""

    is_dark: bool
    nodes_per_s: dict[Zone, float] = {}


def zone_of(node: Node) -> Zone:
    labels = node.labels
    region = labels.get(OLD_REGION_LABEL, labels.get(REGION_LABEL, ""))
    return region, labels.get(OLD_ZONE_LABEL, labels.get(ZONE_LABEL, ""))


def outlook(nodes: Iterable[tuple[Node, bool]], timing: Timing) -> Outlook:
    """From all Nodes and whether each is ready."""
    counts: dict[Zone, tuple[int, int]] = {}
    for node, is_ready in nodes:
        if NOT_COUNTED_LABEL not in node.labels:
            ready, lost = counts.get(zone_of(node), (0, 0))
            counts[zone_of(node)] = (ready + is_ready, lost + (not is_ready))
    is_dark = not any(ready for ready, _ in counts.values())
    return Outlook(is_dark, {zone: _rate(ready, lost, timing) for zone, (ready, lost) in counts.items()})


def _rate(ready: int, lost: int, timing: Timing) -> float:
    is_partly_lost = ready > 0 and lost > FEW and lost / (ready + lost) >= UNHEALTHY_SHARE
    if not is_partly_lost:
        return timing.nodes_per_s  # also in a zone that is wholly lost while others live: its Pods have somewhere to go
    return timing.slow_nodes_per_s if ready + lost > LARGE_ZONE else 0.0


class Turns:
    """Lets one Node at a time go, at the rate of its zone."""

    def __init__(self) -> None:
        self._last_s: dict[Zone, float] = {}

    def take(self, zone: Zone, nodes_per_s: float, now_s: float) -> bool:
        last_s = self._last_s.get(zone)
        if nodes_per_s <= 0 or (last_s is not None and now_s - last_s < 1 / nodes_per_s):
            return False
        self._last_s[zone] = now_s
        return True
