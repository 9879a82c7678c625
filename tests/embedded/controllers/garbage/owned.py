"""Objects with owners, in one line."""

from collections.abc import Sequence
from datetime import UTC, datetime

from applecart.api.meta import ObjectMeta, OwnerReference, Resource
from applecart.kube.metadata_only import PartialObject, metadata_kind

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
DELETED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def refers_to(uid: str, *, blocks: bool | None = None, resource: Resource = CONFIG_MAPS) -> OwnerReference:
    """A reference to the object that `owned` makes of this uid."""
    return OwnerReference(
        api_version=resource.api_version, kind=resource.kind, name=f"n-{uid}", uid=uid, block_owner_deletion=blocks
    )


def owned(
    uid: str,
    owners: Sequence[OwnerReference | str] = (),
    *,
    finalizers: Sequence[str] = (),
    is_deleted: bool = False,
    namespace: str = "ns",
    resource: Resource = CONFIG_MAPS,
) -> PartialObject:
    metadata = ObjectMeta(
        name=f"n-{uid}",
        namespace=namespace if resource.namespaced else "",
        uid=uid,
        resource_version="1",
        finalizers=tuple(finalizers),
        owner_references=tuple(refers_to(owner) if isinstance(owner, str) else owner for owner in owners),
        deletion_timestamp=DELETED_AT if is_deleted else None,
    )
    return metadata_kind(resource)(metadata=metadata)
