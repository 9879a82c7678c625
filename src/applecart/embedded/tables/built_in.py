"""Which table a built-in kind has. A kind that is not listed shows its name and when it was created."""

from applecart.embedded.kinds.kind import Table
from applecart.embedded.tables.bindings import BINDINGS
from applecart.embedded.tables.columns import DEFAULT
from applecart.embedded.tables.events import CORE_EVENTS, EVENTS
from applecart.embedded.tables.nodes import NODES
from applecart.embedded.tables.plain_kinds import (
    CONFIG_MAPS,
    DISRUPTION_BUDGETS,
    LEASES,
    NAMESPACES,
    PRIORITY_CLASSES,
    RUNTIME_CLASSES,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from applecart.embedded.tables.pods import PODS
from applecart.embedded.tables.services import SERVICES

TABLES: dict[tuple[str, str], Table] = {
    ("", "configmaps"): CONFIG_MAPS,
    ("", "events"): CORE_EVENTS,
    ("", "namespaces"): NAMESPACES,
    ("", "nodes"): NODES,
    ("", "pods"): PODS,
    ("", "secrets"): SECRETS,
    ("", "serviceaccounts"): SERVICE_ACCOUNTS,
    ("", "services"): SERVICES,
    ("coordination.k8s.io", "leases"): LEASES,
    ("events.k8s.io", "events"): EVENTS,
    ("node.k8s.io", "runtimeclasses"): RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): DISRUPTION_BUDGETS,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDINGS,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDINGS,
    ("scheduling.k8s.io", "priorityclasses"): PRIORITY_CLASSES,
}


def table_of(group: str, plural: str) -> Table:
    """How objects of a built-in kind look as rows; Roles, ClusterRoles and CRDs have no table of their own."""
    return TABLES.get((group, plural), DEFAULT)
