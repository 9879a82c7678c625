"""What an applier is told when it would change fields that others own: 409, one cause per field and owner."""

from typing import Any, NamedTuple

from applecart.embedded.field_errors import quoted
from applecart.embedded.patching.entries import UPDATE, Entries, Owner
from applecart.embedded.patching.field_set import FieldSet, Path
from applecart.embedded.patching.ownership import Changes
from applecart.embedded.patching.path_elements import path_text
from applecart.embedded.refusals import Refusal


class Conflict(NamedTuple):
    owner: Owner
    path: Path


def find_conflicts(entries: Entries, changes: Changes, applier: Owner) -> list[Conflict]:
    """Fields that change under another owner, by owner and then by place."""
    taken = changes.taken
    if not taken:
        return []
    others = sorted((owner for owner in entries if owner != applier), key=lambda owner: owner.identifier)
    return [Conflict(owner, path) for owner in others for path in (entries[owner].fields & taken).paths()]


def conflicts_beyond(conflicts: list[Conflict], allowed: FieldSet) -> list[Conflict]:
    return [conflict for conflict in conflicts if conflict.path not in allowed]


def refuse_conflicts(conflicts: list[Conflict]) -> Refusal:
    causes: list[dict[str, Any]] = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_shown(conflict.owner)}",
            "field": path_text(conflict.path),
        }
        for conflict in conflicts
    ]
    return Refusal(409, "Conflict", _message(conflicts), {"causes": causes})


def _message(conflicts: list[Conflict]) -> str:
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
