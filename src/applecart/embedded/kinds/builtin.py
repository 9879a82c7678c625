"""The built-in kinds the server serves: where, with which verbs, names, subresources and strategy.

A kind is here only when somebody reconciles it or reads it; a kind that nobody moves is better absent than inert. Kinds that
are questions are created, answered and never stored.
"""

from applecart.api.meta import Resource
from applecart.embedded.kinds.classes import PriorityClassStrategy, RuntimeClassStrategy
from applecart.embedded.kinds.config_map_secret import ConfigMapStrategy, SecretStrategy
from applecart.embedded.kinds.disruption import DisruptionBudgetStrategy
from applecart.embedded.kinds.event import EventStrategy, NewEventStrategy, as_core_event, as_events_event
from applecart.embedded.kinds.kind import ALL_VERBS, Kind, Subresource, View
from applecart.embedded.kinds.namespace import NamespaceStrategy
from applecart.embedded.kinds.node import LeaseStrategy, NodeStrategy
from applecart.embedded.kinds.pod import PodStrategy
from applecart.embedded.kinds.rbac import BindingStrategy, RoleStrategy, ServiceAccountStrategy
from applecart.embedded.kinds.service import ServiceStrategy
from applecart.embedded.kinds.strategy import Strategy
from applecart.embedded.structure.types import shape_of
from applecart.embedded.tables.built_in import table_of

RBAC = "rbac.authorization.k8s.io"
_CREATE = ("create",)
_STREAM = ("create", "get")
_WITHOUT_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_TOKEN = Subresource("token", "TokenRequest", _CREATE, group="authentication.k8s.io", version="v1")
AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
VIRTUAL_RESOURCES: tuple[Resource, ...] = (
    Resource(AUTHENTICATION, "v1", "TokenReview", "tokenreviews", False),
    Resource(AUTHENTICATION, "v1", "SelfSubjectReview", "selfsubjectreviews", False),
    Resource(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", False),
    Resource(AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
    Resource(AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    Resource(AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
    Resource("", "v1", "Binding", "bindings", True),
)


def built_in_kind(
    resource: Resource,
    strategy: Strategy,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    subresources: tuple[Subresource, ...] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
    storage: Resource | None = None,
    view: View | None = None,
) -> Kind:
    return Kind(
        resource=resource,
        storage=storage or resource,
        singular=resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        strategy=strategy,
        shape=shape_of(resource.api_version, resource.kind),
        table=table_of(resource.group, resource.plural),
        verbs=verbs,
        short_names=short_names,
        categories=categories,
        subresources=subresources,
        view=view,
    )


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


def builtin_kinds() -> list[Kind]:
    """All that are served, in the order discovery lists them."""
    budgets = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
    priorities = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)
    new_events = Resource("events.k8s.io", "v1", "Event", "events")
    cluster_bindings = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", False)
    return [
        built_in_kind(_core("ConfigMap", "configmaps"), ConfigMapStrategy(), ("cm",)),
        built_in_kind(_EVENTS, EventStrategy(), ("ev",)),
        built_in_kind(
            _core("Namespace", "namespaces", False),
            NamespaceStrategy(),
            ("ns",),
            subresources=_NAMESPACE_SUBRESOURCES,
            verbs=_WITHOUT_COLLECTION,
        ),
        built_in_kind(_core("Node", "nodes", False), NodeStrategy(), ("no",), subresources=(_status("Node"),)),
        built_in_kind(_core("Pod", "pods"), PodStrategy(), ("po",), ("all",), _POD_SUBRESOURCES),
        built_in_kind(_core("Secret", "secrets"), SecretStrategy()),
        built_in_kind(_core("ServiceAccount", "serviceaccounts"), ServiceAccountStrategy(), ("sa",), subresources=(_TOKEN,)),
        built_in_kind(_core("Service", "services"), ServiceStrategy(), ("svc",), ("all",), (_status("Service"),)),
        built_in_kind(Resource("coordination.k8s.io", "v1", "Lease", "leases"), LeaseStrategy()),
        built_in_kind(new_events, NewEventStrategy(), ("ev",), storage=_EVENTS, view=View(as_core_event, as_events_event)),
        built_in_kind(Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False), RuntimeClassStrategy()),
        built_in_kind(budgets, DisruptionBudgetStrategy(), ("pdb",), subresources=(_status("PodDisruptionBudget"),)),
        built_in_kind(cluster_bindings, BindingStrategy(namespaced=False)),
        built_in_kind(Resource(RBAC, "v1", "ClusterRole", "clusterroles", False), RoleStrategy(namespaced=False)),
        built_in_kind(Resource(RBAC, "v1", "RoleBinding", "rolebindings"), BindingStrategy(namespaced=True)),
        built_in_kind(Resource(RBAC, "v1", "Role", "roles"), RoleStrategy(namespaced=True)),
        built_in_kind(priorities, PriorityClassStrategy(), ("pc",)),
    ]
