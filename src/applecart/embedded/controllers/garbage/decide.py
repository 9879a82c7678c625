"""What becomes of an object, by what became of its owners.

One owner that lives keeps it; references to the others are then taken away, because an owner that waits for its dependents
would wait for this one forever. Without any such owner it goes. When an owner waits for it in foreground it goes in foreground
too, as long as it has dependents of its own, so that the last of them goes first. Reads no API; `collector.py` carries it out.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.api.meta import Object, OwnerReference
from applecart.embedded.controllers.garbage.graph import is_foreground


class OwnerState(StrEnum):
    """How an owner is."""

    SOLID = "solid"
    DANGLING = "dangling"  # surely absent
    WAITING = "waiting"  # in foreground deletion


class Propagation(StrEnum):
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Keep(msgspec.Struct, frozen=True):
    """All is well."""


class Strip(msgspec.Struct, frozen=True):
    """It stays, with these references only."""

    references: tuple[OwnerReference, ...]


class Delete(msgspec.Struct, frozen=True):
    propagation: Propagation
    unblock_first: bool = False  # its references must stop to block: it and its owners wait for each other


Plan = Keep | Strip | Delete


def standing_of(owner: Object) -> OwnerState:
    return OwnerState.WAITING if is_foreground(owner) else OwnerState.SOLID


def plan(obj: Object, standings: Sequence[OwnerState], dependents: Sequence[Object]) -> Plan:
    """`standings` are those of the object's references, in their order; `dependents` are the object's own."""
    references = obj.metadata.owner_references
    if not references:
        return Keep()
    solid = tuple(reference for reference, how in zip(references, standings, strict=True) if how is OwnerState.SOLID)
    if solid:
        return Keep() if len(solid) == len(references) else Strip(solid)
    if OwnerState.WAITING in standings and dependents:
        return Delete(Propagation.FOREGROUND, unblock_first=any(is_foreground(dependent) for dependent in dependents))
    # A person who asked for another propagation before is heard.
    if ORPHAN_DEPENDENTS in obj.metadata.finalizers:
        return Delete(Propagation.ORPHAN)
    if FOREGROUND_DELETION in obj.metadata.finalizers:
        return Delete(Propagation.FOREGROUND)
    return Delete(Propagation.BACKGROUND)


def without_owner(obj: Object, uid: str) -> tuple[OwnerReference, ...]:
    return tuple(reference for reference in obj.metadata.owner_references if reference.uid != uid)


def unblocked(obj: Object) -> tuple[OwnerReference, ...]:
    """The same references, none of which keeps its owner from going."""
    return tuple(
        msgspec.structs.replace(reference, block_owner_deletion=False) if reference.block_owner_deletion else reference
        for reference in obj.metadata.owner_references
    )
