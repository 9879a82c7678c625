"""When an object may go: names, finalizers and grace periods as kube-apiserver treats them. Plain values, no state."""

import re
from datetime import datetime, timedelta

from tests.kube.memory_refusals import invalid
from tests.kube.memory_store import Document

POD_GRACE_S = 30  # of a Pod that does not say
FINALIZER_OF_POLICY = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.:]*[a-z0-9])?")  # colons: RBAC kinds have them


def timestamp(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def check_name(kind_name: str, name: str) -> None:
    if not name:
        raise invalid(kind_name, name, "metadata.name", "Required value: name or generateName is required")
    if len(name) > 253 or not _NAME.fullmatch(name):
        words = f"Invalid value: {name!r}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        raise invalid(kind_name, name, "metadata.name", words)


def check_finalizers(before: Document, after: Document) -> None:
    """Finalizers of an object that is being deleted may only go."""
    if "deletionTimestamp" not in before["metadata"]:
        return
    known = before["metadata"].get("finalizers", [])
    added = [name for name in after["metadata"].get("finalizers", []) if name not in known]
    if added:
        words = f"Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added}"
        raise invalid(before.get("kind", ""), before["metadata"]["name"], "metadata.finalizers", words)


def begun(current: Document, options: Document, now: datetime, *, is_pod: bool) -> Document:
    """The object once its deletion was asked for: marked with when it ends at the latest, and by whom it is still held."""
    grace_s = _grace_s(current, options) if is_pod else 0
    metadata = dict(current["metadata"])
    if "deletionTimestamp" in metadata:
        left_s = metadata["deletionGracePeriodSeconds"]
        if grace_s >= left_s:
            return current
        # A second request can only shorten the grace period that the first one granted.
        metadata["deletionTimestamp"] = timestamp(max(now, _instant(metadata) - timedelta(seconds=left_s - grace_s)))
    else:
        metadata["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace_s))
        if "generation" in metadata:
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = grace_s
    finalizers = [name for name in metadata.get("finalizers", []) if name not in FINALIZER_OF_POLICY.values()]
    if policy := options.get("propagationPolicy"):
        wanted = FINALIZER_OF_POLICY.get(policy)
        metadata["finalizers"] = [*finalizers, wanted] if wanted else finalizers
    return {**current, "metadata": metadata}


def is_over(obj: Document) -> bool:
    """Nobody holds it and its time is up."""
    metadata = obj["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers") and not metadata["deletionGracePeriodSeconds"]


def _grace_s(pod: Document, options: Document) -> int:
    """A Pod that runs nowhere, or not any more, has nothing to end gracefully."""
    if not pod.get("spec", {}).get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    wanted = options.get("gracePeriodSeconds")
    return int(wanted if wanted is not None else pod["spec"].get("terminationGracePeriodSeconds", POD_GRACE_S))


def _instant(metadata: Document) -> datetime:
    return datetime.fromisoformat(metadata["deletionTimestamp"])
