"""What a namespace says of its own end: the five conditions that `kubectl describe` shows while it goes.

Pure: from what a round of deletion found to the conditions that state it. Reasons and texts are Kubernetes', because people
and scripts look for them. Conditions of other types are left as they are, and those that say the same already are too.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from applecart.embedded.times import stamp

DISCOVERY_FAILURE = "NamespaceDeletionDiscoveryFailure"
PARSING_FAILURE = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT_FAILURE = "NamespaceDeletionContentFailure"
CONTENT_REMAINING = "NamespaceContentRemaining"
FINALIZERS_REMAINING = "NamespaceFinalizersRemaining"

# What each says when there is nothing to tell: reason and message.
WELL = {
    DISCOVERY_FAILURE: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING_FAILURE: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT_FAILURE: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    CONTENT_REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS_REMAINING: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}

Document = dict[str, Any]


class Survey(msgspec.Struct, frozen=True):
    """What a round of deletion found."""

    unknown: tuple[str, ...] = ()  # groups with versions of which nothing is known
    failures: tuple[str, ...] = ()
    remaining: Mapping[tuple[str, str], int] = {}  # by plural and group
    finalizers: Mapping[str, int] = {}  # on how many of them

    @property
    def is_clear(self) -> bool:
        return not (self.unknown or self.failures or self.remaining)


def conditions_after(survey: Survey, known: Sequence[Document], now: datetime) -> list[Document]:
    """The conditions of the status from now on; equal to the known ones when nothing changed."""
    told = _told(survey)
    conditions = list(known)
    for kind, (well_reason, well_message) in WELL.items():
        status = "True" if kind in told else "False"
        reason, message = told.get(kind, (well_reason, well_message))
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        place = next((number for number, old in enumerate(conditions) if old.get("type") == kind), None)
        if place is None:
            conditions.append({**said, "lastTransitionTime": stamp(now)})
        else:
            old = conditions[place]
            moved = {} if old.get("status") == status else {"lastTransitionTime": stamp(now)}
            conditions[place] = {**old, **said, **moved}
    return conditions


def _told(survey: Survey) -> dict[str, tuple[str, str]]:
    """The conditions that are true, with reason and message."""
    told: dict[str, tuple[str, str]] = {}
    if survey.unknown:
        stale = ", ".join(f"{version}: stale GroupVersion discovery: {version}" for version in survey.unknown)
        message = (
            f"Discovery failed for some groups, {len(survey.unknown)} failing: "
            f"unable to retrieve the complete list of server APIs: {stale}"
        )
        told[DISCOVERY_FAILURE] = ("DiscoveryFailed", message)
    if survey.failures:
        failed = ", ".join(sorted(survey.failures))
        message = f"Failed to delete all resource types, {len(survey.failures)} remaining: {failed}"
        told[CONTENT_FAILURE] = ("ContentDeletionFailed", message)
    if survey.remaining:
        counts = sorted(
            f"{plural}.{group} has {count} resource instances" for (plural, group), count in survey.remaining.items()
        )
        told[CONTENT_REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(counts)}")
    if survey.finalizers:
        counts = sorted(f"{name} in {count} resource instances" for name, count in survey.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
        told[FINALIZERS_REMAINING] = ("SomeFinalizersRemain", message)
    return told
