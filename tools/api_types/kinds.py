"""Which kinds the embedded API server understands, and where the published Go modules declare them."""

MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver")

META = "k8s.io/apimachinery/pkg/apis/meta/v1"
CORE = "k8s.io/api/core/v1"

# apiVersion -> (package, kinds)
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "v1": (
        CORE,
        (
            "Binding",
            "ConfigMap",
            "Event",
            "Namespace",
            "Node",
            "Pod",
            "Secret",
            "Service",
            "ServiceAccount",
        ),
    ),
    "apiextensions.k8s.io/v1": ("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", ("CustomResourceDefinition",)),
    "authentication.k8s.io/v1": ("k8s.io/api/authentication/v1", ("SelfSubjectReview", "TokenRequest", "TokenReview")),
    "authorization.k8s.io/v1": (
        "k8s.io/api/authorization/v1",
        ("LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
    ),
    "autoscaling/v1": ("k8s.io/api/autoscaling/v1", ("Scale",)),
    "coordination.k8s.io/v1": ("k8s.io/api/coordination/v1", ("Lease",)),
    "events.k8s.io/v1": ("k8s.io/api/events/v1", ("Event",)),
    "meta.k8s.io/v1": (META, ("PartialObjectMetadata",)),
    "node.k8s.io/v1": ("k8s.io/api/node/v1", ("RuntimeClass",)),
    "policy/v1": ("k8s.io/api/policy/v1", ("Eviction", "PodDisruptionBudget")),
    "rbac.authorization.k8s.io/v1": ("k8s.io/api/rbac/v1", ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    "scheduling.k8s.io/v1": ("k8s.io/api/scheduling/v1", ("PriorityClass",)),
}

# Every group registers these for itself, so a client may send them under any apiVersion.
KINDS_OF_EVERY_GROUP = ("DeleteOptions", "Status")

# Types whose JSON is not what their Go fields say; the server knows each by name.
SPECIAL = {
    "meta/v1.Duration",
    "meta/v1.FieldsV1",
    "meta/v1.MicroTime",
    "meta/v1.Time",
    "resource.Quantity",
    "intstr.IntOrString",
    "runtime.RawExtension",
    "apiextensions/v1.JSON",
    "apiextensions/v1.JSONSchemaPropsOrArray",
    "apiextensions/v1.JSONSchemaPropsOrBool",
    "apiextensions/v1.JSONSchemaPropsOrStringArray",
}
