"""Server-side apply: an applier says all it wants, the server merges it and remembers whose field is whose.

A field goes when its applier no longer names it and nobody else owns it. A field another owner holds with another value is a
conflict, unless forced. An apply that changes nothing leaves the times alone, so that it is no write. The steps and their order
are the real server's: each later one sees what the earlier ones left.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from applecart.embedded.patching.applied_checks import refuse_unless_appliable
from applecart.embedded.patching.combination import combined, without
from applecart.embedded.patching.conflicts import conflicts_beyond, find_conflicts, refuse_conflicts
from applecart.embedded.patching.entries import APPLY, UPDATE, Entries, Entry, Owner, entries_or_none, write_entries
from applecart.embedded.patching.field_set import NOTHING, FieldSet
from applecart.embedded.patching.last_applied import TAKEN_OVER_BY, keep_last_applied, taken_over
from applecart.embedded.patching.managed_fields import (
    NEVER_OWNED,
    NO_MEMBERS,
    after_losses,
    after_update,
    comparable,
    managed_fields_of,
    reset_fields,
)
from applecart.embedded.patching.ownership import changes_between, fields_in, with_named
from applecart.embedded.patching.values import json_type, refuses_deep_nesting, same
from applecart.embedded.refusals import bad_request
from applecart.embedded.shape import Shape
from applecart.embedded.times import stamp

BEFORE_FIRST_APPLY = "before-first-apply"  # owns what was there when tracking began


@refuses_deep_nesting
def apply(
    live: dict[str, Any] | None,
    applied: Any,
    *,
    shape: Shape,
    manager: str,
    force: bool,
    api_version: str,
    subresource: str,
    now: datetime,
    reset: tuple[str, ...] = (),
    blank: Mapping[str, Any] = NO_MEMBERS,
) -> dict[str, Any]:
    """The object after the apply, with its `managedFields`; the caller decodes, defaults and validates it.

    `reset` and `blank` are as for `track_update`.
    """
    if type(applied) is not dict:
        place = "Go value of type map[string]interface {}"
        text = f"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {json_type(applied)} into {place}"
        raise bad_request(f"error decoding YAML: {text}")
    refuse_unless_appliable(applied, live, shape, api_version)
    before = comparable(live, blank)
    ignored = reset_fields(reset)
    entries = entries_or_none(managed_fields_of(live))
    if not entries:
        presence = changes_between(comparable(None, blank), before, shape).without(ignored)
        entries = after_update({}, presence, Owner(BEFORE_FIRST_APPLY, UPDATE, api_version, subresource), api_version, now)

    applier = Owner(manager, APPLY, "", subresource)
    last = entries[applier].fields if applier in entries else NOTHING
    time = entries[applier].time if applier in entries else ""
    wanted = fields_in(applied, shape).without_subtrees(ignored)
    entries[applier] = Entry(wanted, api_version, time)
    result = _given_up(combined(_unmanaged(live), applied, shape), last, entries, shape)

    after = comparable(result, blank)
    changes = changes_between(before, after, shape).without(ignored)
    conflicts = [] if force else find_conflicts(entries, changes, applier)
    if conflicts and manager == TAKEN_OVER_BY:
        conflicts = conflicts_beyond(conflicts, taken_over(live, shape, api_version))
    if conflicts:
        raise refuse_conflicts(conflicts)

    del entries[applier]
    entries = after_losses(entries, changes)
    owned = wanted - NEVER_OWNED
    if owned:
        entries[applier] = Entry(owned, api_version, time if live is not None and same(before, after) else stamp(now))
    if manager == TAKEN_OVER_BY:
        keep_last_applied(result, applied)
    return _managed(result, entries)


def _given_up(merged: dict[str, Any], last: FieldSet, entries: Entries, shape: Shape) -> dict[str, Any]:
    """The object without what its applier owned before, names no longer, and nobody else owns."""
    if not last:
        return merged
    present = with_named(fields_in(merged, shape), shape)
    last = with_named(last, shape)
    owned = with_named(_all(entries), shape)
    left = with_named(fields_in(without(merged, last, shape), shape), shape)
    kept = without(merged, present - (left | owned), shape)
    gone = (present - with_named(fields_in(kept, shape), shape)) & last
    remaining: dict[str, Any] = without(merged, gone, shape)
    return remaining


def _all(entries: Entries) -> FieldSet:
    owned = NOTHING
    for entry in entries.values():
        owned = owned | entry.fields
    return owned


def _unmanaged(live: dict[str, Any] | None) -> dict[str, Any]:
    if live is None:
        return {}
    if managed_fields_of(live) is None:
        return live
    return {**live, "metadata": {name: value for name, value in live["metadata"].items() if name != "managedFields"}}


def _managed(result: dict[str, Any], entries: Entries) -> dict[str, Any]:
    """The object as all are: its type first, then its metadata, with the owners last."""
    metadata = result.get("metadata")
    metadata = metadata if type(metadata) is dict else {}
    if entries:
        metadata["managedFields"] = write_entries(entries)
    head = {"apiVersion": result.get("apiVersion"), "kind": result.get("kind"), "metadata": metadata}
    return {**head, **{name: value for name, value in result.items() if name not in head}}
