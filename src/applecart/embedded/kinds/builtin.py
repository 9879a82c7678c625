"""The built-in kinds the server serves: where, with which verbs, names, subresources and strategy.

A kind is here only when somebody reconciles it or reads it; a kind that nobody moves is better absent than inert. Kinds that
are questions are created, answered and never stored.
"""

from typing import NamedTuple

from applecart.api.meta import Resource
from applecart.embedded.kinds.classes import PriorityClassStrategy, RuntimeClassStrategy
from applecart.embedded.kinds.config import ConfigMapStrategy, SecretStrategy
from applecart.embedded.kinds.disruption import DisruptionBudgetStrategy
from applecart.embedded.kinds.event import EventStrategy, NewEventStrategy, as_core_event, as_events_event
from applecart.embedded.kinds.kind import ALL_VERBS, Kind, Subresource, View
from applecart.embedded.kinds.namespace import NamespaceStrategy
from applecart.embedded.kinds.node import LeaseStrategy, NodeStrategy
from applecart.embedded.kinds.pod import PodStrategy
from applecart.embedded.kinds.rbac import BindingStrategy, RoleStrategy, ServiceAccountStrategy
from applecart.embedded.kinds.service import ServiceStrategy
from applecart.embedded.kinds.strategy import Strategy

RBAC = "rbac.authorization.k8s.io"
_CREATE = ("create",)
_STREAM = ("create", "get")
_WITHOUT_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_TOKEN = Subresource("token", "TokenRequest", _CREATE, group="authentication.k8s.io", version="v1")
AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
TOKEN_REVIEW = Resource(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", False)
SELF_SUBJECT_REVIEW = Resource(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", False)
SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", False)
LOCAL_SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True)
SELF_SUBJECT_ACCESS_REVIEW = Resource(AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)
SELF_SUBJECT_RULES_REVIEW = Resource(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False)
BINDING = Resource("", "v1", "Binding", "bindings", True)
VIRTUAL_KINDS: tuple[Resource, ...] = (
    TOKEN_REVIEW,
    SELF_SUBJECT_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    BINDING,
)


class BuiltIn(NamedTuple):
    """One kind, before its shape and its columns are known."""

    resource: Resource
    strategy: Strategy
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
_EVENTS = _core("Event", "events")


def built_ins() -> list[BuiltIn]:
    """In the order discovery lists them."""
    return [
        BuiltIn(_core("ConfigMap", "configmaps"), ConfigMapStrategy(), ("cm",)),
        BuiltIn(_EVENTS, EventStrategy(), ("ev",)),
        BuiltIn(
            _core("Namespace", "namespaces", False),
            NamespaceStrategy(),
            ("ns",),
            subresources=_NAMESPACE_SUBRESOURCES,
            verbs=_WITHOUT_COLLECTION,
        ),
        BuiltIn(_core("Node", "nodes", False), NodeStrategy(), ("no",), subresources=(_status("Node"),)),
        BuiltIn(_core("Pod", "pods"), PodStrategy(), ("po",), ("all",), _POD_SUBRESOURCES),
        BuiltIn(_core("Secret", "secrets"), SecretStrategy()),
        BuiltIn(_core("ServiceAccount", "serviceaccounts"), ServiceAccountStrategy(), ("sa",), subresources=(_TOKEN,)),
        BuiltIn(_core("Service", "services"), ServiceStrategy(), ("svc",), ("all",), (_status("Service"),)),
        *_group_entries(),
    ]


def _group_entries() -> list[BuiltIn]:
    budgets = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    priorities = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
    new_events = Resource("events.k8s.io", "v1", "Event", "events")
    cluster_bindings = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False)
    return [
        BuiltIn(Resource("coordination.k8s.io", "v1", "Lease", "leases"), LeaseStrategy()),
        BuiltIn(new_events, NewEventStrategy(), ("ev",), storage=_EVENTS, view=View(as_core_event, as_events_event)),
        BuiltIn(Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False), RuntimeClassStrategy()),
        BuiltIn(budgets, DisruptionBudgetStrategy(), ("pdb",), subresources=(_status("PodDisruptionBudget"),)),
        BuiltIn(cluster_bindings, BindingStrategy(namespaced=False)),
        BuiltIn(Resource(RBAC, "v1", "ClusterRole", "clusterroles", False), RoleStrategy(namespaced=False)),
        BuiltIn(Resource(RBAC, "v1", "RoleBinding", "rolebindings"), BindingStrategy(namespaced=True)),
        BuiltIn(Resource(RBAC, "v1", "Role", "roles"), RoleStrategy(namespaced=True)),
        BuiltIn(priorities, PriorityClassStrategy(), ("pc",)),
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
            strategy=entry.strategy,
            shape=shape_of(entry.resource.api_version, entry.resource.kind),
            table=table_of(entry.resource.group, entry.resource.plural),
            verbs=entry.verbs,
            short_names=entry.short_names,
            categories=entry.categories,
            subresources=entry.subresources,
            view=entry.view,
        )
        for entry in built_ins()
    ]
