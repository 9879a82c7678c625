"""Amounts of resources: which may be named, which amounts make sense, and the class of service they give a Pod."""

from typing import Any

from applecart.api.quantity import Quantity, quantity_of
from applecart.embedded.field_errors import FieldError, forbidden, invalid, required
from applecart.embedded.kinds.names import NEGATIVE, qualified_name_problems
from applecart.embedded.remembered import remembered

HUGE_PAGES = "hugepages-"
_OF_CONTAINERS = {"cpu", "memory", "ephemeral-storage"}
_COUNTS = {
    "pods",
    "quotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "resourcequotas",
}
_OF_QUOTAS = {f"{side}.{name}" for side in ("requests", "limits") for name in ("cpu", "memory", "ephemeral-storage")} | {
    "storage",
    "requests.storage",
}
_STANDARD = _OF_CONTAINERS | _COUNTS | _OF_QUOTAS
CACHED_NAMES = 256
_COUNTED = ("cpu", "memory")


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


@remembered(CACHED_NAMES)
def is_extended(name: str) -> bool:
    """A device of somebody's: counted in whole pieces."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name_problems(f"requests.{name}")


def may_be_overcommitted(name: str) -> bool:
    return is_native(name) and not is_huge_pages(name)


@remembered(CACHED_NAMES)
def resource_name_problems(name: str) -> tuple[str, ...]:
    if problems := qualified_name_problems(name):
        return tuple(problems)
    if "/" not in name and name not in _STANDARD and not is_huge_pages(name):
        return ("must be a standard resource type or fully qualified",)
    return ()


@remembered(CACHED_NAMES)
def container_resource_name_problems(name: str) -> tuple[str, ...]:
    problems = resource_name_problems(name)
    if "/" not in name:
        if name not in _OF_CONTAINERS and not is_huge_pages(name):
            return (*problems, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        return (*problems, "doesn't follow extended resource name standard")
    return problems


def amount_of(value: Any, path: str, name: str, errors: list[FieldError]) -> Quantity:
    """The amount; what is wrong with it goes to `errors`. Decoding has refused what is none."""
    amount = quantity_of(value)
    if amount.nanos < 0:
        errors.append(invalid(path, amount.canonical, NEGATIVE))
    if not amount.is_whole and (name in _COUNTS or is_extended(name)):
        errors.append(invalid(path, amount.canonical, "must be an integer"))
    return amount


def validate_requirements(resources: dict[str, Any] | None, path: str, errors: list[FieldError]) -> None:
    """Limits and requests of one container."""
    if not resources:
        return
    limits: dict[str, Quantity] = {}
    for name, value in (resources.get("limits") or {}).items():
        at = f"{path}.limits[{name}]"
        errors += [invalid(at, name, problem) for problem in container_resource_name_problems(name)]
        limits[name] = amount_of(value, at, name, errors)
    requests = resources.get("requests") or {}
    for name, value in requests.items():
        at = f"{path}.requests[{name}]"
        errors += [invalid(at, name, problem) for problem in container_resource_name_problems(name)]
        amount = amount_of(value, at, name, errors)
        if (limit := limits.get(name)) is not None:
            if amount.nanos != limit.nanos and not may_be_overcommitted(name):
                text = f"must be equal to {name} limit of {limit.canonical}"
                errors.append(invalid(f"{path}.requests", amount.canonical, text))
            elif amount.nanos > limit.nanos:
                text = f"must be less than or equal to {name} limit of {limit.canonical}"
                errors.append(invalid(f"{path}.requests", amount.canonical, text))
        elif not may_be_overcommitted(name):
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
    named = {*limits, *requests}
    if any(is_huge_pages(name) for name in named) and not named & {"cpu", "memory"}:
        errors.append(forbidden(path, "HugePages require cpu or memory"))


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
        nanos = quantity_of(amounts[name]).nanos if amounts and name in amounts else 0
        if nanos > 0:
            sums[name] = sums.get(name, 0) + nanos
            found += 1
    return found
