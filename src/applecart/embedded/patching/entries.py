"""`metadata.managedFields`: who owns which fields, read and written in the real server's form.

An owner is a manager with how it writes (applying, or updating some version) and through which subresource. What a client sent
may be anything; `read_entries` takes all of it or nothing.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from applecart.embedded.patching.field_set import FieldSet, read_field_set
from applecart.embedded.patching.path_elements import BadElement
from applecart.embedded.times import read_stamp

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
        parts = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return json.dumps({name: part for name, part in parts.items() if part}, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """What an owner has. `time` is when it last changed the object; "" when it only ever agreed with others."""

    fields: FieldSet
    api_version: str
    time: str = ""


Entries = dict[Owner, Entry]


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
        result[owner] = Entry(fields, api_version, time)
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


def write_entries(entries: Entries) -> list[dict[str, Any]]:
    """Appliers first, then by age."""
    ordered = sorted(entries.items(), key=lambda one: _order(*one))
    return [
        {
            "manager": owner.manager,
            "operation": owner.operation,
            "apiVersion": entry.api_version,
            **({"time": entry.time} if entry.time else {}),
            "fieldsType": "FieldsV1",
            "fieldsV1": entry.fields.written(),
            **({"subresource": owner.subresource} if owner.subresource else {}),
        }
        for owner, entry in ordered
    ]


def _order(owner: Owner, entry: Entry) -> tuple[Any, ...]:
    return owner.operation, _seconds(entry.time), owner.manager, entry.api_version, owner.subresource


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
        result[bucket] = Entry(entry.fields | result[bucket].fields, entry.api_version, entry.time)
        if owner != bucket:
            result.pop(owner, None)
        excess -= 1
    return result
