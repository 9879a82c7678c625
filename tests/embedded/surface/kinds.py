"""Kinds to describe: those of the study that a fleet needs, as facts written down here and checked against a real server."""

from typing import Any

from applecart.api.meta import Resource
from applecart.embedded.kinds.kind import ALL_VERBS, Kind, Subresource
from applecart.embedded.kinds.strategy import Strategy
from applecart.embedded.shape import UNTYPED
from applecart.embedded.tables.columns import DEFAULT

STATUS = ("get", "patch", "update")


def kind(
    group: str,
    name: str,
    plural: str,
    *,
    version: str = "v1",
    namespaced: bool = True,
    subresources: tuple[Subresource, ...] = (),
    has_status: bool = False,
    storage: Resource | None = None,
    **more: Any,
) -> Kind:
    resource = Resource(group, version, name, plural, namespaced)
    status = (Subresource("status", name),) if has_status else ()
    return Kind(
        resource=resource,
        storage=storage or resource,
        singular=more.pop("singular", name.lower()),
        list_kind=f"{name}List",
        strategy=Strategy(),
        shape=UNTYPED,
        table=DEFAULT,
        subresources=(*status, *subresources),
        **more,
    )


CORE_EVENT = Resource("", "v1", "Event", "events")
BUILT_IN = (
    kind("", "ConfigMap", "configmaps", short_names=("cm",)),
    kind("", "Endpoints", "endpoints", short_names=("ep",)),
    kind("", "Event", "events", short_names=("ev",)),
    kind(
        "",
        "Namespace",
        "namespaces",
        namespaced=False,
        short_names=("ns",),
        has_status=True,
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=(Subresource("finalize", "Namespace", ("update",)),),
    ),
    kind("", "Node", "nodes", namespaced=False, short_names=("no",), has_status=True),
    kind("", "PersistentVolume", "persistentvolumes", namespaced=False, short_names=("pv",), has_status=True),
    kind("", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), has_status=True),
    kind(
        "",
        "Pod",
        "pods",
        short_names=("po",),
        categories=("all",),
        has_status=True,
        subresources=(
            Subresource("log", "Pod", ("get",)),
            Subresource("exec", "PodExecOptions", ("create", "get")),
            Subresource("attach", "PodAttachOptions", ("create", "get")),
            Subresource("binding", "Binding", ("create",)),
            Subresource("eviction", "Eviction", ("create",), "policy", "v1"),
        ),
    ),
    kind("", "Secret", "secrets"),
    kind(
        "",
        "ServiceAccount",
        "serviceaccounts",
        short_names=("sa",),
        subresources=(Subresource("token", "TokenRequest", ("create",), "authentication.k8s.io", "v1"),),
    ),
    kind("", "Service", "services", short_names=("svc",), categories=("all",), has_status=True),
    kind("coordination.k8s.io", "Lease", "leases"),
    kind("rbac.authorization.k8s.io", "Role", "roles"),
    kind("rbac.authorization.k8s.io", "RoleBinding", "rolebindings"),
    kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", namespaced=False),
    kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    kind(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        has_status=True,
    ),
    kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",), has_status=True),
    kind("node.k8s.io", "RuntimeClass", "runtimeclasses", namespaced=False),
    kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)),
    kind(
        "certificates.k8s.io",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        namespaced=False,
        short_names=("csr",),
        has_status=True,
        subresources=(Subresource("approval", "CertificateSigningRequest", STATUS),),
    ),
    kind("events.k8s.io", "Event", "events", short_names=("ev",), storage=CORE_EVENT),
)

GROUP = "surface.example.com"
SCALE = Subresource("scale", "Scale", STATUS, "autoscaling", "v1")
GADGET_STORAGE = Resource(GROUP, "v1", "Gadget", "gadgets")
GADGET: dict[str, Any] = {"short_names": ("gd",), "categories": ("all", "toys"), "is_custom": True}
CUSTOM = (
    kind(GROUP, "Gadget", "gadgets", has_status=True, subresources=(SCALE,), **GADGET),
    kind(GROUP, "Gadget", "gadgets", version="v1beta1", storage=GADGET_STORAGE, **GADGET),
    kind(GROUP, "Anvil", "anvils", namespaced=False, is_custom=True),
)
GADGET_SCHEMA: dict[str, Any] = {
    "description": "A gadget of the workshop.",
    "type": "object",
    "properties": {
        "apiVersion": {"type": "string"},
        "spec": {
            "description": "What is wanted of it.",
            "type": "object",
            "properties": {"replicas": {"description": "How many.", "type": "integer"}},
        },
    },
}


def schema_of(one: Any) -> dict[str, Any] | None:
    return GADGET_SCHEMA if one.is_custom else None


def definition(plural: str, name: str, *, namespaced: bool, versions: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """The CRD behind a custom kind."""
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "kind": name, "listKind": f"{name}List", "singular": name.lower(), **more},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": version == versions[0],
                    "schema": {"openAPIV3Schema": GADGET_SCHEMA},
                    **(
                        {
                            "subresources": {
                                "status": {},
                                "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                            }
                        }
                        if version == "v1" and namespaced
                        else {}
                    ),
                }
                for version in versions
            ],
        },
    }


DEFINITIONS = (
    definition("gadgets", "Gadget", namespaced=True, versions=("v1", "v1beta1"), shortNames=["gd"], categories=["all", "toys"]),
    definition("anvils", "Anvil", namespaced=False, versions=("v1",)),
)
