"""How large a Pod's VM is: what it is limited to, else what it asks for, else what its image says.

A VM has whole cores and whole mebibytes. What is less than one is one, because a VM without a core does not start. An amount
set on the Pod as a whole counts where its container sets none.
"""

from typing import NamedTuple

from applecart.api.containers import Resources
from applecart.api.pods import Pod
from applecart.api.quantity import BadQuantity, Quantity, parse_quantity
from applecart.errors import BadInput

MILLI_PER_CORE = 1000
BYTES_PER_MIB = 1 << 20


class VmSize(NamedTuple):
    """None leaves it to the image."""

    cpu: int | None
    memory_mb: int | None  # MiB; Tart and its flag say MB


def vm_size(pod: Pod) -> VmSize:
    cpu = _amount(pod, "cpu")
    memory = _amount(pod, "memory")
    return VmSize(
        max(1, cpu.milli // MILLI_PER_CORE) if cpu else None,
        max(1, memory.value // BYTES_PER_MIB) if memory else None,
    )


def _amount(pod: Pod, resource: str) -> Quantity | None:
    """The first that is set and above zero."""
    of_container = pod.spec.containers[0].resources or Resources()
    of_pod = pod.spec.resources or Resources()
    for amounts in (of_container.limits, of_pod.limits, of_container.requests, of_pod.requests):
        text = amounts.get(resource)
        if text is None:
            continue
        try:
            found = parse_quantity(text)
        except BadQuantity as error:
            raise BadInput(f"Pod {pod.key} asks for {resource} {text!r}: {error}") from None
        if found.nanos > 0:
            return found
    return None
