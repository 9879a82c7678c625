"""What the server writes of its own accord: what every cluster has from its first moment, and what follows from commits.

Namespaces, roles and the Service that clients take for granted are made at each start; what people changed stays, as far as
roles allow. From then on roles that gather those of others follow them, and nodes may read what the Pods on them refer to. That
is done after readers see a write and before its writer hears of it, or right after; none waits.
"""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

from applecart.api.meta import Key
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.bootstrap_policy import reconciled, wanted
from applecart.embedded.auth.rbac import CLUSTER_ROLES, GROUP
from applecart.embedded.auth.roles import plan_aggregation
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import FieldManager, applied_to
from applecart.embedded.server.gate import Submitted, write_own
from applecart.embedded.server.objects import find, key_of, viewed
from applecart.embedded.store.record import Change, Op
from applecart.embedded.store.table import NODE_FIELD
from applecart.observe.logs import logger

GATHERER = FieldManager("clusterrole-aggregation-controller")  # who does it elsewhere
# The name by which clients in a cluster know its API. Nobody routes the address: a VM is told another one, if any.
API_SERVICE: Document = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "clusterIP": "10.96.0.1",
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
    },
}
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")

log = logger(__name__)


def tell_unserved(core: Core) -> None:
    """Say what another version left here that nobody can see: it is in no list, export or namespace."""
    for label in core.store.labels():
        if core.registry.storing(label) is None:
            about = log.bind(kind=label, objects=len(core.store.table(label)))
            about.warning(
                "objects of a kind that this version does not serve are kept unseen; the version before can read them"
            )


async def make_sure(core: Core) -> None:
    """Write what is missing; what people changed stays, as far as roles allow."""
    last = make_namespaces(core)
    for document in wanted():
        last = _reconcile(core, document) or last
    last = make_api_service(core) or last
    last = aggregate(core) or last
    if last is not None:
        await last.settle()


def make_namespaces(core: Core) -> Submitted | None:
    """Write those that every cluster has where they are missing."""
    last: Submitted | None = None
    namespaces = core.registry.built_in("v1", "namespaces")
    for name in NAMESPACES:
        if find(core, namespaces, Key("", name)) is None:
            document: Document = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            namespaces.strategy.default(document)
            last = write_own(core, namespaces, document)
    return last


def make_api_service(core: Core) -> Submitted | None:
    """Write the Service of the API where it is missing."""
    services = core.registry.built_in("v1", "services")
    if find(core, services, key_of(services, API_SERVICE)) is not None:
        return None
    service: Document = deepcopy(API_SERVICE)
    services.strategy.default(service)
    return write_own(core, services, service)


def aggregate(core: Core) -> Submitted | None:
    """Write the rules of ClusterRoles that gather those of others."""
    roles = core.registry.built_in("v1", "clusterroles", GROUP)
    tips = [find(core, roles, record.key) for record in core.store.table(roles.storage.label).records()]
    last: Submitted | None = None
    for name, rules in plan_aggregation([viewed(core, roles, tip) for tip in tips if tip]).items():
        if (tip := find(core, roles, Key("", name))) is not None:
            role = viewed(core, roles, tip)
            configuration = {"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": {"name": name}, "rules": rules}
            applied = applied_to(core, roles, role, configuration, GATHERER, force=True)
            last = write_own(core, roles, applied, is_applied=True)
    return last


def _reconcile(core: Core, document: Document) -> Submitted | None:
    group, _, version = document["apiVersion"].rpartition("/")
    kind = core.registry.of_kind(group, version, document["kind"])
    assert kind is not None, f"no kind {document['kind']}"
    record = find(core, kind, key_of(kind, document))
    if record is None:
        return write_own(core, kind, document)
    changed = reconciled(document, viewed(core, kind, record))
    return write_own(core, kind, changed) if changed is not None else None


PODS = "pods"
MADE_AGAIN: dict[str, Callable[[Core], object]] = {"services": make_api_service, "namespaces": make_namespaces}


class Consequences:
    """Follows the commits of a server from its start."""

    def __init__(self, core: Core, authorizer: Authorizer) -> None:
        self._core = core
        self._graph = authorizer.graph
        self._is_gathering = False
        core.store.on_commit(PODS, self._pod_changed)
        core.store.on_commit(CLUSTER_ROLES, self._role_changed)
        for label, make in MADE_AGAIN.items():
            core.store.on_commit(label, partial(self._make_again, make))

    def _pod_changed(self, change: Change) -> None:
        if not self._graph.is_kept:
            return  # reading a Pod again only to forget it is a twentieth of its creation
        previous = change.previous
        before = previous.traits.fields.get(NODE_FIELD, "") if previous else ""
        after = change.record.traits.fields.get(NODE_FIELD, "")
        if before == after and (change.op is Op.MODIFIED or not after):
            self._graph.passed_over(PODS)
            return
        old = previous.document() if previous else None
        self._graph.on_change(PODS, old, None if change.op is Op.DELETED else change.record.document())

    def _role_changed(self, change: Change) -> None:
        if not self._is_gathering:
            self._is_gathering = True
            self._core.store.soon(self._gather)

    def _make_again(self, make: Callable[[Core], object], change: Change) -> None:
        if change.op is Op.DELETED:
            self._core.store.soon(self._write, make)

    def _gather(self) -> None:
        self._is_gathering = False
        self._write(aggregate)

    def _write(self, what: Callable[[Core], object]) -> None:
        if self._core.store.failure is None:
            what(self._core)
