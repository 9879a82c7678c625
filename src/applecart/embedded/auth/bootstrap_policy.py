"""Which roles and bindings a server makes sure of at its start.

Pure: `wanted` are the documents, `reconciled` says what must be written for one of them. What people took away by hand comes
back, what they added stays, and an object they marked `autoupdate: "false"` is never touched.
"""

from typing import Any

from applecart.embedded.auth.bootstrap_roles import CLUSTER_ROLES, SYSTEM_ROLES
from applecart.embedded.auth.rbac import GROUP
from applecart.embedded.auth.roles import missing, rules_of
from applecart.embedded.auth.untyped import Document, items, mapping, mappings, metadata, texts_by_name

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
BOOTSTRAPPING = {"kubernetes.io/bootstrapping": "rbac-defaults"}
SYSTEM_NAMESPACE = "kube-system"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"

_GATHERING = {"admin": None, "edit": "admin", "view": "edit"}  # gathers by the label of its own name; gathered into
_GATHERED = {f"system:aggregate-to-{name}": name for name in _GATHERING}

_CONTROLLERS = (
    "node-controller",
    "namespace-controller",
    "generic-garbage-collector",
    "pod-garbage-collector",
    "service-account-controller",
    "root-ca-cert-publisher",
)


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
    **{f"system:controller:{name}": [_account(name)] for name in _CONTROLLERS},
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
        new["subjects"] = _with_subjects(mappings(stored.get("subjects")), mappings(want.get("subjects")))
        if not new["subjects"]:
            del new["subjects"]
    elif "aggregationRule" in want:
        new["aggregationRule"] = _with_selectors(stored, want)
    else:
        lacking = missing(rules_of(stored), rules_of(want))
        added = [rule for rule in rules_of(want) if missing(rules_of(stored), [rule])] if lacking else []
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


def _with_subjects(stored: list[Document], want: list[Document]) -> list[Document]:
    return stored + [one for one in want if one not in stored]


def _with_selectors(stored: Document, want: Document) -> Document:
    have = mappings(mapping(stored.get("aggregationRule")).get("clusterRoleSelectors"))
    more = [one for one in mappings(want["aggregationRule"]["clusterRoleSelectors"]) if one not in have]
    return {**mapping(stored.get("aggregationRule")), "clusterRoleSelectors": have + more}
