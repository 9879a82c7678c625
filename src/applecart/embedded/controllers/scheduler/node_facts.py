"""What a Node says about itself that decides who may run on it.

Heartbeats and everything else that no decision reads are left out, so two Nodes with equal facts are the same to every Pod
and a change of anything else wakes nobody.
"""

import msgspec

from applecart.api.conditions import READY
from applecart.api.nodes import Node, Taint
from applecart.embedded.controllers.scheduler.requests import PODS, Amounts, amounts_of

NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
NOT_READY_TAINT = Taint(key="node.kubernetes.io/not-ready", effect=NO_SCHEDULE)
UNREACHABLE_TAINT = Taint(key="node.kubernetes.io/unreachable", effect=NO_SCHEDULE)


class NodeFacts(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}
    is_unschedulable: bool = False
    hard_taints: tuple[Taint, ...] = ()  # keep a Pod away
    soft_taints: tuple[Taint, ...] = ()  # make another node better
    allocatable: Amounts = {}

    @property
    def allowed_pods(self) -> int:
        return self.allocatable.get(PODS, 0)


def facts_of(node: Node) -> NodeFacts:
    taints = (*node.spec.taints, *_taints_of_readiness(node))
    return NodeFacts(
        name=node.name,
        labels=node.metadata.labels,
        is_unschedulable=node.spec.unschedulable,
        hard_taints=tuple(_undated(taint) for taint in taints if taint.effect in (NO_SCHEDULE, NO_EXECUTE)),
        soft_taints=tuple(_undated(taint) for taint in taints if taint.effect == PREFER_NO_SCHEDULE),
        allocatable=amounts_of(node.status.allocatable),
    )


def _taints_of_readiness(node: Node) -> tuple[Taint, ...]:
    """The taint that the node lifecycle controller is about to set: a Pod must not slip in before it does."""
    ready = node.condition(READY)
    if ready is None or ready.status == "True":
        return ()
    return (NOT_READY_TAINT if ready.status == "False" else UNREACHABLE_TAINT,)


def _undated(taint: Taint) -> Taint:
    return Taint(key=taint.key, effect=taint.effect, value=taint.value)
