"""The built-in kinds the server serves: where, with which verbs, names, subresources and rules.

A kind is here only when somebody reconciles it or reads it; a kind that nobody moves is better absent than inert.
"""

from typing import NamedTuple

from applecart.api.meta import Resource
from applecart.embedded.kinds.classes import PriorityClassRules, RuntimeClassRules
from applecart.embedded.kinds.config_map import ConfigMapRules
from applecart.embedded.kinds.disruption import DisruptionBudgetRules
from applecart.embedded.kinds.event import EventRules, NewEventRules, as_core_event, as_events_event
from applecart.embedded.kinds.kind import ALL_VERBS, Kind, Subresource, View
from applecart.embedded.kinds.lease import LeaseRules
from applecart.embedded.kinds.namespace import NamespaceRules
from applecart.embedded.kinds.node import NodeRules
from applecart.embedded.kinds.pod import PodRules
from applecart.embedded.kinds.rbac import BindingRules, RoleRules
from applecart.embedded.kinds.rules import Rules
from applecart.embedded.kinds.secret import SecretRules
from applecart.embedded.kinds.service import ServiceRules
from applecart.embedded.kinds.service_account import ServiceAccountRules

RBAC = "rbac.authorization.k8s.io"
_CREATE = ("create",)
_STREAM = ("create", "get")
_WITHOUT_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")


class Entry(NamedTuple):
    """One kind, before its shape and its columns are known."""

    resource: Resource
    rules: Rules
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    storage: Resource | None = None
    view: View | None = None


def _core(kind: str, plural: str, namespaced: bool = True) -> Resource:
    return Resource("", "v1", kind, plural, namespaced)


def _status(kind: str) -> Subresource:
    return Subresource("status", kind)


_POD_SUBRESOURCES = (
    Subresource("attach", "PodAttachOptions", _STREAM),
    Subresource("binding", "Binding", _CREATE),
    Subresource("eviction", "Eviction", _CREATE, group="policy", version="v1"),
    Subresource("exec", "PodExecOptions", _STREAM),
    Subresource("log", "Pod", ("get",)),
    _status("Pod"),
)
_NAMESPACE_SUBRESOURCES = (Subresource("finalize", "Namespace", ("update",)), _status("Namespace"))
_TOKEN = Subresource("token", "TokenRequest", _CREATE, group="authentication.k8s.io", version="v1")
_EVENTS = _core("Event", "events")


def builtin_entries() -> list[Entry]:
    """In the order discovery lists them."""
    return [
        Entry(_core("ConfigMap", "configmaps"), ConfigMapRules(), ("cm",)),
        Entry(_EVENTS, EventRules(), ("ev",)),
        Entry(
            _core("Namespace", "namespaces", False),
            NamespaceRules(),
            ("ns",),
            subresources=_NAMESPACE_SUBRESOURCES,
            verbs=_WITHOUT_COLLECTION,
        ),
        Entry(_core("Node", "nodes", False), NodeRules(), ("no",), subresources=(_status("Node"),)),
        Entry(_core("Pod", "pods"), PodRules(), ("po",), ("all",), _POD_SUBRESOURCES),
        Entry(_core("Secret", "secrets"), SecretRules()),
        Entry(_core("ServiceAccount", "serviceaccounts"), ServiceAccountRules(), ("sa",), subresources=(_TOKEN,)),
        Entry(_core("Service", "services"), ServiceRules(), ("svc",), ("all",), (_status("Service"),)),
        *_group_entries(),
    ]


def _group_entries() -> list[Entry]:
    budgets = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    priorities = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
    new_events = Resource("events.k8s.io", "v1", "Event", "events")
    cluster_bindings = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False)
    return [
        Entry(Resource("coordination.k8s.io", "v1", "Lease", "leases"), LeaseRules()),
        Entry(new_events, NewEventRules(), ("ev",), storage=_EVENTS, view=View(as_core_event, as_events_event)),
        Entry(Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False), RuntimeClassRules()),
        Entry(budgets, DisruptionBudgetRules(), ("pdb",), subresources=(_status("PodDisruptionBudget"),)),
        Entry(cluster_bindings, BindingRules(namespaced=False)),
        Entry(Resource(RBAC, "v1", "ClusterRole", "clusterroles", False), RoleRules(namespaced=False)),
        Entry(Resource(RBAC, "v1", "RoleBinding", "rolebindings"), BindingRules(namespaced=True)),
        Entry(Resource(RBAC, "v1", "Role", "roles"), RoleRules(namespaced=True)),
        Entry(priorities, PriorityClassRules(), ("pc",)),
    ]


def builtin_kinds() -> list[Kind]:
    """All served built-in kinds, with shapes and columns."""
    from applecart.embedded.structure.types import shape_of
    from applecart.embedded.tables.built_in import table_of

    return [
        Kind(
            resource=entry.resource,
            storage=entry.storage or entry.resource,
            singular=entry.resource.kind.lower(),
            list_kind=f"{entry.resource.kind}List",
            rules=entry.rules,
            shape=shape_of(entry.resource.api_version, entry.resource.kind),
            table=table_of(entry.resource.group, entry.resource.plural),
            verbs=entry.verbs,
            short_names=entry.short_names,
            categories=entry.categories,
            subresources=entry.subresources,
            view=entry.view,
        )
        for entry in builtin_entries()
    ]
