"""In which order objects are created in another cluster: what others need comes before them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from applecart.api.meta import Resource
from applecart.cli.api.portable import is_built_in

T = TypeVar("T")

FIRST = (
    "customresourcedefinitions.apiextensions.k8s.io",
    "namespaces",
    "priorityclasses.scheduling.k8s.io",
    "runtimeclasses.node.k8s.io",
    "storageclasses.storage.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "serviceaccounts",  # before Secrets: a token Secret without its account is deleted
    "clusterrolebindings.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "secrets",
    "configmaps",
    "persistentvolumes",
    "persistentvolumeclaims",
    "services",
)
LAST = (
    "pods",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",  # else they would judge the rest of the import
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
)
_RANKS = {label: rank for rank, label in enumerate(FIRST)}
_BUILT_IN, _CUSTOM, _LAST = len(FIRST), len(FIRST) + 1, len(FIRST) + 2


def rank(resource: Resource) -> tuple[int, str]:
    """Sorts kinds into the order of creation."""
    if resource.label in LAST:
        return _LAST + LAST.index(resource.label), resource.label
    other = _BUILT_IN if is_built_in(resource) else _CUSTOM
    return _RANKS.get(resource.label, other), resource.label


def owners_first(objects: Sequence[T], owners: Mapping[int, Iterable[int]]) -> list[T]:
    """The objects in their order, but each after its owners; `owners` has positions. A circle of owners is cut somewhere."""
    placed: list[T] = []
    seen: set[int] = set()
    for position in range(len(objects)):
        waiting = [position]
        while waiting:
            here = waiting[-1]
            above = [owner for owner in owners.get(here, ()) if owner not in seen and owner not in waiting]
            if here not in seen and above:
                waiting.append(above[0])
                continue
            waiting.pop()
            if here not in seen:
                seen.add(here)
                placed.append(objects[here])
    return placed
