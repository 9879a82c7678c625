"""Committed objects in a dict: what a store shows to the parts that decide."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from applecart.api.meta import Key
from applecart.embedded.auth.user import AUTHENTICATED, NODES, Attributes, User
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal

GROUP = "rbac.authorization.k8s.io"
LABELS = {
    "Pod": "pods",
    "Node": "nodes",
    "Secret": "secrets",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
    "Role": f"roles.{GROUP}",
    "ClusterRole": f"clusterroles.{GROUP}",
    "RoleBinding": f"rolebindings.{GROUP}",
    "ClusterRoleBinding": f"clusterrolebindings.{GROUP}",
}

Listener = Callable[[str, Document | None, Document | None], None]


class ObjectsInMemory:
    """A `Reader` that tests write to."""

    def __init__(self, *documents: Document) -> None:
        self._objects: dict[str, dict[tuple[str, str], bytes]] = {}
        self._changed_at: dict[str, int] = {}
        self._revisions: dict[tuple[str, str, str], int] = {}
        self._revision = 0
        self.listeners: list[Listener] = []
        self.full_reads = self.reads = 0
        for document in documents:
            self.put(document)

    def put(self, document: Document) -> Document:
        """Create or replace; gives a uid when there is none."""
        self._revision += 1
        meta = dict(document["metadata"])
        meta.setdefault("uid", f"uid-{self._revision}")
        stored = {**document, "metadata": meta}
        label = LABELS[document["kind"]]
        key = (meta.get("namespace", ""), meta["name"])
        old = self._get(label, *key)
        self._objects.setdefault(label, {})[key] = msgspec.json.encode(stored)
        self._revisions[label, *key] = self._revision
        self._announce(label, old, stored)
        return stored

    def remove(self, kind: str, namespace: str, name: str) -> None:
        self._revision += 1
        label = LABELS[kind]
        old = self._get(label, namespace, name)
        del self._objects[label][namespace, name]
        self._announce(label, old, None)

    def get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        self.reads += 1
        return self._get(label, namespace, name)

    def _get(self, label: str, namespace: str, name: str) -> dict[str, Any] | None:
        found = self._objects.get(label, {}).get((namespace, name))
        return None if found is None else msgspec.json.decode(found)

    def each(self, label: str, namespace: str | None = None) -> Iterator[dict[str, Any]]:
        self.full_reads += 1
        for (of, _), content in sorted(self._objects.get(label, {}).items()):
            if namespace in (None, of):
                yield msgspec.json.decode(content)

    def changed_at(self, label: str) -> int:
        return self._changed_at.get(label, 0)

    def revisions(self, label: str) -> dict[Key, int]:
        return {Key(*key): self._revisions[label, *key] for key in sorted(self._objects.get(label, {}))}

    def _announce(self, label: str, old: Document | None, new: Document | None) -> None:
        self._changed_at[label] = self._revision
        for listener in self.listeners:
            listener(label, old, new)


def refused_code(call: Callable[[], object]) -> int | None:
    """The code of the refusal a call ends in; None when it is answered."""
    try:
        call()
    except Refusal as refusal:
        return refusal.code
    return None


def user(name: str, *groups: str) -> User:
    return User(name, (*groups, AUTHENTICATED))


def node_user(name: str) -> User:
    return user(f"system:node:{name}", NODES)


def asks(verb: str, resource: str, namespace: str = "", name: str = "", *, fields: str = "") -> Attributes:
    """A question about `pods`, `pods/log`, `leases.coordination.k8s.io` or `deployments.apps/scale`."""
    whole, _, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    return Attributes(
        verb=verb,
        path="",
        is_resource=True,
        group=group,
        version="v1",
        resource=plural,
        subresource=subresource,
        namespace=namespace,
        name=name,
        field_selector=fields,
    )


def asks_path(verb: str, path: str) -> Attributes:
    return Attributes(verb=verb, path=path)


def rule(verbs: str, groups: str = "core", resources: str = "", names: str = "", paths: str = "") -> Document:
    """A rule from words separated by spaces; `core` is the group without a name."""
    members = {
        "verbs": verbs.split(),
        "apiGroups": ["" if one == "core" else one for one in groups.split()] if resources else [],
        "resources": resources.split(),
        "resourceNames": names.split(),
        "nonResourceURLs": paths.split(),
    }
    return {name: value for name, value in members.items() if value}


def role(name: str, *rules: Document, namespace: str = "", **more: Any) -> Document:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})},
        "rules": list(rules),
        **more,
    }


def binding(name: str, role_name: str, *subjects: str, namespace: str = "", to_cluster_role: bool = True) -> Document:
    """Subjects as `user:alice`, `group:devs`, `account:namespace/name`, `account:name`."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole" if to_cluster_role else "Role", "name": role_name},
        "subjects": [_subject(one) for one in subjects],
    }


def _subject(written: str) -> Document:
    kind, _, name = written.partition(":")
    if kind == "account":
        namespace, _, account = name.rpartition("/")
        return {"kind": "ServiceAccount", "name": account, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind.capitalize(), "apiGroup": GROUP, "name": name}


def pod(namespace: str, name: str, node: str = "", **spec: Any) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**({"nodeName": node} if node else {}), "containers": [{"name": "c", "image": "i"}], **spec},
    }


def plain(kind: str, namespace: str, name: str, **content: Any) -> Document:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, **content}
