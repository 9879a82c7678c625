"""The quality-of-service class of a Pod, from what its containers ask for and are limited to."""

from typing import Any

from applecart.api.quantity import BadQuantity, quantity_of

_COUNTED = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        _add(requests, resources.get("requests"))
        limited = _add(limits, resources.get("limits"))
        is_guaranteed = is_guaranteed and limited == len(_COUNTED)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(sums: dict[str, int], amounts: dict[str, Any] | None) -> int:
    """How many of the counted resources are there, above zero."""
    found = 0
    for name in _COUNTED:
        try:
            nanos = quantity_of(amounts[name]).nanos if amounts and name in amounts else 0
        except BadQuantity:  # validation refuses the Pod; its class does not matter
            nanos = 0
        if nanos > 0:
            sums[name] = sums.get(name, 0) + nanos
            found += 1
    return found
