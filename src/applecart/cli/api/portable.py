"""Which objects move to another cluster, in which form and in which order: what others need comes before them.

An object loses what belongs to the cluster it is in: its uid, revision, times, field owners, and for built-in kinds its status.
Owners are known by uid, which the other cluster gives anew, and an object that names an old uid would be collected. They are
noted by name in an annotation instead, from which `applecart api import` makes references again. What a cluster makes by itself
is left out, and so is what had ended: without its status it would run again (I4). Nothing here reads an API.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from applecart.api.meta import Resource
from applecart.api.pods import FAILED, SUCCEEDED

T = TypeVar("T")

Document = dict[str, Any]

OWNERS = "applecart.dev/exported-owners"
SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
OF_THE_CLUSTER = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
    "ownerReferences",
)
# Kept up by agents and controllers, computed, or about one cluster only; exported when asked for by name.
LEFT_KINDS = frozenset(
    {
        "apiservices.apiregistration.k8s.io",
        "certificatesigningrequests.certificates.k8s.io",
        "componentstatuses",
        "controllerrevisions.apps",
        "csinodes.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        "endpoints",
        "endpointslices.discovery.k8s.io",
        "events",
        "events.events.k8s.io",
        "flowschemas.flowcontrol.apiserver.k8s.io",
        "ipaddresses.networking.k8s.io",
        "leasecandidates.coordination.k8s.io",
        "leases.coordination.k8s.io",
        "nodes",
        "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
        "resourceslices.resource.k8s.io",
        "servicecidrs.networking.k8s.io",
        "storageversions.internal.apiserver.k8s.io",
        "volumeattachments.storage.k8s.io",
    }
)
ENDED = "it had ended, and would run again"
LEFT_GROUPS = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})
MADE_BY_CONTROLLERS = frozenset({"pods", "replicasets.apps", "jobs.batch"})
LEFT_OBJECTS = frozenset(
    {
        ("services", "default", "kubernetes"),
        ("configmaps", "kube-system", "extension-apiserver-authentication"),
        ("configmaps", "kube-system", "kube-apiserver-legacy-service-account-token-tracking"),
        ("priorityclasses.scheduling.k8s.io", "", "system-cluster-critical"),
        ("priorityclasses.scheduling.k8s.io", "", "system-node-critical"),
    }
)
ROOT_CA = "kube-root-ca.crt"
BOOTSTRAPPING = "kubernetes.io/bootstrapping"  # the label of roles that every server makes
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
DEFAULT_ACCOUNT_PARTS = frozenset({"apiVersion", "kind", "metadata", "secrets"})

# The order of creation.
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


class Left(msgspec.Struct, frozen=True):
    """An object that stays, and why."""

    because: str


def is_left_kind(resource: Resource) -> bool:
    return resource.label in LEFT_KINDS or resource.group in LEFT_GROUPS


def is_built_in(resource: Resource) -> bool:
    """Whether Kubernetes itself defines the kind. Its groups have no dot, or end in a name that nobody else may use."""
    group = resource.group
    return "." not in group or (group.endswith(".k8s.io") and not group.endswith(".x-k8s.io"))


def has_ended(resource: Resource, document: Document) -> bool:
    """Whether it is done for good: a Pod or Job whose end only its status tells."""
    status = _mapping(document.get("status"))
    if resource.label == "pods":
        return status.get("phase") in (SUCCEEDED, FAILED)
    conditions = status.get("conditions")
    if resource.label != "jobs.batch" or not isinstance(conditions, list):
        return False
    found = map(_mapping, conditions)
    return any(one.get("type") in ("Complete", "Failed") and one.get("status") == "True" for one in found)


def portable(resource: Resource, document: Document) -> Document | Left:
    """The object as another cluster can create it."""
    metadata = _mapping(document.get("metadata"))
    if because := _why_left(resource, document, metadata):
        return Left(because)
    kept = {name: value for name, value in metadata.items() if name not in OF_THE_CLUSTER}
    if owners := exported_owners(metadata):
        kept["annotations"] = {**_mapping(kept.get("annotations")), OWNERS: msgspec.json.encode(owners).decode()}
    moved: Document = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": kept}
    for name, value in document.items():
        is_computed = name == "status" and is_built_in(resource)
        if name not in moved and not is_computed:
            moved[name] = value
    return _of_no_cluster(resource, moved)


def exported_owners(metadata: Document) -> list[Document]:
    """The owner references without their uid."""
    owners = metadata.get("ownerReferences")
    if not isinstance(owners, list):
        return []
    return [{name: value for name, value in _mapping(owner).items() if name != "uid"} for owner in owners]


def _why_left(resource: Resource, document: Document, metadata: Document) -> str | None:
    label, namespace, name = resource.label, str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
    if metadata.get("deletionTimestamp"):
        return "it is being deleted"
    if label in MADE_BY_CONTROLLERS and _is_controlled(metadata):
        return "its controller makes it anew"
    if has_ended(resource, document):
        return ENDED
    if BOOTSTRAPPING in _mapping(metadata.get("labels")) or (label, namespace, name) in LEFT_OBJECTS:
        return "every cluster has its own"
    if (label == "namespaces" and name in SYSTEM_NAMESPACES) or (label == "configmaps" and name == ROOT_CA):
        return "every cluster has its own"
    if label == "serviceaccounts" and name == "default" and _says_nothing(document, metadata):
        return "every cluster has its own"
    return None


def _is_controlled(metadata: Document) -> bool:
    return any(owner.get("controller") is True for owner in exported_owners(metadata))


def _says_nothing(account: Document, metadata: Document) -> bool:
    has_more = any(value for name, value in account.items() if name not in DEFAULT_ACCOUNT_PARTS)
    return not (has_more or metadata.get("labels") or metadata.get("annotations"))


def _of_no_cluster(resource: Resource, document: Document) -> Document:
    """Without what another part of the cluster filled in. Changes only what `portable` made."""
    match resource.label:
        case "namespaces":
            _drop(document, "spec", ("finalizers",))
        case "pods":
            _drop(document, "spec", ("nodeName",))
        case "serviceaccounts":
            document.pop("secrets", None)
        case "secrets" if document.get("type") == ACCOUNT_TOKEN:
            document.pop("data", None)  # the other cluster's controller fills it with a token that is good there
            _drop(document["metadata"], "annotations", (ACCOUNT_UID,))
        case "services" if _mapping(document.get("spec")).get("clusterIP") != "None":
            _drop(document, "spec", ("clusterIP", "clusterIPs", "healthCheckNodePort"))
        case "persistentvolumeclaims":
            _drop(document, "spec", ("volumeName",))
        case "persistentvolumes":
            _drop(_mapping(document.get("spec")), "claimRef", ("uid", "resourceVersion"))
    return document


def _drop(inside: Document, field: str, names: Collection[str]) -> None:
    """Replace a field by a copy without some names, or drop it when nothing is left."""
    value = inside.get(field)
    if isinstance(value, dict):
        left = {name: one for name, one in value.items() if name not in names}
        if left:
            inside[field] = left
        else:
            del inside[field]


def _mapping(value: Any) -> Document:
    return value if isinstance(value, dict) else {}


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
