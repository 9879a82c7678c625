"""What a Pod takes from the node it runs on: whole numbers per resource, and ports of the host.

The rules are Kubernetes': init containers run one after another before the others start, so they count by their largest;
restartable ones (sidecars) stay and are added; what the Pod itself asks replaces the sum of its containers; overhead comes on
top. cpu is counted in thousandths and everything else in whole units, each rounded up once per Pod: a Pod never takes less
than it asked for.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from applecart.api.containers import Container
from applecart.api.pods import PodSpec
from applecart.api.quantity import NANOS, BadQuantity, parse_quantity

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
ALWAYS = "Always"  # the restart policy that makes an init container a sidecar
ANY_ADDRESS = "0.0.0.0"
TCP = "TCP"
NANOS_PER_MILLI = NANOS // 1000
HUGE_PAGES = "hugepages-"

Amounts = dict[str, int]  # by resource: thousandths of a cpu, whole units of everything else


class HostPort(NamedTuple):
    """A port of the host that a container takes for itself."""

    address: str
    protocol: str
    port: int

    def meets(self, other: "HostPort") -> bool:
        """Whether only one of the two can be had."""
        if (self.port, self.protocol) != (other.port, other.protocol):
            return False
        return self.address == other.address or ANY_ADDRESS in (self.address, other.address)


def requests_of(spec: PodSpec, overhead: Mapping[str, str]) -> Amounts:
    """The resources a Pod takes; those it takes nothing of are left out."""
    total = _containers_nanos(spec)
    if spec.resources is not None:
        of_pod = {name: text for name, text in spec.resources.requests.items() if _is_for_whole_pods(name)}
        total.update(_nanos(of_pod))
    _add(total, _nanos(overhead))
    return {name: rounded_up(name, nanos) for name, nanos in total.items() if nanos > 0}


def amounts_of(quantities: Mapping[str, str]) -> Amounts:
    """What a node offers. An unreadable quantity offers nothing."""
    return {name: _rounded_down(name, nanos) for name, nanos in _nanos(quantities).items()}


def host_ports_of(spec: PodSpec) -> tuple[HostPort, ...]:
    sidecars = (container for container in spec.init_containers if container.restart_policy == ALWAYS)
    return tuple(
        HostPort(port.host_ip or ANY_ADDRESS, port.protocol or TCP, port.host_port)
        for container in (*sidecars, *spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def rounded_up(resource: str, nanos: int) -> int:
    unit = NANOS_PER_MILLI if resource == CPU else NANOS
    return -(-nanos // unit)


def _rounded_down(resource: str, nanos: int) -> int:
    return nanos // (NANOS_PER_MILLI if resource == CPU else NANOS)


def _containers_nanos(spec: PodSpec) -> dict[str, int]:
    total = _sum(spec.containers)
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


def _sum(containers: Iterable[Container]) -> dict[str, int]:
    total: dict[str, int] = {}
    for container in containers:
        _add(total, _container_nanos(container))
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


def _is_for_whole_pods(resource: str) -> bool:
    return resource in (CPU, MEMORY) or resource.startswith(HUGE_PAGES)
