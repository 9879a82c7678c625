"""What a Pod asks of a node, read from its spec once.

Two Pods with the same `shape` are the same to every node: what one of them does not fit, the other does not fit either. The
queue and the fleet lean on that, so whatever a predicate or a score reads of a Pod belongs into the shape.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from applecart.api.meta import Key
from applecart.api.nodes import RuntimeClass
from applecart.api.pods import Pod, PodSpec
from applecart.api.scheduling import Affinity, NodeSelector, PreferredNode, Toleration
from applecart.embedded.controllers.scheduler.requests import Amounts, HostPort, host_ports_of, requests_of

UNDATED = datetime.min.replace(tzinfo=UTC)
DO_NOT_SCHEDULE = "DoNotSchedule"
NEVER = "Never"


class Shape(msgspec.Struct, frozen=True):
    """Everything of a Pod that a node can tell."""

    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    required: NodeSelector | None
    preferred: tuple[PreferredNode, ...]
    amounts: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...]
    unserved: str  # what it asks that this scheduler does not do; empty for nearly all
    may_preempt: bool


class Rank(NamedTuple):
    """Who comes first: the higher priority, then the older, then by name."""

    less_priority: int  # negated
    created_at: datetime
    key: Key


class Wants(msgspec.Struct, frozen=True):
    uid: str
    shape: Shape
    rank: Rank
    is_gated: bool = False

    @property
    def key(self) -> Key:
        return self.rank.key


def wants_of(pod: Pod, runtime_class: RuntimeClass | None = None) -> Wants:
    return Wants(pod.uid, _shape_of(pod.spec, runtime_class), rank_of(pod), bool(pod.spec.scheduling_gates))


def rank_of(pod: Pod) -> Rank:
    return Rank(-(pod.spec.priority or 0), pod.metadata.creation_timestamp or UNDATED, pod.key)


def amounts_taken(pod: Pod, runtime_class: RuntimeClass | None = None) -> Amounts:
    return requests_of(pod.spec, _overhead(pod.spec, runtime_class))


def _shape_of(spec: PodSpec, runtime_class: RuntimeClass | None) -> Shape:
    selector, tolerations = dict(spec.node_selector), spec.tolerations
    if runtime_class is not None and runtime_class.scheduling is not None:
        # A real API server copies these into the Pod; adding them once more changes nothing.
        selector.update(runtime_class.scheduling.node_selector)
        tolerations += tuple(known for known in runtime_class.scheduling.tolerations if known not in tolerations)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return Shape(
        selector=tuple(sorted(selector.items())),
        tolerations=tolerations,
        required=affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None,
        preferred=affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else (),
        amounts=tuple(sorted(requests_of(spec, _overhead(spec, runtime_class)).items())),
        ports=host_ports_of(spec),
        unserved=_unserved(spec),
        may_preempt=spec.preemption_policy != NEVER,
    )


def _overhead(spec: PodSpec, runtime_class: RuntimeClass | None) -> Mapping[str, str]:
    if spec.overhead or runtime_class is None or runtime_class.overhead is None:
        return spec.overhead
    return runtime_class.overhead.pod_fixed


def _unserved(spec: PodSpec) -> str:
    """Rules about other Pods that must hold. Placing the Pod as if it had not asked would break a promise silently."""
    affinity = spec.affinity or Affinity()
    if affinity.pod_affinity is not None and affinity.pod_affinity.required_during_scheduling_ignored_during_execution:
        return "required pod affinity"
    away_from = affinity.pod_anti_affinity
    if away_from is not None and away_from.required_during_scheduling_ignored_during_execution:
        return "required pod anti-affinity"
    if any(spread.when_unsatisfiable == DO_NOT_SCHEDULE for spread in spec.topology_spread_constraints):
        return "a topology spread constraint with DoNotSchedule"
    return ""
