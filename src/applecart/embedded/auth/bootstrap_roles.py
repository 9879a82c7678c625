"""The roles every cluster starts with, as facts.

The names and rules are those of a kube-apiserver, so manifests, dashboards and habits find what they expect; rules about kinds
that this server does not serve grant nothing and stay for that reason. Of the controllers only those are here that run in this
product. `bootstrap_policy` makes documents of them.
"""

from applecart.embedded.auth.roles import Rule

CORE = "core"  # how the group without a name is written below
READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"


def _on(groups: str, resources: str, verbs: str, names: str = "") -> Rule:
    """A rule about resources; words are separated by spaces."""
    named = tuple("" if group == CORE else group for group in groups.split())
    return Rule(tuple(verbs.split()), named, tuple(resources.split()), tuple(names.split()))


def _at(paths: str, verbs: str) -> Rule:
    return Rule(tuple(verbs.split()), paths=tuple(paths.split()))


NODE_RULES: tuple[Rule, ...] = (
    _on("authentication.k8s.io", "tokenreviews", "create"),
    _on("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    _on("core", "services", READ),
    _on("core", "nodes", "create get list watch"),
    _on("core", "nodes/status", "patch update"),
    _on("core", "nodes", "patch update"),
    _on("core events.k8s.io", "events", "create patch update"),
    _on("core", "pods", READ),
    _on("core", "pods", "create delete"),
    _on("core", "pods/status", "patch update"),
    _on("core", "pods/eviction", "create"),
    _on("core", "configmaps secrets", READ),
    _on("core", "persistentvolumeclaims persistentvolumes", "get"),
    _on("core", "endpoints", "get"),
    _on("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),
    _on("coordination.k8s.io", "leases", "create delete get patch update"),
    _on("storage.k8s.io", "volumeattachments", "get"),
    _on("core", "serviceaccounts/token", "create"),
    _on("core", "persistentvolumeclaims/status", "get patch update"),
    _on("storage.k8s.io", "csidrivers", READ),
    _on("storage.k8s.io", "csinodes", "create delete get patch update"),
    _on("node.k8s.io", "runtimeclasses", READ),
    _on("resource.k8s.io", "resourceclaims", "get"),
    _on("resource.k8s.io", "resourceslices", "deletecollection"),
    _on("core", "serviceaccounts", "get"),
)

CLUSTER_ROLES: dict[str, tuple[Rule, ...]] = {
    "cluster-admin": (
        _on("*", "*", "*"),
        _at("*", "*"),
    ),
    "system:discovery": (
        _at("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/", "get"),
    ),
    "system:public-info-viewer": (_at("/healthz /livez /readyz /version /version/", "get"),),
    "system:basic-user": (
        _on("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
        _on("authentication.k8s.io", "selfsubjectreviews", "create"),
    ),
    "system:monitoring": (
        _at("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz", "get"),
        _on("core", "nodes/metrics", "get"),
    ),
    "system:service-account-issuer-discovery": (
        _at("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/", "get"),
    ),
    "system:aggregate-to-admin": (
        _on("authorization.k8s.io", "localsubjectaccessreviews", "create"),
        _on("rbac.authorization.k8s.io", "rolebindings roles", READ_WRITE),
    ),
    "system:aggregate-to-edit": (
        _on("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", READ),
        _on("core", "serviceaccounts", "impersonate"),
        _on("core", "pods pods/attach pods/exec pods/portforward pods/proxy", WRITE),
        _on("core", "pods/eviction", "create"),
        _on(
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
            WRITE,
        ),
        _on("core", "serviceaccounts/token", "create"),
        _on("core events.k8s.io", "events", WRITE),
        _on(
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
            WRITE,
        ),
        _on("autoscaling", "horizontalpodautoscalers", WRITE),
        _on("batch", "cronjobs jobs", WRITE),
        _on(
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale",
            WRITE,
        ),
        _on("policy", "poddisruptionbudgets", WRITE),
        _on("networking.k8s.io", "ingresses networkpolicies", WRITE),
        _on("coordination.k8s.io", "leases", READ_WRITE),
        _on("resource.k8s.io", "resourceclaims resourceclaimtemplates", WRITE),
    ),
    "system:aggregate-to-view": (
        _on(
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
            READ,
        ),
        _on(
            "core",
            "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
            READ,
        ),
        _on("core", "namespaces", READ),
        _on("core events.k8s.io", "events", READ),
        _on("discovery.k8s.io", "endpointslices", READ),
        _on(
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
            READ,
        ),
        _on("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", READ),
        _on("batch", "cronjobs cronjobs/status jobs jobs/status", READ),
        _on(
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
            READ,
        ),
        _on("policy", "poddisruptionbudgets poddisruptionbudgets/status", READ),
        _on("networking.k8s.io", "ingresses ingresses/status networkpolicies", READ),
        _on("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", READ),
    ),
    "system:auth-delegator": (
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
    ),
    "system:kubelet-api-admin": (
        _on("core", "nodes", READ),
        _on("core", "nodes", "proxy"),
        _on("core", "nodes/log nodes/metrics nodes/proxy nodes/stats", "*"),
        _on("core", "nodes/configz nodes/healthz nodes/pods", "*"),
    ),
    "system:node": NODE_RULES,
    "system:node-bootstrapper": (_on("certificates.k8s.io", "certificatesigningrequests", "create get list watch"),),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        _on("certificates.k8s.io", "certificatesigningrequests/nodeclient", "create"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        _on("certificates.k8s.io", "certificatesigningrequests/selfnodeclient", "create"),
    ),
    "system:kube-scheduler": (
        _on("core events.k8s.io", "events", "create patch update"),
        _on("coordination.k8s.io", "leases", "create"),
        _on("coordination.k8s.io", "leases", "get list update watch", names="kube-scheduler"),
        _on("coordination.k8s.io", "leasecandidates", READ_WRITE),
        _on("core", "nodes", READ),
        _on("core", "pods", "delete get list watch"),
        _on("core", "bindings pods/binding", "create"),
        _on("core", "pods/status", "patch update"),
        _on("core", "replicationcontrollers services", READ),
        _on("apps extensions", "replicasets", READ),
        _on("apps", "statefulsets", READ),
        _on("policy", "poddisruptionbudgets", READ),
        _on("core", "persistentvolumeclaims persistentvolumes", READ),
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
        _on("storage.k8s.io", "csinodes", READ),
        _on("storage.k8s.io", "volumeattachments", READ),
        _on("core", "namespaces", READ),
        _on("storage.k8s.io", "csidrivers", READ),
        _on("storage.k8s.io", "csistoragecapacities", READ),
        _on("resource.k8s.io", "deviceclasses", READ),
        _on("resource.k8s.io", "resourceclaims", "get list patch update watch"),
        _on("resource.k8s.io", "resourceclaims/status", "get list patch update watch"),
        _on("core", "pods/finalizers", "update"),
        _on("resource.k8s.io", "resourceslices", READ),
        _on("resource.k8s.io", "resourceclaims", "create delete"),
        _on("resource.k8s.io", "resourceclaims/binding", "patch update"),
    ),
    "system:volume-scheduler": (
        _on("core", "persistentvolumes", "get list patch update watch"),
        _on("storage.k8s.io", "storageclasses", READ),
        _on("core", "persistentvolumeclaims", "get list patch update watch"),
    ),
    "system:kube-controller-manager": (
        _on("core events.k8s.io", "events", "create patch update"),
        _on("coordination.k8s.io", "leases", "create"),
        _on("coordination.k8s.io", "leases", "get update", names="kube-controller-manager"),
        _on("core", "secrets serviceaccounts", "create"),
        _on("core", "secrets", "delete"),
        _on("core", "configmaps namespaces secrets serviceaccounts", "get"),
        _on("core", "secrets serviceaccounts", "update"),
        _on("authentication.k8s.io", "tokenreviews", "create"),
        _on("authorization.k8s.io", "subjectaccessreviews", "create"),
        _on("*", "*", "list watch"),
        _on("core", "serviceaccounts/token", "create"),
    ),
    "system:controller:node-controller": (
        _on("core", "nodes", "delete get list patch update watch"),
        _on("core", "nodes/status", "patch update"),
        _on("core", "pods/status", "patch update"),
        _on("core", "pods", "delete get list watch"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:namespace-controller": (
        _on("core", "namespaces", "delete get list watch"),
        _on("core", "namespaces/finalize namespaces/status", "update"),
        _on("*", "*", "delete deletecollection get list watch"),
    ),
    "system:controller:generic-garbage-collector": (
        _on("*", "*", "delete get list patch update watch"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:pod-garbage-collector": (
        _on("core", "pods", "delete list watch"),
        _on("core", "nodes", READ),
        _on("core", "pods/status", "patch"),
    ),
    "system:controller:service-account-controller": (
        _on("core", "serviceaccounts", "create"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
    "system:controller:root-ca-cert-publisher": (
        _on("core", "configmaps", "create update"),
        _on("core events.k8s.io", "events", "create patch update"),
    ),
}

SYSTEM_ROLES: dict[str, tuple[Rule, ...]] = {  # in the namespace kube-system
    "extension-apiserver-authentication-reader": (_on("core", "configmaps", READ, names="extension-apiserver-authentication"),),
    "system::leader-locking-kube-controller-manager": (
        _on("coordination.k8s.io", "leases", "create get list update watch"),
        _on("coordination.k8s.io", "leasecandidates", "create get list update watch"),
    ),
    "system::leader-locking-kube-scheduler": (
        _on("coordination.k8s.io", "leases", "create get list update watch"),
        _on("coordination.k8s.io", "leasecandidates", "create get list update watch"),
    ),
}
