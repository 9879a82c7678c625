"""Which names of a CustomResourceDefinition are accepted, and what its status says about it.

Names belong to whoever had them first in a group. A definition is established when all its names are accepted, and stays so
when it later asks for a name that is taken. Pure: whoever writes a definition knows the others and the time.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from applecart.embedded.times import stamp

Document = dict[str, Any]


class TakenNames(msgspec.Struct, frozen=True):
    """What other kinds of a group are called."""

    resources: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()


def taken_names(others: Iterable[Document], group: str, but: str) -> TakenNames:
    """The accepted names of all definitions of a group except one."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for crd in others:
        if crd["spec"].get("group") == group and crd["metadata"].get("name") != but:
            names = (crd.get("status") or {}).get("acceptedNames") or {}
            resources.update((names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())))
            kinds.update((names.get("kind") or "", names.get("listKind") or ""))
    return TakenNames(frozenset(resources - {""}), frozenset(kinds - {""}))


def status_with_names(crd: Document, taken: TakenNames, now: datetime) -> Document:
    """The status after asking for the names of the spec."""
    status = dict(crd.get("status") or {})
    wanted, accepted = crd["spec"].get("names") or {}, dict(status.get("acceptedNames") or {})
    reason, message = "NoConflicts", "no conflicts found"
    is_accepted = True
    for name, used, conflict in (
        ("plural", taken.resources, "PluralConflict"),
        ("singular", taken.resources, "SingularConflict"),
        ("shortNames", taken.resources, "ShortNamesConflict"),
        ("kind", taken.kinds, "KindConflict"),
        ("listKind", taken.kinds, "ListKindConflict"),
    ):
        asked = wanted.get(name)
        refused = _refused(asked, accepted.get(name), used)
        if refused:
            is_accepted, reason, message = False, conflict, refused
        elif asked:
            accepted[name] = asked
        else:
            accepted.pop(name, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    conditions = list(status.get("conditions") or [])
    _set(conditions, "NamesAccepted", is_accepted, reason, message, now)
    if is_accepted:
        _set(conditions, "Established", True, "InitialNamesAccepted", "the initial names have been accepted", now)
    elif not is_established({"status": {"conditions": conditions}}):
        _set(conditions, "Established", False, "NotAccepted", "not all names are accepted", now)
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    named = {name: accepted[name] for name in order if name in accepted}
    return {**status, "conditions": conditions, "acceptedNames": {"plural": "", "kind": "", **named}}


def is_established(crd: Document) -> bool:
    """Whether objects of the kind may be written."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" and one.get("status") == "True" for one in conditions)


def stored_versions(crd: Document) -> list[str]:
    """Every version in which objects may be stored: the ones there were, and the one that is written now."""
    stored = list((crd.get("status") or {}).get("storedVersions") or ())
    for version in crd["spec"].get("versions") or ():
        if version.get("storage"):
            if version.get("name") not in stored:
                stored.append(version.get("name") or "")
            break
    return stored


def _refused(asked: Any, accepted: Any, used: frozenset[str]) -> str:
    """Why a name is not given; "" when it is."""
    if asked == accepted or not asked:
        return ""
    if isinstance(asked, str):
        return f'"{asked}" is already in use' if asked in used else ""
    conflicts = [f'"{name}" is already in use' for name in asked if name in used and name not in (accepted or ())]
    return conflicts[0] if len(conflicts) == 1 else f"[{', '.join(conflicts)}]" if conflicts else ""


def _set(conditions: list[Document], kind: str, is_true: bool, reason: str, message: str, now: datetime) -> None:
    status = "True" if is_true else "False"
    for index, one in enumerate(conditions):
        if one.get("type") == kind:
            at = one.get("lastTransitionTime") if one.get("status") == status else stamp(now)
            conditions[index] = {**one, "status": status, "lastTransitionTime": at, "reason": reason, "message": message}
            return
    conditions.append({"type": kind, "status": status, "lastTransitionTime": stamp(now), "reason": reason, "message": message})
