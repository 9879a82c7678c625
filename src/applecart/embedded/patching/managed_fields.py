"""`metadata.managedFields`: who owns which fields, and how plain writes change that.

An owner is a manager with how it writes (applying, or updating some version) and through which subresource. Whoever changes a
field owns it, and every other updater loses it. Clients may send `managedFields` back, replace them, or clear them; what they
sent may be anything, and garbage is ignored whole.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from applecart.api.meta import read_stamp, stamp
from applecart.embedded.patching.field_set import NOTHING, BadElement, FieldSet, Path, field, read_field_set
from applecart.embedded.patching.structured_merge import NO_MEMBERS, Changes, changes_between, text_of_new
from applecart.embedded.patching.values import refuses_deep_nesting
from applecart.embedded.shape import Shape

APPLY = "Apply"
UPDATE = "Update"
UPDATERS_LIMIT = 10  # entries of updaters an object keeps; older ones are merged
OLD_UPDATES = "ancient-changes"  # who owns what merged updaters owned


class Owner(NamedTuple):
    manager: str
    operation: str
    api_version: str  # "" for appliers: they are one owner in all versions
    subresource: str

    @property
    def identifier(self) -> str:
        """How owners are ordered in messages."""
        parts = zip(("manager", "operation", "apiVersion", "subresource"), self, strict=True)
        return json.dumps({name: part for name, part in parts if part}, separators=(",", ":"), ensure_ascii=False)


class ManagerEntry(NamedTuple):
    """What an owner has. `time` is when it last changed the object; "" when it only ever agreed with others."""

    fields: FieldSet
    api_version: str
    time: str = ""


Entries = dict[Owner, ManagerEntry]


class BadEntries(ValueError):
    """No managedFields that could have been written by a server."""


def read_entries(entries: Any) -> Entries:
    """The entries by owner; raises BadEntries."""
    if entries is None:
        return {}
    if type(entries) is not list:
        raise BadEntries("no list")
    result = {}
    for entry in entries:
        if type(entry) is not dict:
            raise BadEntries("an entry is no object")
        manager, operation, api_version, time, subresource = (
            _text(entry, name) for name in ("manager", "operation", "apiVersion", "time", "subresource")
        )
        if operation not in (APPLY, UPDATE) or not api_version or entry.get("fieldsType") != "FieldsV1":
            raise BadEntries("operation, apiVersion or fieldsType is not right")
        try:
            fields = read_field_set(entry.get("fieldsV1"))
        except (BadElement, RecursionError):
            raise BadEntries("fieldsV1 is no set of fields") from None
        owner = Owner(manager, operation, "" if operation == APPLY else api_version, subresource)
        result[owner] = ManagerEntry(fields, api_version, time)
    return result


def entries_or_none(entries: Any) -> Entries:
    """As `read_entries`; garbage counts as none."""
    try:
        return read_entries(entries)
    except BadEntries:
        return {}


def _text(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise BadEntries(f"{name} is no string")
    return value


def write_entries(entries: Entries, *, as_text: bool = False) -> list[dict[str, Any]]:
    """Appliers first, then by age. `as_text` leaves the sets as JSON, which is most of them as it was stored."""
    ordered = sorted(entries.items(), key=lambda one: _order(*one))
    return [
        _written(owner, entry.api_version, entry.time, entry.fields.text if as_text else entry.fields.written())
        for owner, entry in ordered
    ]


def _written(owner: Owner, api_version: str, time: str, fields: Any) -> dict[str, Any]:
    return {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": api_version,
        **({"time": time} if time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **({"subresource": owner.subresource} if owner.subresource else {}),
    }


def _order(owner: Owner, entry: ManagerEntry) -> tuple[Any, ...]:
    return owner.operation, _seconds(entry.time), owner.manager, entry.api_version, owner.subresource


@lru_cache(maxsize=1024)
def _seconds(time: str) -> float:
    try:
        return read_stamp(time).timestamp() // 1 if time else 0
    except (ValueError, OverflowError):
        return 0


def cap_updaters(entries: Entries) -> Entries:
    """The oldest updaters merged until few enough are left; nobody's fields are lost."""
    updaters = [owner for owner in entries if owner.operation == UPDATE]
    excess = len(updaters) - UPDATERS_LIMIT
    if excess <= 0:
        return entries
    result = dict(entries)
    updaters.sort(key=lambda owner: (_seconds(entries[owner].time), owner.identifier))
    first_of: dict[str, Owner] = {}
    for owner in updaters:
        if excess <= 0:
            break
        entry = entries[owner]
        first = first_of.setdefault(entry.api_version, owner)
        if first == owner:
            continue
        bucket = Owner(OLD_UPDATES, UPDATE, entry.api_version, "")
        if bucket not in result:
            result[bucket] = result.pop(first)
        result[bucket] = ManagerEntry(entry.fields | result[bucket].fields, entry.api_version, entry.time)
        if owner != bucket:
            result.pop(owner, None)
        excess -= 1
    return result


UNNAMED = "unknown"  # a manager that gave no name

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


class Writer(NamedTuple):
    """Who writes, and what to know of the kind and the endpoint."""

    manager: str
    shape: Shape
    api_version: str
    now: datetime
    subresource: str = ""
    reset: tuple[str, ...] = ()  # paths the endpoint ignores (`status`, `metadata.labels`)
    # An object in which nothing is set: built-in kinds always have some members (`{"spec": {"containers": None}}`).
    blank: Mapping[str, Any] = NO_MEMBERS

    def changes(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> Changes:
        """What a write does to an object, as far as the endpoint lets it."""
        return changes_between(self.comparable(old), self.comparable(new), self.shape).without(reset_fields(self.reset))

    def text_of_new(self, obj: dict[str, Any]) -> str:
        """What the creator of an object owns of it, written down."""
        content = {name: one for name, one in obj.items() if name not in ("apiVersion", "kind")}
        content["metadata"] = {name: one for name, one in obj["metadata"].items() if name not in _SERVERS_OWN}
        return text_of_new(self.comparable(content), self.shape, {**self.blank, "metadata": NO_MEMBERS})

    def comparable(self, obj: dict[str, Any] | None) -> dict[str, Any]:
        """An object as ownership sees it: without managedFields, without whole parts that the endpoint ignores, and with what
        all objects of its kind have."""
        content = dict(obj) if obj else {}
        for name, value in self.blank.items():
            if content.get(name) is None:
                content[name] = value
        for name in self.reset:
            content.pop(name, None)
        metadata = content.get("metadata")
        if type(metadata) is dict and "managedFields" in metadata:
            content["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
        return content


@refuses_deep_nesting
def track_update(old: dict[str, Any] | None, new: dict[str, Any], writer: Writer) -> None:
    """Sets `metadata.managedFields` of the new object."""
    metadata = new.get("metadata")
    if type(metadata) is not dict:
        return
    stored = managed_fields_of(old)
    sent = metadata.pop("managedFields", None)
    known = entries_or_none(stored)
    entries = known if writer.subresource or sent == stored else _sent_or(sent, known)
    if not entries and old is not None:
        return  # whoever clears the owners of an object ends the tracking, until somebody applies
    owner = Owner(writer.manager or UNNAMED, UPDATE, writer.api_version, writer.subresource)
    if old is None and not entries and not any("." in path for path in writer.reset):
        if fields := writer.text_of_new(new):
            metadata["managedFields"] = [_written(owner, owner.api_version, stamp(writer.now), msgspec.Raw(fields.encode()))]
        return
    if after := after_update(entries, writer.changes(old, new), owner, writer.now):
        metadata["managedFields"] = stored if after == known else write_entries(after, as_text=True)


def track_scale(obj: dict[str, Any], replicas: Path, writer: Writer) -> None:
    """Who scales takes the number over from who owned it; what nobody owned stays so. Without a time, as on the real server."""
    entries, scaled = entries_or_none(managed_fields_of(obj)), FieldSet.of([replicas])
    if any(replicas in entry.fields for entry in entries.values()):
        after = after_losses(entries, scaled, NOTHING)
        after[Owner(writer.manager or UNNAMED, UPDATE, writer.api_version, writer.subresource)] = ManagerEntry(
            scaled, writer.api_version
        )
        obj["metadata"]["managedFields"] = write_entries(after, as_text=True)


def after_update(entries: Entries, changes: Changes, owner: Owner, now: datetime) -> Entries:
    """Who owns what once the owner has made these changes."""
    lost = changes.taken
    taken = lost - NEVER_OWNED
    if not taken:
        return after_losses(entries, lost, changes.removed)
    result = after_losses({one: entry for one, entry in entries.items() if one != owner}, lost, changes.removed)
    # Taking again what one has is no change of the set, whose text then stays.
    before = entries[owner].fields - changes.removed - (lost - taken) if owner in entries else NOTHING
    result[owner] = ManagerEntry(before | taken, owner.api_version, stamp(now))
    return cap_updaters(result)


def after_losses(entries: Entries, lost: FieldSet, removed: FieldSet) -> Entries:
    """The entries without fields that others changed or that are gone; who owns nothing is left out."""
    result = {}
    for owner, entry in entries.items():
        left = entry.fields - lost - removed
        if left is entry.fields:
            result[owner] = entry
        elif left:
            result[owner] = entry._replace(fields=left)
    return result


def same_but_times(one: Any, other: Any) -> bool:
    """Whether two `managedFields` say the same, in the same order, of what is owned by whom."""
    left, right = entries_or_none(one), entries_or_none(other)
    return list(left) == list(right) and all(entry._replace(time="") == right[o]._replace(time="") for o, entry in left.items())


def managed_fields_of(obj: dict[str, Any] | None) -> Any:
    metadata = obj.get("metadata") if obj else None
    return metadata.get("managedFields") if type(metadata) is dict else None


def _sent_or(sent: Any, stored: Entries) -> Entries:
    """What a client sent counts, or it could not change it; a client that knows nothing of it must not lose it."""
    if sent == [] or sent == [None]:
        return {}
    if type(sent) is list and len(sent) == 1 and type(sent[0]) is dict and not any(sent[0].values()):
        return {}
    return entries_or_none(sent) or stored


@lru_cache(maxsize=64)
def reset_fields(paths: tuple[str, ...]) -> FieldSet:
    return FieldSet.of(tuple(map(field, path.split("."))) for path in paths)
