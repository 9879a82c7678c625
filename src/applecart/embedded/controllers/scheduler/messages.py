"""The sentences that a person reads in a condition or an Event, as the real scheduler words them.

`0/3 nodes are available: 1 Too many pods, 2 node(s) had untolerated taint(s). preemption: ...`: the reasons with how many
nodes gave each, sorted as text. This scheduler never evicts a Pod for another (I7), so the second half only says whether
evicting could have helped at all.
"""

from collections import Counter
from collections.abc import Iterable

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"  # the real one looks for devices to take back first; there are none here
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."
GATED = "Scheduling is blocked due to non-empty scheduling gates"


def unschedulable(node_count: int, reasons: Iterable[str], held_by_pods: int, *, may_preempt: bool) -> str:
    """No node fits. `held_by_pods` nodes lack only what other Pods hold."""
    if node_count == 0:
        return NO_NODES
    return f"{_available(node_count)} {_histogram(Counter(reasons))}. {_preemption(node_count, held_by_pods, may_preempt)}"


def refused_everywhere(node_count: int, why: str, *, may_preempt: bool) -> str:
    """The Pod itself is why no node fits."""
    if node_count == 0:
        return NO_NODES
    return f"{_available(node_count)} {why}. {_preemption(node_count, 0, may_preempt)}"


def assigned(namespace: str, name: str, node: str) -> str:
    return f"Successfully assigned {namespace}/{name} to {node}"


def _preemption(node_count: int, held_by_pods: int, may_preempt: bool) -> str:
    if not may_preempt:
        return f"{NO_CLAIMS}, preemption: {NEVER_PREEMPTS}"
    verdicts = Counter({NO_VICTIMS: held_by_pods, NOT_HELPFUL: node_count - held_by_pods})
    return f"{NO_CLAIMS}, preemption: {_available(node_count)} {_histogram(verdicts)}."


def _available(node_count: int) -> str:
    return f"0/{node_count} nodes are available:"


def _histogram(reasons: Counter[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items() if count > 0))
