"""What a path and its selectors mean to an API server, without knowing the kinds beforehand."""

from typing import NamedTuple

from tests.kube.memory_refusals import bad_request, unknown_path
from tests.kube.memory_selectors import BadSelector, Holds, field_selector, label_selector
from tests.kube.memory_store import Kind, Place

CLUSTER_SCOPED = frozenset(
    (
        "namespaces",
        "nodes",
        "clusterroles",
        "clusterrolebindings",
        "customresourcedefinitions",
        "runtimeclasses",
        "priorityclasses",
    )
)


class Address(NamedTuple):
    """What a path means."""

    kind: Kind
    version: str
    namespace: str
    name: str
    subresource: str

    @property
    def place(self) -> Place:
        return Place(self.kind, self.namespace, self.name)

    @property
    def api_version(self) -> str:
        return f"{self.kind.group}/{self.version}" if self.kind.group else self.version

    @property
    def is_built_in(self) -> bool:
        return "." not in self.kind.group or self.kind.group.endswith(".k8s.io")


def address(path: str) -> Address:
    """Read a path; a version of a group without a resource is no address."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = *rest, *([""] * (3 - len(rest)))
    if more:
        raise unknown_path()
    return Address(Kind(group, plural), version, namespace, name, subresource)


def selector(at: Address, query: dict[str, str]) -> Holds:
    try:
        labels = label_selector(query.get("labelSelector", ""))
        fields = field_selector(query.get("fieldSelector", ""), at.kind.plural)
    except BadSelector as error:
        raise bad_request(str(error)) from None
    return lambda obj: labels(obj) and fields(obj)
