"""What a Pod asks of a node, read from its spec once: its shape, and the amounts and ports that it takes.

Two Pods with the same `PodShape` are the same to every node: what one of them does not fit, the other does not fit either. The
queue and the fleet lean on that, so whatever a predicate or a score reads of a Pod belongs into the shape.

The rules of amounts are Kubernetes': init containers run one after another before the others start, so they count by their
largest; restartable ones (sidecars) stay and are added; what the Pod itself asks replaces the sum of its containers; overhead
comes on top. cpu is counted in thousandths and everything else in whole units, each rounded up once per Pod: a Pod never takes
less than it asked for.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from applecart.api.containers import Container
from applecart.api.meta import Key
from applecart.api.nodes import RuntimeClass
from applecart.api.pods import Pod, PodSpec
from applecart.api.quantity import NANOS, BadQuantity, parse_quantity
from applecart.api.scheduling import Affinity, NodeSelector, PreferredNode, Toleration

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
ALWAYS = "Always"  # the restart policy that makes an init container a sidecar
ANY_ADDRESS = "0.0.0.0"
TCP = "TCP"
NANOS_PER_MILLI = NANOS // 1000
HUGE_PAGES = "hugepages-"

Amounts = dict[str, int]  # by resource: thousandths of a cpu, whole units of everything else

UNDATED = datetime.min.replace(tzinfo=UTC)
DO_NOT_SCHEDULE = "DoNotSchedule"
NEVER = "Never"


class HostPort(NamedTuple):
    """A port of the host that a container takes for itself."""

    address: str
    protocol: str
    port: int


def requests_of(spec: PodSpec, overhead: Mapping[str, str]) -> Amounts:
    """The resources a Pod takes; those it takes nothing of are left out."""
    total = _containers_nanos(spec)
    if spec.resources is not None:
        asked = spec.resources.requests.items()
        total.update(_nanos({name: text for name, text in asked if name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)}))
    _add(total, _nanos(overhead))
    return {name: -(-nanos // _unit(name)) for name, nanos in total.items() if nanos > 0}


def amounts_of(quantities: Mapping[str, str]) -> Amounts:
    """What a node offers. An unreadable quantity offers nothing."""
    return {name: nanos // _unit(name) for name, nanos in _nanos(quantities).items()}


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    sidecars = (container for container in spec.init_containers if container.restart_policy == ALWAYS)
    return tuple(
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or TCP, port.host_port)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def _unit(resource: str) -> int:
    return NANOS_PER_MILLI if resource == CPU else NANOS


def _containers_nanos(spec: PodSpec) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in spec.containers:
        _add(total, _container_nanos(container))
    sidecars: dict[str, int] = {}
    largest_start: dict[str, int] = {}
    for container in spec.init_containers:
        asked = _container_nanos(container)
        if container.restart_policy == ALWAYS:
            _add(total, asked)
            _add(sidecars, asked)
            starting = sidecars
        else:
            starting = dict(sidecars)
            _add(starting, asked)
        for name, nanos in starting.items():
            largest_start[name] = max(nanos, largest_start.get(name, 0))
    for name, nanos in largest_start.items():
        total[name] = max(nanos, total.get(name, 0))
    return total


def _container_nanos(container: Container) -> dict[str, int]:
    return _nanos(container.resources.requests) if container.resources is not None else {}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _nanos(quantities: Mapping[str, str]) -> dict[str, int]:
    """The API refuses what is no quantity; one that arrives anyway must not stop the scheduler and counts as nothing."""
    found: dict[str, int] = {}
    for name, text in quantities.items():
        try:
            found[name] = parse_quantity(text).nanos
        except BadQuantity:
            continue
    return found


class PodShape(msgspec.Struct, frozen=True, cache_hash=True):
    """Everything of a Pod that a node can tell."""

    selector: tuple[tuple[str, str], ...]
    tolerations: tuple[Toleration, ...]
    required: NodeSelector | None
    preferred: tuple[PreferredNode, ...]
    amounts: tuple[tuple[str, int], ...]
    ports: tuple[HostPort, ...]
    unserved: str  # what it asks that this scheduler does not do; empty for nearly all
    may_preempt: bool

    @property
    def steps(self) -> int:
        """What it costs to hold it against one node."""
        terms = [*(self.required.node_selector_terms if self.required is not None else ())]
        terms += [preferred.preference for preferred in self.preferred]
        requirements = [asked for term in terms for asked in (*term.match_expressions, *term.match_fields)]
        of_terms = len(terms) + len(requirements) + sum(len(asked.values) for asked in requirements)
        return 1 + len(self.selector) + len(self.tolerations) + len(self.amounts) + len(self.ports) + of_terms


class Rank(NamedTuple):
    """Who comes first: the higher priority, then the older, then by name."""

    less_priority: int  # negated
    created_at: datetime
    key: Key


class Wants(msgspec.Struct, frozen=True):
    uid: str
    shape: PodShape
    rank: Rank
    is_gated: bool = False

    @property
    def key(self) -> Key:
        return self.rank.key


def wants_of(pod: Pod, runtime_class: RuntimeClass | None = None) -> Wants:
    rank = Rank(-(pod.spec.priority or 0), pod.metadata.creation_timestamp or UNDATED, pod.key)
    return Wants(pod.uid, _shape_of(pod.spec, runtime_class), rank, bool(pod.spec.scheduling_gates))


def amounts_taken(pod: Pod, runtime_class: RuntimeClass | None = None) -> Amounts:
    return requests_of(pod.spec, _overhead(pod.spec, runtime_class))


def _shape_of(spec: PodSpec, runtime_class: RuntimeClass | None) -> PodShape:
    selector, tolerations = dict(spec.node_selector), spec.tolerations
    if runtime_class is not None and runtime_class.scheduling is not None:
        # A real API server copies these into the Pod; adding them once more changes nothing.
        selector.update(runtime_class.scheduling.node_selector)
        tolerations += tuple(known for known in runtime_class.scheduling.tolerations if known not in tolerations)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return PodShape(
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
