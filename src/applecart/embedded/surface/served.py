"""What is served, in the order that clients rely on, and which Kubernetes the server behaves like.

Groups come by importance, versions newest and most stable first. The first version of a group is the preferred one, and the
first group that knows a short name wins in kubectl, so the order is part of the contract. Clients choose behaviour by major and
minor of `/version`; people read `+embedded` there and know what they talk to.
"""

import platform
import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

from applecart.api.meta import Resource
from applecart.embedded.kinds import builtin
from applecart.embedded.kinds.kind import Subresource

# The real server's order by priority. Custom groups follow by name; metrics come last, as every metrics server registers them.
GROUP_ORDER = (
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
)
COMPUTED_GROUP = "metrics.k8s.io"

_VERSION = re.compile(r"v([1-9][0-9]{0,17})(?:(alpha|beta)([1-9][0-9]{0,17}))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}


class Served(Protocol):
    """A kind as clients see it: a stored one or one that is only answered."""

    @property
    def resource(self) -> Resource: ...
    @property
    def storage(self) -> Resource: ...
    @property
    def singular(self) -> str: ...
    @property
    def list_kind(self) -> str: ...
    @property
    def verbs(self) -> tuple[str, ...]: ...
    @property
    def short_names(self) -> tuple[str, ...]: ...
    @property
    def categories(self) -> tuple[str, ...]: ...
    @property
    def subresources(self) -> tuple[Subresource, ...]: ...
    @property
    def is_custom(self) -> bool: ...


def groups_of(kinds: Iterable[Served]) -> dict[str, dict[str, list[Served]]]:
    """The versions of each group in the order of discovery, the core group "" and preferred versions first; kinds by name."""
    found: dict[str, dict[str, list[Served]]] = {}
    for kind in sorted(kinds, key=lambda kind: kind.resource.plural):
        found.setdefault(kind.resource.group, {}).setdefault(kind.resource.version, []).append(kind)
    return {
        group: {version: found[group][version] for version in sorted(found[group], key=version_rank)}
        for group in sorted(found, key=_group_rank)
    }


def _group_rank(name: str) -> tuple[int, int, str]:
    if name == "":
        return (0, 0, "")
    if name in GROUP_ORDER:
        return (1, GROUP_ORDER.index(name), "")
    return (3 if name == COMPUTED_GROUP else 2, 0, name)


def version_rank(version: str) -> tuple[int, int, int, int, str]:
    """Sorts v2 before v1, v1 before v1beta1, and names that are no versions last."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    return (0, _STABILITY[found[2]], -int(found[1]), -int(found[3] or 0), "")


class VirtualKind(msgspec.Struct, frozen=True):
    """What discovery and OpenAPI need to know of such a kind."""

    resource: Resource
    verbs: tuple[str, ...] = ("create",)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    is_custom: bool = False

    @property
    def storage(self) -> Resource:
        return self.resource

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    @property
    def list_kind(self) -> str:
        return f"{self.resource.kind}List"


VIRTUAL_KINDS: tuple[Served, ...] = tuple(VirtualKind(resource) for resource in builtin.VIRTUAL_RESOURCES)


MAJOR, MINOR, PATCH = 1, 36, 3
GIT_VERSION = f"v{MAJOR}.{MINOR}.{PATCH}+embedded"
BUILD_DATE = "1970-01-01T00:00:00Z"  # nothing of this server is built on a date

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def version_document() -> dict[str, str]:
    machine = platform.machine().lower()
    return {
        "major": str(MAJOR),
        "minor": str(MINOR),
        "emulationMajor": str(MAJOR),
        "emulationMinor": str(MINOR),
        "minCompatibilityMajor": str(MAJOR),
        "minCompatibilityMinor": str(MINOR - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": BUILD_DATE,
        "goVersion": "",
        "compiler": "",
        "platform": f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}",
    }
