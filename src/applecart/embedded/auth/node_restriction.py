"""What a node may write, judged by content: the second half of `node_authorizer`.

A node writes its own Node and Lease, the status of Pods bound to it, mirror Pods and evictions of its own, and asks for tokens
bound to its own Pods. It may not steer work to itself: no taints, no owners and no labels that schedulers and policies trust.
Answers the reason of a refusal, or None; an object that is not there is left to the handler, which answers 404.
"""

from collections.abc import Callable, Iterable
from typing import Any

from applecart.api.node_access import NODE_LEASES
from applecart.embedded.auth.pod_references import MIRROR_ANNOTATION, PODS, is_mirror, labels_of, read_kind
from applecart.embedded.auth.untyped import (
    Document,
    go_quoted,
    items,
    mapping,
    mappings,
    metadata,
    name_of,
    text,
    texts,
    uid_of,
)
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.store.store import Reader

NODE_LABELS = frozenset(  # what an agent may say about its host
    {
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    }
)
NODE_LABEL_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")
AUDIENCE_VERB = "request-serviceaccounts-token-audience"


def refuse(
    user: User,
    verb: str,
    resource_label: str,
    subresource: str,
    obj: Document | None,
    old: Document | None,
    reader: Reader,
    *,
    namespace: str,
    name: str,
    is_allowed: Callable[[User, Attributes], bool],
) -> str | None:
    """Why a node may not write this; None when it may, or when the user is no node.

    `namespace` and `name` are the request's own; `is_allowed` asks the authorizers about audiences of tokens.
    """
    node = user.node
    if not node:
        return None
    operation = (
        "DELETE" if verb in ("delete", "deletecollection") else "CREATE" if verb == "create" or old is None else "UPDATE"
    )
    match resource_label, subresource:
        case "pods", "":
            return _pod(node, operation, obj, reader, namespace, name)
        case "pods", "status":
            return _pod_status(node, operation, obj, old)
        case "pods", "eviction":
            return _eviction(node, operation, obj, reader, namespace, name)
        case "pods", _:
            return f"unexpected pod subresource {go_quoted(subresource)}, only 'status' and 'eviction' are allowed"
        case "nodes", _:
            return _node(node, operation, obj, old, name)
        case "serviceaccounts", "token" if operation == "CREATE":
            return _token(user, obj, reader, namespace, name, is_allowed)
        case "leases.coordination.k8s.io", _:
            return _lease(node, operation, obj, namespace, name)
    return None


def forbidden_labels(names: Iterable[str]) -> list[str]:
    """Those of the labels that a node may not set, change or remove on itself."""
    return sorted(name for name in names if _is_forbidden_label(name))


def _pod(node: str, operation: str, obj: Any, reader: Reader, namespace: str, name: str) -> str | None:
    if operation == "CREATE":
        return _mirror_pod(node, mapping(obj), reader)
    if operation == "DELETE":
        existing = reader.get(PODS, namespace, name)
        if existing is not None and _node_of(existing) != node:
            return f"node {go_quoted(node)} can only delete pods with spec.nodeName set to itself"
        return None
    return f"unexpected operation {go_quoted(operation)}, node {go_quoted(node)} can only create and delete mirror pods"


def _mirror_pod(node: str, pod: Document, reader: Reader) -> str | None:
    shown = go_quoted(node)
    if not is_mirror(pod):
        return f"pod does not have {go_quoted(MIRROR_ANNOTATION)} annotation, node {shown} can only create mirror pods"
    if _node_of(pod) != node:
        return f"node {shown} can only create pods with spec.nodeName set to itself"
    owners = mappings(metadata(pod).get("ownerReferences"))
    if len(owners) > 1:
        return f"node {shown} can only create pods with a single owner reference set to itself"
    if not owners or [owners[0].get(part) for part in ("apiVersion", "kind", "name")] != ["v1", "Node", node]:
        return f"node {shown} can only create pods with an owner reference set to itself"
    owner = owners[0]
    if owner.get("controller") is not True:
        return f"node {shown} can only create pods with a controller owner reference set to itself"
    if owner.get("blockOwnerDeletion"):
        return f"node {shown} must not set blockOwnerDeletion on an owner reference"
    existing = reader.get("nodes", "", node)
    if text(owner.get("uid")) != uid_of(existing):
        return f"node {node} UID mismatch: expected {text(owner.get('uid'))} got {uid_of(existing)}"
    kind, problem = read_kind(pod)
    if problem:
        return f"error checking mirror pod for API references: {problem}"
    return f"node {shown} can not create pods that reference {kind}" if kind else None


def _pod_status(node: str, operation: str, obj: Any, old: Any) -> str | None:
    if operation != "UPDATE":
        return f"unexpected operation {go_quoted(operation)}"
    if _node_of(old) != node:
        return f"node {go_quoted(node)} can only update pod status for pods with spec.nodeName set to itself"
    if labels_of(obj) != labels_of(old):
        return f"node {go_quoted(node)} cannot update labels through pod status"
    new_status, old_status = mapping(mapping(obj).get("status")), mapping(mapping(old).get("status"))
    if items(new_status.get("resourceClaimStatuses")) != items(old_status.get("resourceClaimStatuses")):
        return f"node {go_quoted(node)} cannot update resource claim statues"
    if new_status.get("extendedResourceClaimStatus") != old_status.get("extendedResourceClaimStatus"):
        return f"node {go_quoted(node)} cannot update extended resource claim status"
    return None


def _eviction(node: str, operation: str, obj: Any, reader: Reader, namespace: str, name: str) -> str | None:
    if operation != "CREATE":
        return f"unexpected operation {operation}"
    existing = reader.get(PODS, namespace, name or name_of(obj))
    if existing is not None and _node_of(existing) != node:
        return f"node {node} can only evict pods with spec.nodeName set to itself"
    return None


def _node(node: str, operation: str, obj: Any, old: Any, name: str) -> str | None:
    shown = go_quoted(node)
    requested = name or name_of(obj)
    if requested != node:
        return f"node {shown} is not allowed to modify node {go_quoted(requested)}"
    new_spec, old_spec = mapping(mapping(obj).get("spec")), mapping(mapping(old).get("spec"))
    if operation == "CREATE":
        if new_spec.get("configSource") is not None:
            return f"node {shown} is not allowed to create pods with a non-nil configSource"
        labels = forbidden_labels(labels_of(obj))
        return f"node {shown} is not allowed to set the following labels: {', '.join(labels)}" if labels else None
    if operation == "UPDATE":
        if new_spec.get("configSource") not in (None, old_spec.get("configSource")):
            return f"node {shown} is not allowed to update configSource to a new non-nil configSource"
        if items(new_spec.get("taints")) != items(old_spec.get("taints")):
            return f"node {shown} is not allowed to modify taints"
        if items(metadata(obj).get("ownerReferences")) != items(metadata(old).get("ownerReferences")):
            return f"node {shown} is not allowed to modify ownerReferences"
        labels = forbidden_labels({name for name, _ in labels_of(obj).items() ^ labels_of(old).items()})
        return f"is not allowed to modify labels: {', '.join(labels)}" if labels else None
    return None


def _token(
    user: User, obj: Any, reader: Reader, namespace: str, account: str, is_allowed: Callable[[User, Attributes], bool]
) -> str | None:
    spec = mapping(mapping(obj).get("spec"))
    bound = mapping(spec.get("boundObjectRef"))
    pod_name, pod_uid = text(bound.get("name")), text(bound.get("uid"))
    if bound.get("apiVersion") != "v1" or bound.get("kind") != "Pod" or not pod_name:
        return "node requested token not bound to a pod"
    if not pod_uid:
        return "node requested token with a pod binding without a uid"
    pod = reader.get(PODS, namespace, pod_name)
    if pod is None:
        return None
    if pod_uid != uid_of(pod):
        return (
            f"the UID in the bound object reference ({pod_uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
    if _node_of(pod) != user.node:
        return "node requested token bound to a pod scheduled on a different node"
    # A node may ask only for audiences that a volume of the Pod wants, or that somebody allowed it.
    audiences = texts(spec.get("audiences"))
    if len(audiences) > 1:
        return "node may only request 0 or 1 audiences"
    audience = audiences[0] if audiences else ""
    for volume in mappings(mapping(pod.get("spec")).get("volumes")):
        for source in mappings(mapping(volume.get("projected")).get("sources")):
            token = source.get("serviceAccountToken")
            if isinstance(token, dict) and text(token.get("audience")) == audience:
                return None
    asked = Attributes(AUDIENCE_VERB, is_resource=True, version="v1", resource=audience, namespace=namespace, name=account)
    if is_allowed(user, asked):
        return None
    return (
        f"audience {go_quoted(audience)} not found in pod spec volume, "
        f"{user.name} is not authorized to request tokens for this audience"
    )


def _lease(node: str, operation: str, obj: Any, namespace: str, name: str) -> str | None:
    if namespace != NODE_LEASES:
        return f"can only access leases in the {go_quoted(NODE_LEASES)} system namespace"
    if (name_of(obj) if operation == "CREATE" else name) != node:
        return "can only access node lease with the same name as the requesting node"
    return None


def _node_of(pod: Any) -> str:
    return text(mapping(mapping(pod).get("spec")).get("nodeName"))


def _is_forbidden_label(name: str) -> bool:
    domain = name.partition("/")[0] if "/" in name else ""
    if _is_within(domain, RESTRICTED_DOMAIN):
        return True
    if not any(_is_within(domain, reserved) for reserved in RESERVED_DOMAINS):
        return False
    return name not in NODE_LABELS and not any(_is_within(domain, allowed) for allowed in NODE_LABEL_DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")
