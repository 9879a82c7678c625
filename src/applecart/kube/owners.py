"""Who owns whom: owner references made and read.

An owner is matched by its uid, never by its name: an owner that was deleted and made again under the same name owns nothing
of its predecessor's.
"""

from applecart.api.meta import Object, OwnerReference


def owner_reference(owner: Object, *, controller: bool = True) -> OwnerReference:
    """A reference to an object as the API stored it.

    The controlling owner also blocks: in a foreground deletion it stays until this dependent is gone.
    """
    if not owner.uid:
        raise ValueError(f"{owner.resource.kind} {owner.key} cannot own anything before the API has given it a uid")
    return OwnerReference(
        api_version=owner.resource.api_version,
        kind=owner.resource.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True if controller else None,
        block_owner_deletion=True if controller else None,
    )


def is_owned_by(obj: Object, owner: Object) -> bool:
    return any(reference.uid == owner.uid for reference in obj.metadata.owner_references)
