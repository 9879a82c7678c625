"""Which Pods may lose our finalizer although the agent of their Node did not take it off.

A Pod qualifies only while it is being deleted and holds the finalizer that guards its VM, and only when that VM cannot matter
any more: its Node is confirmed gone, it never had a Node, or (when asked for) it ended long ago and its agent should have let
it go (I5). A Pod that may still run on a host that exists never qualifies (I7). Pure: reads no clock and no API;
`stuck_pods.py` finds out which Nodes are gone and `pod_release.py` carries the plan out.
"""

from collections.abc import Iterable, Set
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from applecart.api.finalizers import VM_CLEANUP
from applecart.api.meta import Key
from applecart.api.pods import Pod

AGENT_PATIENCE = timedelta(minutes=1)  # a working agent needs seconds for a Pod that ended; two of its retries fit in


class Cause(StrEnum):
    """Why a Pod qualifies; a label value."""

    NODE_GONE = "node-gone"
    NEVER_PLACED = "never-placed"
    FINISHED = "finished"


class Unstick(msgspec.Struct, frozen=True):
    """Take our finalizer off this Pod if it is still the revision we judged."""

    pod: Pod
    cause: Cause
    because: str

    @property
    def key(self) -> Key:
        return self.pod.key

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def revision(self) -> str:
        return self.pod.revision

    @property
    def others(self) -> tuple[str, ...]:
        """The finalizers that stay."""
        return others_of(self.pod)


class Keep(msgspec.Struct, frozen=True):
    """Leave this Pod alone."""

    pod: Pod
    because: str


def plan_unstick(pods: Iterable[Pod], gone: Set[str], now: datetime, *, finished_too: bool = False) -> list[Unstick]:
    """`gone` are Nodes of which the API itself said that they do not exist. `finished_too` includes Pods that ended on Nodes
    that exist."""
    verdicts = (judge(pod, gone, now, finished_too=finished_too) for pod in pods)
    return [verdict for verdict in verdicts if isinstance(verdict, Unstick)]


def judge(pod: Pod, gone: Set[str], now: datetime, *, finished_too: bool = False) -> Unstick | Keep:
    ends_at, node = pod.metadata.deletion_timestamp, pod.spec.node_name
    if ends_at is None:
        return Keep(pod, "it is not being deleted")
    if VM_CLEANUP not in pod.metadata.finalizers:
        return Keep(pod, _without_ours(pod))
    if not node:
        return Unstick(pod, Cause.NEVER_PLACED, "it never had a Node, so it has no VM")
    if node in gone:
        return Unstick(pod, Cause.NODE_GONE, f"its Node {node} does not exist")
    if not pod.is_terminal:
        return Keep(pod, f"its VM may still run on Node {node}; the agent there ends it")
    if not finished_too:
        return Keep(pod, f"the agent of Node {node} lets it go")
    # The API adds the grace period to the instant of the request, so this is the end of the grace period already.
    if now - ends_at <= AGENT_PATIENCE:
        return Keep(pod, f"the agent of Node {node} still has time to let it go")
    return Unstick(pod, Cause.FINISHED, f"it is {pod.status.phase}, and the agent of Node {node} did not let it go")


def suspected_nodes(pods: Iterable[Pod], node_names: Set[str] | None) -> set[str]:
    """Nodes that held Pods name and a list does not: worth asking for, one by one.

    None is a list that could not be read. An empty one is more often a fault than the truth, so it raises no suspicion either.
    """
    if not node_names:
        return set()
    return {pod.spec.node_name for pod in pods if is_held(pod) and pod.spec.node_name} - node_names


def is_held(pod: Pod) -> bool:
    """Being deleted, and our finalizer is in the way."""
    return pod.is_being_deleted and VM_CLEANUP in pod.metadata.finalizers


def others_of(pod: Pod) -> tuple[str, ...]:
    return tuple(name for name in pod.metadata.finalizers if name != VM_CLEANUP)


def _without_ours(pod: Pod) -> str:
    if others := others_of(pod):
        return f"it waits for {', '.join(others)}, which {'is' if len(others) == 1 else 'are'} not ours"
    return "it has no finalizer of ours" + (f"; Node {pod.spec.node_name} ends it" if pod.spec.node_name else "")
