"""Field ownership through plain writes: whoever changes a field owns it, and everybody else loses it.

Tracking is lazy: an object has no `managedFields` until somebody applies to it, because keeping them costs more than all the
rest of a status patch. Eager tracking, from creation on as a real server does it, exists to be compared with one. Clients may
send `managedFields` back, replace them, or clear them; garbage is ignored.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from applecart.embedded.patching.entries import (
    UPDATE,
    BadEntries,
    Entries,
    Entry,
    Owner,
    cap_updaters,
    entries_or_none,
    read_entries,
    write_entries,
)
from applecart.embedded.patching.field_set import NOTHING, FieldSet
from applecart.embedded.patching.ownership import Changes, changes_between
from applecart.embedded.patching.path_elements import field
from applecart.embedded.patching.values import refuses_deep_nesting
from applecart.embedded.shape import Shape
from applecart.embedded.times import stamp

UNNAMED = "unknown"  # a manager that gave no name
NO_MEMBERS: Mapping[str, Any] = MappingProxyType({})

_SERVERS_OWN = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
NEVER_OWNED = FieldSet(
    (field("apiVersion"), field("kind"), field("metadata")),
    {field("metadata"): FieldSet(map(field, _SERVERS_OWN))},
)


@refuses_deep_nesting
def track_update(
    old: dict[str, Any] | None,
    new: dict[str, Any],
    *,
    shape: Shape,
    manager: str,
    api_version: str,
    subresource: str,
    now: datetime,
    eager: bool,
    reset: tuple[str, ...] = (),
    blank: Mapping[str, Any] = NO_MEMBERS,
) -> None:
    """Sets `metadata.managedFields` of the new object.

    `reset` are paths the endpoint ignores (`status`, `metadata.labels`). `blank` is an object of the kind in which nothing is
    set: built-in kinds always have some members (`{"spec": {"containers": None}}`, or about that: `blank_object`).
    """
    metadata = new.get("metadata")
    if type(metadata) is not dict:
        return
    stored = managed_fields_of(old)
    if "managedFields" not in metadata and stored is None and (not eager or old is not None):
        return
    sent = metadata.pop("managedFields", None)
    entries = entries_or_none(stored) if subresource else _sent_or_stored(sent, stored)
    if not entries and (not eager or old is not None):
        return
    changes = changes_between(comparable(old, blank), comparable(new, blank), shape)
    owner = Owner(manager or UNNAMED, UPDATE, api_version, subresource)
    written = write_entries(after_update(entries, changes.without(reset_fields(reset)), owner, api_version, now))
    if written:
        metadata["managedFields"] = written


def after_update(entries: Entries, changes: Changes, owner: Owner, api_version: str, now: datetime) -> Entries:
    """Who owns what once the owner has made these changes."""
    result = after_losses(entries, changes)
    taken = changes.taken - NEVER_OWNED
    if taken:
        before = result[owner].fields if owner in result else NOTHING
        result[owner] = Entry(taken | before, api_version, stamp(now))
    return cap_updaters(result)


def after_losses(entries: Entries, changes: Changes) -> Entries:
    """The entries without fields that others changed or removed; who owns nothing is gone."""
    lost = changes.taken
    result = {}
    for owner, entry in entries.items():
        left = entry.fields - lost - changes.removed
        if left:
            result[owner] = Entry(left, entry.api_version, entry.time)
    return result


def managed_fields_of(obj: dict[str, Any] | None) -> Any:
    metadata = obj.get("metadata") if obj else None
    return metadata.get("managedFields") if type(metadata) is dict else None


def _sent_or_stored(sent: Any, stored: Any) -> Entries:
    """What a client sent counts, or it could not change it; a client that knows nothing of it must not lose it."""
    if sent == [] or (type(sent) is list and len(sent) == 1 and _is_blank(sent[0])):
        return {}
    try:
        entries = read_entries(sent)
    except BadEntries:
        entries = {}
    return entries or entries_or_none(stored)


def _is_blank(entry: Any) -> bool:
    return entry is None or (type(entry) is dict and not any(entry.values()))


def reset_fields(paths: tuple[str, ...]) -> FieldSet:
    return FieldSet.of(tuple(map(field, path.split("."))) for path in paths)


def blank_object(shape: Shape) -> dict[str, Any]:
    """What every object of a built-in kind has: the structs at its top."""
    return {name: {} for name, child in shape.fields.items() if child.sort == "struct"}


def comparable(obj: dict[str, Any] | None, blank: Mapping[str, Any]) -> dict[str, Any]:
    """An object as ownership sees it: without managedFields, and with what all objects of its kind have."""
    content = dict(obj) if obj else {}
    for name, value in blank.items():
        if content.get(name) is None:
            content[name] = value
    metadata = content.get("metadata")
    if type(metadata) is dict and "managedFields" in metadata:
        content["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
    return content
