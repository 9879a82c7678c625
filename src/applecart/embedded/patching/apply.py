"""Server-side apply: an applier says all it wants, the server merges it and remembers whose field is whose.

A field goes when its applier no longer names it and nobody else owns it. A field another owner holds with another value is a
conflict, unless forced. An apply that changes nothing leaves the times alone, so that it is no write. The steps and their order
are the real server's: each later one sees what the earlier ones left. Values of a refused configuration are never shown: they
may be secret.
"""

import json
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from applecart.api.meta import stamp
from applecart.embedded.field_errors import json_type, quoted
from applecart.embedded.patching.field_set import NOTHING, FieldSet, Path, element_text, field, path_text
from applecart.embedded.patching.managed_fields import (
    APPLY,
    NEVER_OWNED,
    UPDATE,
    Entries,
    ManagerEntry,
    Owner,
    Writer,
    after_losses,
    after_update,
    entries_or_none,
    managed_fields_of,
    reset_fields,
    write_entries,
)
from applecart.embedded.patching.structured_merge import (
    BadItem,
    Changes,
    changes_between,
    combined,
    element_of,
    fields_in,
    with_named,
    without,
)
from applecart.embedded.patching.values import refuses_deep_nesting, same
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.shape import Shape


class FieldConflict(NamedTuple):
    owner: Owner
    path: Path


def find_conflicts(entries: Entries, changes: Changes, applier: Owner) -> list[FieldConflict]:
    """Fields that change under another owner, by owner and then by place."""
    taken = changes.taken
    if not taken:
        return []
    others = sorted((owner for owner in entries if owner != applier), key=lambda owner: owner.identifier)
    return [FieldConflict(owner, path) for owner in others for path in (entries[owner].fields & taken).paths()]


def refuse_conflicts(conflicts: list[FieldConflict]) -> Refusal:
    causes: list[dict[str, Any]] = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown(conflict.owner)}",
            "field": path_text(conflict.path),
        }
        for conflict in conflicts
    ]
    return Refusal(409, "Conflict", _message(conflicts), {"causes": causes})


def _message(conflicts: list[FieldConflict]) -> str:
    if len(conflicts) == 1:
        (conflict,) = conflicts
        return f"Apply failed with 1 conflict: conflict with {_shown(conflict.owner)}: {path_text(conflict.path)}"
    lines: list[str] = []
    owner = None
    for conflict in conflicts:
        if conflict.owner != owner:
            owner = conflict.owner
            lines.append(f"conflicts with {_shown(owner)}:")
        lines.append(f"- {path_text(conflict.path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _shown(owner: Owner) -> str:
    text = quoted(owner.manager)
    if owner.subresource:
        text = f"{text} with subresource {quoted(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == UPDATE else text


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
TAKEN_OVER_BY = "kubectl"
ANNOTATIONS_LIMIT_BYTES = 256 * 1024  # of all annotations of an object; one more configuration must not break it


def taken_over(live: dict[str, Any] | None, shape: Shape, api_version: str) -> FieldSet:
    """Fields that kubectl may change although another owns them."""
    text = _annotations(live).get(LAST_APPLIED)
    if type(text) is not str:
        return NOTHING
    try:
        last = json.loads(text)
    except (ValueError, RecursionError):
        return NOTHING
    if type(last) is not dict or last.get("apiVersion") != api_version:
        return NOTHING
    changes = changes_between(last, live, shape)
    return fields_in(last, shape) - changes.modified - changes.added - changes.removed


def keep_last_applied(obj: dict[str, Any], applied: dict[str, Any]) -> None:
    """Brings the annotation up to date where it exists, or a later client-side apply would compare with old news."""
    annotations = _annotations(obj)
    if not annotations.get(LAST_APPLIED):
        return
    configuration = dict(applied)
    if LAST_APPLIED in _annotations(applied):
        others = {name: value for name, value in _annotations(applied).items() if name != LAST_APPLIED}
        configuration["metadata"] = {**applied["metadata"], "annotations": others}
    annotations[LAST_APPLIED] = json.dumps(configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    size_bytes = sum(len(str(text).encode(errors="replace")) for one in annotations.items() for text in one)
    if size_bytes > ANNOTATIONS_LIMIT_BYTES:
        del annotations[LAST_APPLIED]


def _annotations(obj: dict[str, Any] | None) -> dict[str, Any]:
    metadata = obj.get("metadata") if obj else None
    annotations = metadata.get("annotations") if type(metadata) is dict else None
    return annotations if type(annotations) is dict else {}


def refuse_unless_appliable(applied: dict[str, Any], live: dict[str, Any] | None, shape: Shape, api_version: str) -> None:
    kind = _text(applied.get("kind"))
    if applied.get("apiVersion") != api_version or (live is not None and kind != live.get("kind")):
        raise bad_request(f"invalid object type: {_type_of(applied)}")
    metadata = applied.get("metadata")
    if type(metadata) is dict and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    problems = structure_problems(applied, shape)
    if problems:
        raise _untyped(applied, problems)


def structure_problems(content: Any, shape: Shape, path: str = "") -> list[str]:
    """What is wrong, with where it is."""
    if content is None or shape.sort == "untyped":
        return []
    if shape.sort == "scalar":
        is_container = type(content) is dict or type(content) is list
        return [_at(path, f"expected scalar, got {json_type(content)}")] if is_container else []
    if shape.sort == "list":
        return _item_problems(content, shape, path)
    if type(content) is not dict:
        return [_at(path, f"expected map, got {json_type(content)}")]
    return [
        problem
        for name in sorted(content)
        for problem in structure_problems(content[name], shape.child(name), path + element_text(field(name)))
    ]


def _item_problems(content: Any, shape: Shape, path: str) -> list[str]:
    if type(content) is not list:
        return [_at(path, f"expected list, got {json_type(content)}")]
    problems: list[str] = []
    seen = set()
    for place, item in enumerate(content):
        text = f"[{place}]"
        if shape.list_type != "atomic":
            try:
                element = element_of(item, shape)
            except BadItem as bad:
                return [*problems, _at(path, f"element {place}: {bad}")]
            text = element_text(element)
            if element in seen:
                problems.append(_at(path, f"duplicate entries for key {text}"))
            seen.add(element)
        problems += structure_problems(item, shape.child(""), path + text)
    return problems


def _at(path: str, problem: str) -> str:
    return f"{path}: {problem}" if path else problem


def _untyped(applied: dict[str, Any], problems: list[str]) -> Refusal:
    metadata = applied.get("metadata")
    names = metadata if type(metadata) is dict else {}
    name = f"{_text(names.get('namespace'))}/{_text(names.get('name'))}"
    summary = problems[0] if len(problems) == 1 else "\n  ".join(("errors:", *problems))
    return bad_request(f"failed to create typed patch object ({name}; {_type_of(applied)}): {summary}")


def _type_of(applied: dict[str, Any]) -> str:
    group, _, version = _text(applied.get("apiVersion")).rpartition("/")
    return f"{group}/{version}, Kind={_text(applied.get('kind'))}"


def _text(value: Any) -> str:
    return value if type(value) is str else ""


BEFORE_FIRST_APPLY = "before-first-apply"  # owns what was there when tracking began


@refuses_deep_nesting
def apply(live: dict[str, Any] | None, applied: Any, writer: Writer, *, force: bool) -> dict[str, Any]:
    """The object after the apply, with its `managedFields`; the caller decodes, defaults and validates it."""
    if type(applied) is not dict:
        place = "Go value of type map[string]interface {}"
        text = f"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {json_type(applied)} into {place}"
        raise bad_request(f"error decoding YAML: {text}")
    shape, api_version = writer.shape, writer.api_version
    refuse_unless_appliable(applied, live, shape, api_version)
    entries = entries_or_none(managed_fields_of(live))
    if not entries:
        before_us = Owner(BEFORE_FIRST_APPLY, UPDATE, api_version, writer.subresource)
        entries = after_update({}, writer.changes(None, live), before_us, writer.now)

    applier = Owner(writer.manager, APPLY, "", writer.subresource)
    last = entries[applier].fields if applier in entries else NOTHING
    time = entries[applier].time if applier in entries else ""
    wanted = fields_in(applied, shape).without_subtrees(reset_fields(writer.reset))
    entries[applier] = ManagerEntry(wanted, api_version, time)
    result = _given_up(combined(_unmanaged(live), applied, shape), last, entries, shape)

    changes = writer.changes(live, result)
    conflicts = [] if force else find_conflicts(entries, changes, applier)
    if conflicts and writer.manager == TAKEN_OVER_BY:
        allowed = taken_over(live, shape, api_version)
        conflicts = [conflict for conflict in conflicts if conflict.path not in allowed]
    if conflicts:
        raise refuse_conflicts(conflicts)

    del entries[applier]
    entries = after_losses(entries, changes.taken, changes.removed)
    if owned := wanted - NEVER_OWNED:
        everywhere = writer._replace(reset=())
        is_same = live is not None and same(everywhere.comparable(live), everywhere.comparable(result))
        entries[applier] = ManagerEntry(owned, api_version, time if is_same else stamp(writer.now))
    if writer.manager == TAKEN_OVER_BY:
        keep_last_applied(result, applied)
    return _managed(result, entries)


def _given_up(merged: dict[str, Any], last: FieldSet, entries: Entries, shape: Shape) -> dict[str, Any]:
    """The object without what its applier owned before, names no longer, and nobody else owns."""
    if not last:
        return merged
    present = with_named(fields_in(merged, shape), shape)
    last = with_named(last, shape)
    owned = with_named(reduce(or_, (entry.fields for entry in entries.values()), NOTHING), shape)
    left = with_named(fields_in(without(merged, last, shape), shape), shape)
    kept = without(merged, present - (left | owned), shape)
    gone = (present - with_named(fields_in(kept, shape), shape)) & last
    remaining: dict[str, Any] = without(merged, gone, shape)
    return remaining


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
