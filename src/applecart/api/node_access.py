"""What a host's agent may do, as the roles and bindings that grant it.

One ClusterRole for all agents, one Role where Nodes are kept alive, and one Role per namespace whose Pods may run on Macs:
Secrets, ConfigMaps and tokens of any other namespace stay out of reach, so a stolen host opens no more than the namespaces it
serves. Nothing here may delete a Node, change an object it does not report on, or read more than a Pod names. The agent
writes by patches, so no rule of a served resource has `update`.
"""

from collections.abc import Iterable
from typing import Final

from applecart.api import names
from applecart.api.authentication import GROUP as AUTHENTICATION_GROUP
from applecart.api.authorization import SubjectAccessReview
from applecart.api.coordination import Lease
from applecart.api.core import SERVICE_ACCOUNT_TOKEN, Secret, ServiceAccount
from applecart.api.meta import ObjectMeta
from applecart.api.rbac import GROUP, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject

ROLE: Final = "tart-kubelet"  # of the ClusterRole and of the Roles beside it, as existing installations name it
NODE_LEASES: Final = "kube-node-lease"  # where Kubernetes looks for the heartbeat of a Node

ACCOUNT_NAMESPACE: Final = "kube-system"  # where agents that a person set up have their accounts: nobody tries things out there
POD_NAMESPACE: Final = "default"  # whose Secrets and tokens they may have, for Pods that name them

CORE = ""
_RULES: Final = (
    # It registers its own Node, follows it, and creates it again when somebody deleted it. Removing Nodes is the provider's.
    ("get list watch create patch", CORE, "nodes"),
    ("patch", CORE, "nodes/status"),
    # Its Pods come from every namespace: `patch` is for our finalizer, `delete` for the last word on a Pod that ended. Without
    # `delete` no Pod ever goes that was deleted with a grace period.
    ("get list watch patch delete", CORE, "pods"),
    ("patch", CORE, "pods/status"),
    # Opens no call. It is what OwnerReferencesPermissionEnforcement asks of whoever names a Pod as an owner that waits.
    ("update", CORE, "pods/finalizers"),
    # About a Pod, beside it; about the Node, in `default`. `patch` is for counting a repeated one up.
    ("create patch", CORE, "events"),
    # Who asks for the logs or a shell of a guest, and whether they may. Both only answer questions.
    ("create", AUTHENTICATION_GROUP, "tokenreviews"),
    ("create", SubjectAccessReview.resource.group, "subjectaccessreviews"),
)
_LEASE_RULES: Final = (("get create patch", Lease.resource.group, "leases"),)  # the heartbeat, whatever Tart does
_POD_NAMESPACE_RULES: Final = (
    # By name only, as a Pod refers to them: `list` and `watch` would hand out what no Pod on the host asks for.
    ("get", CORE, "secrets"),
    ("get", CORE, "configmaps"),
    ("get", CORE, "serviceaccounts"),  # its pull secrets, and whether it wants a token in its Pods
    ("create", CORE, "serviceaccounts/token"),  # bound to the Pod, so it ends with it
)


def cluster_role() -> ClusterRole:
    """What every agent may do in the whole cluster."""
    return ClusterRole(metadata=_metadata(ROLE), rules=_rules(_RULES))


def lease_role() -> Role:
    """Heartbeats. A Role, because a ClusterRole would open the Leases of every leader election too."""
    return Role(metadata=_metadata(ROLE, NODE_LEASES), rules=_rules(_LEASE_RULES))


def namespace_role(namespace: str) -> Role:
    """What an agent may read for the Pods of one namespace."""
    return Role(metadata=_metadata(ROLE, namespace), rules=_rules(_POD_NAMESPACE_RULES))


def roles(pod_namespaces: Iterable[str]) -> tuple[ClusterRole | Role, ...]:
    """All of them, for a fleet whose Pods live in these namespaces."""
    return (cluster_role(), lease_role(), *(namespace_role(name) for name in sorted(set(pod_namespaces))))


def cluster_binding(machine: str, namespace: str) -> ClusterRoleBinding:
    """`namespace` is where the machine and its ServiceAccount are."""
    name = names.node_identity(machine)
    return ClusterRoleBinding(
        metadata=_metadata(name), role_ref=_reference(ClusterRole), subjects=(subject(machine, namespace),)
    )


def role_binding(machine: str, namespace: str, in_namespace: str) -> RoleBinding:
    """Gives the agent of a machine the Role of another namespace."""
    name = names.node_identity(machine)
    return RoleBinding(
        metadata=_metadata(name, in_namespace), role_ref=_reference(Role), subjects=(subject(machine, namespace),)
    )


def bindings(machine: str, namespace: str, pod_namespaces: Iterable[str]) -> tuple[ClusterRoleBinding | RoleBinding, ...]:
    """All that the agent of a machine needs, and what goes when the machine goes."""
    within = (NODE_LEASES, *sorted(set(pod_namespaces)))
    return (cluster_binding(machine, namespace), *(role_binding(machine, namespace, name) for name in within))


def account(machine: str, namespace: str) -> ServiceAccount:
    """What the agent of a machine signs in as."""
    return ServiceAccount(metadata=_metadata(names.node_identity(machine), namespace))


def account_token(machine: str, namespace: str) -> Secret:
    """The Secret that the cluster fills with a token for it; the token lasts as long as the Secret."""
    metadata = ObjectMeta(
        name=names.node_identity_token(machine),
        namespace=namespace,
        annotations={"kubernetes.io/service-account.name": names.node_identity(machine)},
    )
    return Secret(metadata=metadata, type=SERVICE_ACCOUNT_TOKEN)


def subject(machine: str, namespace: str) -> Subject:
    """The ServiceAccount that the agent of a machine signs in as."""
    return Subject(kind="ServiceAccount", name=names.node_identity(machine), namespace=namespace)


def _reference(kind: type[ClusterRole | Role]) -> RoleRef:
    return RoleRef(kind=kind.resource.kind, name=ROLE, api_group=GROUP)


def _metadata(name: str, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def _rules(lines: Iterable[tuple[str, str, str]]) -> tuple[PolicyRule, ...]:
    return tuple(PolicyRule(verbs=tuple(verbs.split()), api_groups=(group,), resources=(what,)) for verbs, group, what in lines)
