"""What every living namespace has: the `default` ServiceAccount, and the ConfigMap with which Pods trust the API.

Both are made again when they are deleted, and the ConfigMap is set right when somebody changed it. The ServiceAccount is only
ever created: what people write into it is theirs.
"""

from collections.abc import Awaitable
from typing import Any

import msgspec

from applecart.api.core import ConfigMap, Namespace, ServiceAccount
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.kube.controller import DONE, Controller, Result
from applecart.kube.errors import AlreadyExists, Forbidden, NotFound
from applecart.kube.manager import Manager
from applecart.kube.patch import Merge

DEFAULT_ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
CA_KEY = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
WORKERS = 4  # a namespace that is slow must not hold up the others
TERMINATING_CAUSE = "NamespaceTerminating"


class Belongings:
    def __init__(self, manager: Manager, ca_pem: bytes) -> None:
        self._client = manager.client
        self._namespaces = manager.informer(Namespace)
        self._accounts = manager.informer(ServiceAccount, fields=f"metadata.name={DEFAULT_ACCOUNT}")
        self._config_maps = manager.informer(ConfigMap, fields=f"metadata.name={ROOT_CA}")
        self._ca = ca_pem.decode("ascii")
        controller: Controller[Key] = manager.controller("namespace belongings", self.reconcile, workers=WORKERS)
        controller.watch(self._namespaces)
        # An account that appeared needs nothing, and is often our own.
        controller.watch(self._accounts, key_of=_namespace_of, when=lambda change: change.new is None)
        controller.watch(self._config_maps, key_of=_namespace_of)

    async def reconcile(self, key: Key) -> Result:
        namespace = self._namespaces.get(key)
        if namespace is None or namespace.is_being_deleted:
            return DONE
        if self._accounts.get(Key(key.name, DEFAULT_ACCOUNT)) is None:
            account = ServiceAccount(metadata=ObjectMeta(name=DEFAULT_ACCOUNT, namespace=key.name))
            await _unless_it_ends(self._client.create(account))
        await self._ensure_root_ca(key.name)
        return DONE

    async def _ensure_root_ca(self, namespace: str) -> None:
        key = Key(namespace, ROOT_CA)
        known = self._config_maps.get(key)
        if known is None:
            await _unless_it_ends(self._client.create(root_ca(namespace, self._ca)))
        elif change := mended_root_ca(known, self._ca):
            await _unless_it_ends(self._client.patch(ConfigMap, key, Merge(change), if_revision=known.revision))


def root_ca(namespace: str, ca: str) -> ConfigMap:
    metadata = ObjectMeta(name=ROOT_CA, namespace=namespace, annotations={DESCRIPTION: DESCRIBED})
    return ConfigMap(metadata=metadata, data={CA_KEY: ca})


def mended_root_ca(known: ConfigMap, ca: str) -> dict[str, Any]:
    """The merge patch that sets the ConfigMap right; empty when it is."""
    if known.data == {CA_KEY: ca} and known.annotations.get(DESCRIPTION):
        return {}
    strange: dict[str, str | None] = {name: None for name in known.data if name != CA_KEY}
    return {"metadata": {"annotations": {DESCRIPTION: DESCRIBED}}, "data": {**strange, CA_KEY: ca}}


def _namespace_of(obj: Object) -> Key:
    return Key("", obj.namespace)


async def _unless_it_ends(write: Awaitable[msgspec.Struct]) -> None:
    """A namespace that goes needs nothing, and what exists already is seen in a moment."""
    try:
        await write
    except (AlreadyExists, NotFound):
        return
    except Forbidden as refusal:
        details = refusal.status.details
        if details is None or all(cause.reason != TERMINATING_CAUSE for cause in details.causes):
            raise
