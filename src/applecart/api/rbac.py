"""Who may do what: Role, ClusterRole and their bindings.

The provider writes one ClusterRoleBinding per host; the embedded API server authorises by all four. `rules` may be null on
the wire, so it is None rather than empty when nobody set it.
"""

from msgspec import field

from applecart.api.meta import LabelSelector, Object, Part, Resource

GROUP = "rbac.authorization.k8s.io"


class PolicyRule(Part):
    verbs: tuple[str, ...]
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(default=(), name="nonResourceURLs")


class RoleRef(Part):
    """The API refuses a binding without all three, and never lets them change."""

    kind: str
    name: str
    api_group: str


class Subject(Part):
    kind: str
    name: str
    namespace: str = ""
    api_group: str = ""


class AggregationRule(Part):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class Role(Object):
    resource = Resource(GROUP, "v1", "Role", "roles")

    rules: tuple[PolicyRule, ...] | None = None


class ClusterRole(Object):
    resource = Resource(GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)

    rules: tuple[PolicyRule, ...] | None = None
    aggregation_rule: AggregationRule | None = None


class RoleBinding(Object, kw_only=True):
    resource = Resource(GROUP, "v1", "RoleBinding", "rolebindings")

    role_ref: RoleRef
    subjects: tuple[Subject, ...] = ()


class ClusterRoleBinding(Object, kw_only=True):
    resource = Resource(GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)

    role_ref: RoleRef
    subjects: tuple[Subject, ...] = ()
