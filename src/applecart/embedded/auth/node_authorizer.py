"""What a node's agent may do: its own Node, Lease and Pods, and what those Pods refer to.

A stolen node credential must not read the Secrets of other hosts. So reads of Secrets, ConfigMaps, claims and ServiceAccounts
need a Pod on this node that refers to the object, and lists of Pods need the selector that narrows them to the node. Where the
content of a write decides, the request passes here and `node_restriction` judges it. Users that are no nodes get no opinion.
"""

from collections.abc import Callable

from applecart.embedded.attributes import Attributes
from applecart.embedded.auth.bootstrap_roles import NODE_RULES
from applecart.embedded.auth.decision import ALLOWED, NO_OPINION, Decision
from applecart.embedded.auth.node_graph import NodeGraph
from applecart.embedded.auth.user import User
from applecart.embedded.field_selectors import required_values

LEASE_NAMESPACE = "kube-node-lease"
_READS = ("get", "list", "watch")


class NodeAuthorizer:
    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._judges: dict[tuple[str, str], Callable[[str, Attributes], Decision]] = {
            ("", "secrets"): self._read_referenced,
            ("", "configmaps"): self._read_referenced,
            ("", "persistentvolumeclaims"): self._claim,
            ("", "persistentvolumes"): self._get_referenced,
            ("", "serviceaccounts"): self._service_account,
            ("", "nodes"): _node,
            ("", "pods"): self._pod,
            ("coordination.k8s.io", "leases"): _lease,
            # Nobody here attaches volumes or hands out devices, so no node has a relation to these.
            ("storage.k8s.io", "volumeattachments"): _unrelated,
            ("storage.k8s.io", "csinodes"): _unrelated,
            ("resource.k8s.io", "resourceclaims"): _unrelated,
            ("resource.k8s.io", "resourceslices"): _unrelated,
            ("certificates.k8s.io", "podcertificaterequests"): _unrelated,
        }

    def decide(self, user: User, attributes: Attributes) -> Decision:
        node = user.node
        if not node:
            return NO_OPINION
        a = attributes
        if not a.is_resource:
            return NO_OPINION  # nodes have no rules about paths of their own
        judge = self._judges.get((a.group, a.resource))
        if judge is not None:
            return judge(node, a)
        if any(not rule.names and rule.is_about(a.verb, a.group, a.resource, a.subresource) for rule in NODE_RULES):
            return ALLOWED
        return NO_OPINION

    def _related(self, node: str, a: Attributes) -> Decision:
        if not a.name:
            return Decision(False, "No Object name found")
        if self._graph.reads(node, a.resource, a.namespace, a.name):
            return ALLOWED
        return Decision(False, f"no relationship found between node '{node}' and this object")

    def _read_referenced(self, node: str, a: Attributes) -> Decision:
        if a.verb not in _READS:
            return Decision(False, "can only read resources of this type")
        if a.subresource:
            return Decision(False, "cannot read subresource")
        if not a.namespace:
            return Decision(False, "can only read namespaced object of this type")
        return self._related(node, a)

    def _get_referenced(self, node: str, a: Attributes) -> Decision:
        if a.verb != "get":
            return Decision(False, "can only get individual resources of this type")
        if a.subresource:
            return Decision(False, "cannot get subresource")
        return self._related(node, a)

    def _claim(self, node: str, a: Attributes) -> Decision:
        if a.subresource != "status":
            return self._get_referenced(node, a)
        if a.verb not in ("update", "patch"):
            return Decision(False, "can only get/update/patch this type")
        return self._related(node, a)

    def _service_account(self, node: str, a: Attributes) -> Decision:
        if a.verb == "get" and not a.subresource:
            return self._read_referenced(node, a)
        if a.verb != "create" or not a.name:
            return Decision(False, "can only create tokens for individual service accounts")
        if a.subresource != "token":
            return Decision(False, "can only create token subresource of serviceaccount")
        return self._related(node, a)

    def _pod(self, node: str, a: Attributes) -> Decision:
        match a.subresource, a.verb:
            case "", "get":
                return self._get_referenced(node, a)
            case "", ("list" | "watch"):
                if required_values(a.field_selector).get("spec.nodeName") == node:
                    return ALLOWED
                if a.name:
                    return self._related(node, a)
                return Decision(False, "can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return ALLOWED
        return NO_OPINION


def _node(node: str, a: Attributes) -> Decision:
    match a.subresource, a.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return ALLOWED
        case "", ("get" | "list" | "watch"):
            if a.name == node:
                return ALLOWED
            if not a.name:
                return Decision(False, f"node '{node}' cannot read all nodes, only its own Node object")
            return Decision(False, f"node '{node}' cannot read '{a.name}', only its own Node object")
    return NO_OPINION


def _lease(node: str, a: Attributes) -> Decision:
    if a.verb not in ("get", "create", "update", "patch", "delete"):
        return Decision(False, "can only get, create, update, patch, or delete a node lease")
    if a.namespace != LEASE_NAMESPACE:
        return Decision(False, f'can only access leases in the "{LEASE_NAMESPACE}" system namespace')
    # The name of an object that is being created is in its body; node_restriction compares it.
    if a.verb != "create" and a.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _unrelated(node: str, a: Attributes) -> Decision:
    return Decision(False, f"no relationship found between node '{node}' and this object")
