"""What a node's agent may do: its own Node, Lease and Pods, and what those Pods refer to.

A stolen node credential must not read the Secrets of other hosts. So reads of Secrets, ConfigMaps and ServiceAccounts need a
Pod on this node that refers to the object, and lists of Pods need the selector that narrows them to the node. The graph of
what each node may read is kept change by change: `on_change` must be called for every committed change of a Pod, right after
readers see it; missed changes are noticed by the resource's revision. Where the content of a write decides, the request
passes here and `node_restriction` judges it. Users that are no nodes get no opinion.
"""

from collections.abc import Callable

from applecart.api.node_access import NODE_LEASES
from applecart.embedded.auth.bootstrap_policy import NODE_RULES
from applecart.embedded.auth.pod_references import PODS, Reference, is_mirror, references
from applecart.embedded.auth.rbac import ALLOWED, NO_OPINION, Decision
from applecart.embedded.auth.untyped import Document, mapping, name_of, namespace_of, text
from applecart.embedded.auth.user import Attributes, User
from applecart.embedded.selectors import required_values
from applecart.embedded.store.store import Reader

NEVER = -1  # a revision that no store has


class NodeGraph:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._seen_at = NEVER
        self._pods: dict[tuple[str, str], str] = {}  # the node of each
        # By Pod, not summed up by node: a Pod may have thousands, and a node has few Pods.
        self._nodes: dict[str, dict[tuple[str, str], frozenset[Reference]]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether anybody asked yet; before that, nothing is kept and no change matters."""
        return self._seen_at != NEVER

    def reads(self, node: str, label: str, namespace: str, name: str) -> bool:
        """Whether a Pod on the node refers to this object."""
        self._catch_up()
        wanted = (label, namespace, name)
        return any(wanted in readable for readable in self._nodes.get(node, {}).values())

    def on_change(self, label: str, old: Document | None, new: Document | None) -> None:
        """A committed change: None as `old` for a creation, as `new` for a removal."""
        if label != PODS or not self.is_kept:
            return
        pod = new if new is not None else old
        # Most changes are of a status, which refers to nothing.
        if pod is not None and not (old and new and old.get("spec") == new.get("spec") and is_mirror(old) == is_mirror(new)):
            self._put((namespace_of(pod), name_of(pod)), new)
        self._seen_at = self._reader.changed_at(PODS)

    def passed_over(self, label: str) -> None:
        """A committed change that cannot matter here: a Pod's references never change while it stays on its node."""
        if label == PODS and self.is_kept:
            self._seen_at = self._reader.changed_at(PODS)

    def _catch_up(self) -> None:
        revision = self._reader.changed_at(PODS)
        if revision == self._seen_at:
            return
        self._pods.clear()
        self._nodes.clear()
        for pod in self._reader.each(PODS):
            self._put((namespace_of(pod), name_of(pod)), pod)
        self._seen_at = revision

    def _put(self, key: tuple[str, str], pod: Document | None) -> None:
        node = text(mapping(pod.get("spec")).get("nodeName")) if pod is not None else ""
        if held := self._pods.pop(key, ""):
            there = self._nodes[held]
            del there[key]
            if not there:
                del self._nodes[held]
        if pod is not None and node:
            self._pods[key] = node
            self._nodes.setdefault(node, {})[key] = references(pod)


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
        if (judge := self._judges.get((a.group, a.resource))) is not None:
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
    if a.namespace != NODE_LEASES:
        return Decision(False, f'can only access leases in the "{NODE_LEASES}" system namespace')
    # The name of an object that is being created is in its body; node_restriction compares it.
    if a.verb != "create" and a.name != node:
        return Decision(False, "can only access node lease with the same name as the requesting node")
    return ALLOWED


def _unrelated(node: str, a: Attributes) -> Decision:
    return Decision(False, f"no relationship found between node '{node}' and this object")
