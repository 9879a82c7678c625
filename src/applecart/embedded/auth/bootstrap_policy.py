"""The roles and bindings every cluster starts with, and what a start does to those that people have changed.

The names and rules are those of a kube-apiserver, so manifests, dashboards and habits find what they expect; rules about kinds
that this server does not serve grant nothing and stay for that reason. Of the controllers only those are here that run in this
product. A start adds what is missing and takes nothing away; who wants to keep it out says so in an annotation.
"""

from typing import Any

from applecart.embedded.auth.rbac import GROUP
from applecart.embedded.auth.roles import Rule, missing, rules_of
from applecart.embedded.auth.rule_index import RuleIndex
from applecart.embedded.auth.untyped import Document, items, mapping, mappings, metadata, texts_by_name

CORE = "core"  # how the group without a name is written below
READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"


def _on(groups: str, resources: str, verbs: str, names: str = "") -> Rule:
    """A rule about resources; words are separated by spaces."""
    named = tuple("" if group == CORE else group for group in groups.split())
    return Rule(tuple(verbs.split()), named, tuple(resources.split()), tuple(names.split()))


def _at(paths: str, verbs: str) -> Rule:
    return Rule(tuple(verbs.split()), paths=tuple(paths.split()))


NODE_RULES: tuple[Rule, ...] = (
    _on("authentication.k8s.io", "tokenreviews", "create"),
    _on("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    _on("core", "services", READ),
    _on("core", "nodes", "create get list watch"),
    _on("core", "nodes/status", "patch update"),
    _on("core", "nodes", "patch update"),
    _on("core events.k8s.io", "events", "create patch update"),
    _on("core", "pods", READ),
    _on("core", "pods", "create delete"),
    _on("core", "pods/status", "patch update"),
    _on("core", "pods/eviction", "create"),
    _on("core", "configmaps secrets", READ),
    _on("core", "persistentvolumeclaims persistentvolumes", "get"),
    _on("core", "endpoints", "get"),
    _on("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),
    _on("coordination.k8s.io", "leases", "create delete get patch update"),
    _on("storage.k8s.io", "volumeattachments", "get"),
    _on("core", "serviceaccounts/token", "create"),
    _on("core", "persistentvolumeclaims/status", "get patch update"),
    _on("storage.k8s.io", "csidrivers", READ),
    _on("storage.k8s.io", "csinodes", "create delete get patch update"),
    _on("node.k8s.io", "runtimeclasses", READ),
    _on("resource.k8s.io", "resourceclaims", "get"),
    _on("resource.k8s.io", "resourceslices", "deletecollection"),
    _on("core", "serviceaccounts", "get"),
)

CLUSTER_ROLES: dict[str, tuple[Rule, ...]] = {
    "cluster-admin": (
        _on("*", "*", "*"),
        _at("*", "*"),
    ),
    "system:discovery": (
        _at("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/", "get"),
    ),
    "system:public-info-viewer": (_at("/healthz /livez /readyz /version /version/", "get"),),
    "system:basic-user": (
        _on("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        _on("authentication.k8s.io", "selfsubjectreviews", "create"),
    ),
    "system:monitoring": (
        _at("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz", "get"),
        _on("core", "nodes/metrics", "get"),
    ),
    "system:service-account-issuer-discovery": (
        _at("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/", "get"),
    ),
    "system:aggregate-to-admin": (
        _on("authorization.k8s.io", "localsubjectaccessreviews", "create"),
        _on("rbac.authorization.k8s.io", "rolebindings roles", READ_WRITE),
    ),
    "system:aggregate-to-edit": (
        _on("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
        _on("core", "serviceaccounts", "impersonate"),
        _on("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
        _on("core", "pods/eviction", "create"),
        _on(
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
            WRITE,
        ),
        _on("core", "serviceaccounts/token", "create"),
        _on("core events.k8s.io", "events", WRITE),
        _on(
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
            WRITE,
        ),
        _on("autoscaling", "horizontalpodautoscalers", WRITE),
        _on("batch", "cronjobs jobs", WRITE),
        _on(
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale",
            WRITE,
        ),
        _on("policy", "poddisruptionbudgets", WRITE),
        _on("networking.k8s.io", "ingresses networkpolicies", WRITE),
        _on("coordination.k8s.io", "leases", READ_WRITE),
        _on("resource.k8s.io", "resourceclaims resourceclaimtemplates", WRITE),
    ),
    "system:aggregate-to-view": (
        _on(
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            READ,
        ),
        _on(
            "core",
            "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
            READ,
        ),
        _on("core", "namespaces", READ),
        _on("core events.k8s.io", "events", READ),
        _on("discovery.k8s.io", "endpointslices", READ),
        _on(
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            READ,
        ),
        _on("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
        _on("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
        _on(
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
            READ,
        ),
        _on("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
        _on("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
        _on("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
    ),
    "system:auth-delegator": (
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
    ),
    "system:kubelet-api-admin": (
        _on("core", "nodes", READ),
        _on("core", "nodes", "proxy"),
        _on("core", "nodes/log nodes/metrics nodes/proxy nodes/stats", "*"),
        _on("core", "nodes/configz nodes/healthz nodes/pods", "*"),
    ),
    "system:node": NODE_RULES,
    "system:node-bootstrapper": (_on("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        _on("certificates.k8s.io", "certificatesigningrequests/nodeclient", "create"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        _on("certificates.k8s.io", "certificatesigningrequests/selfnodeclient", "create"),
    ),
    "system:kube-scheduler": (
        _on("core events.k8s.io", "events", "create patch update"),
        _on("coordination.k8s.io", "leases", "create"),
        _on("coordination.k8s.io", "leases", "get list update watch", names="kube-scheduler"),
        _on("coordination.k8s.io", "leasecandidates", READ_WRITE),
        _on("core", "nodes", READ),
        _on("core", "pods", "delete get list watch"),
        _on("core", "bindings pods/binding", "create"),
        _on("core", "pods/status", "patch update"),
        _on("core", "replicationcontrollers services", READ),
        _on("apps extensions", "replicasets", READ),
        _on("apps", "statefulsets", READ),
        _on("policy", "poddisruptionbudgets", READ),
        _on("core", "persistentvolumeclaims persistentvolumes", READ),
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
        _on("storage.k8s.io", "csinodes", READ),
        _on("storage.k8s.io", "volumeattachments", READ),
        _on("core", "namespaces", READ),
        _on("storage.k8s.io", "csidrivers", READ),
        _on("storage.k8s.io", "csistoragecapacities", READ),
        _on("resource.k8s.io", "deviceclasses", READ),
        _on("resource.k8s.io", "resourceclaims", "get list patch update watch"),
        _on("resource.k8s.io", "resourceclaims/status", "get list patch update watch"),
        _on("core", "pods/finalizers", "update"),
        _on("resource.k8s.io", "resourceslices", READ),
        _on("resource.k8s.io", "resourceclaims", "create delete"),
        _on("resource.k8s.io", "resourceclaims/binding", "patch update"),
    ),
    "system:volume-scheduler": (
        _on("core", "persistentvolumes", "get list patch update watch"),
        _on("storage.k8s.io", "storageclasses", READ),
        _on("core", "persistentvolumeclaims", "get list patch update watch"),
    ),
    "system:kube-controller-manager": (
        _on("core events.k8s.io", "events", "create patch update"),
        _on("coordination.k8s.io", "leases", "create"),
        _on("coordination.k8s.io", "leases", "get update", names="kube-controller-manager"),
        _on("core", "secrets serviceaccounts", "create"),
        _on("core", "secrets", "delete"),
        _on("core", "configmaps namespaces secrets serviceaccounts", "get"),
        _on("core", "secrets serviceaccounts", "update"),
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
        _on("*", "*", "list watch"),
        _on("core", "serviceaccounts/token", "create"),
    ),
    "system:controller:node-controller": (
        _on("core", "nodes", "delete get list patch update watch"),
        _on("core", "nodes/status", "patch update"),
        _on("core", "pods/status", "patch update"),
        _on("core", "pods", "delete get list watch"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:namespace-controller": (
        _on("core", "namespaces", "delete get list watch"),
        _on("core", "namespaces/finalize namespaces/status", "update"),
        _on("*", "*", "delete deletecollection get list watch"),
    ),
    "system:controller:generic-garbage-collector": (
        _on("*", "*", "delete get list patch update watch"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:pod-garbage-collector": (
        _on("core", "pods", "delete list watch"),
        _on("core", "nodes", READ),
        _on("core", "pods/status", "patch"),
    ),
    "system:controller:service-account-controller": (
        _on("core", "serviceaccounts", "create"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:root-ca-cert-publisher": (
        _on("core", "configmaps", "create update"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
}

_LEADER_LOCKING = (
    _on("coordination.k8s.io", "leases", "create get list update watch"),
    _on("coordination.k8s.io", "leasecandidates", "create get list update watch"),
)
SYSTEM_ROLES: dict[str, tuple[Rule, ...]] = {  # in the namespace kube-system
    "extension-apiserver-authentication-reader": (_on("core", "configmaps", READ, names="extension-apiserver-authentication"),),
    "system::leader-locking-kube-controller-manager": _LEADER_LOCKING,
    "system::leader-locking-kube-scheduler": _LEADER_LOCKING,
}


AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
SYSTEM_NAMESPACE = "kube-system"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

_GATHERING = {"admin": None, "edit": "admin", "view": "edit"}  # gathers by the label of its own name; gathered into
_GATHERED = {f"system:aggregate-to-{name}": name for name in _GATHERING}

_OF_A_CONTROLLER = "system:controller:"


def _group(name: str) -> Document:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def _user(name: str) -> Document:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def _account(name: str) -> Document:
    return {"kind": "ServiceAccount", "name": name, "namespace": SYSTEM_NAMESPACE}


_CLUSTER_BINDINGS: dict[str, list[Document]] = {
    "cluster-admin": [_group("system:masters")],
    "system:discovery": [_group("system:authenticated")],
    "system:public-info-viewer": [_group("system:authenticated"), _group("system:unauthenticated")],
    "system:basic-user": [_group("system:authenticated")],
    "system:monitoring": [_group("system:monitoring")],
    "system:service-account-issuer-discovery": [_group("system:serviceaccounts")],
    "system:node": [],  # the node authorizer decides for nodes; the binding stands for those who add a subject
    "system:kube-scheduler": [_user("system:kube-scheduler")],
    "system:volume-scheduler": [_user("system:kube-scheduler")],
    "system:kube-controller-manager": [_user("system:kube-controller-manager")],
    **{name: [_account(name.removeprefix(_OF_A_CONTROLLER))] for name in CLUSTER_ROLES if name.startswith(_OF_A_CONTROLLER)},
}
_SYSTEM_BINDINGS: dict[str, tuple[str, list[Document]]] = {
    "system::extension-apiserver-authentication-reader": (
        "extension-apiserver-authentication-reader",
        [_user("system:kube-controller-manager"), _user("system:kube-scheduler")],
    ),
    "system::leader-locking-kube-controller-manager": (
        "system::leader-locking-kube-controller-manager",
        [
            _user("system:kube-controller-manager"),
            _account("kube-controller-manager"),
            _account("leader-election-controller"),
        ],
    ),
    "system::leader-locking-kube-scheduler": (
        "system::leader-locking-kube-scheduler",
        [_user("system:kube-scheduler"), _account("kube-scheduler")],
    ),
}


def wanted() -> list[Document]:
    """All documents, roles before the bindings that refer to them."""
    return [
        *(_role("ClusterRole", name, rules=[rule.document() for rule in rules]) for name, rules in CLUSTER_ROLES.items()),
        *(_gathering_role(name) for name in _GATHERING),
        *(_role("Role", name, rules=[rule.document() for rule in rules]) for name, rules in SYSTEM_ROLES.items()),
        *(_binding("ClusterRoleBinding", name, "ClusterRole", name, subjects) for name, subjects in _CLUSTER_BINDINGS.items()),
        *(_binding("RoleBinding", name, "Role", role, subjects) for name, (role, subjects) in _SYSTEM_BINDINGS.items()),
    ]


def reconciled(want: Document, stored: Document | None) -> Document | None:
    """What to write in place of the stored document; None when nothing must change.

    A binding cannot change the role it refers to: the answer then has another `roleRef` and the stored one is to be replaced.
    """
    if stored is None:
        return want
    if texts_by_name(metadata(stored).get("annotations")).get(AUTOUPDATE) == "false":
        return None
    new = {**stored, "metadata": _with_marks(want, stored)}
    if "roleRef" in want:
        if mapping(stored.get("roleRef")) != want["roleRef"]:
            return want
        subjects = mappings(stored.get("subjects"))
        new["subjects"] = subjects + [one for one in mappings(want.get("subjects")) if one not in subjects]
        if not new["subjects"]:
            del new["subjects"]
    elif "aggregationRule" in want:
        new["aggregationRule"] = _with_selectors(stored, want)
    else:
        held = [RuleIndex(rules_of(stored))]
        added = [rule for rule in rules_of(want) if missing(held, [rule])]
        new["rules"] = items(stored.get("rules")) + [rule.document() for rule in added]
    return new if new != stored else None


def _role(kind: str, name: str, **content: Any) -> Document:
    into = _GATHERING.get(name) or _GATHERED.get(name)
    labels = {**BOOTSTRAPPING, **({f"{_AGGREGATE}{into}": "true"} if into else {})}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            **({"namespace": SYSTEM_NAMESPACE} if kind in ("Role", "RoleBinding") else {}),
            "labels": labels,
            "annotations": {AUTOUPDATE: "true"},
        },
        **content,
    }


def _gathering_role(name: str) -> Document:
    selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
    return _role("ClusterRole", name, aggregationRule={"clusterRoleSelectors": [selector]}, rules=None)


def _binding(kind: str, name: str, role_kind: str, role: str, subjects: list[Document]) -> Document:
    content: Document = {"roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role}}
    if subjects:
        content["subjects"] = [dict(one) for one in subjects]
    return _role(kind, name, **content)


def _with_marks(want: Document, stored: Document) -> Document:
    """The stored metadata with the labels and annotations that must be there."""
    marks = {
        member: {**texts_by_name(metadata(want)[member]), **texts_by_name(metadata(stored).get(member))}
        for member in ("labels", "annotations")
    }
    return {**metadata(stored), **marks}


def _with_selectors(stored: Document, want: Document) -> Document:
    have = mappings(mapping(stored.get("aggregationRule")).get("clusterRoleSelectors"))
    more = [one for one in mappings(want["aggregationRule"]["clusterRoleSelectors"]) if one not in have]
    return {**mapping(stored.get("aggregationRule")), "clusterRoleSelectors": have + more}
