"""DELETE: what is asked, what it does to an object (gone at once, marked, shortened, or left as it is), and doing it.

The decision is pure. An object with finalizers is only marked; a Pod is given its grace and waits for somebody to confirm; a
second DELETE may only shorten the wait. The explicit propagation of a request beats the finalizers it finds. Namespaces go in
two steps, because their content goes first.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.api.meta import Resource, read_stamp, stamp
from applecart.embedded.field_errors import FieldError, invalid, json_type, not_supported
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, conflict, details_of
from applecart.embedded.schema.crd_strategy import begin_leaving
from applecart.embedded.server.bodies import SCHEME, read_body
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.server.request import ApiRequest, dry_run_problems, integer, invalid_options, is_true
from applecart.embedded.store.record import Record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)  # nothing here is older
LAST_INSTANT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # that has a timestamp
POLICIES = ("Background", "Foreground", "Orphan")


class Fate(Enum):
    REMOVE = "remove"  # take it out of the store
    MARK = "mark"  # store the marked document; it goes later
    MARK_THEN_REMOVE = "mark then remove"  # graceful without a wait: watchers see both
    LEAVE = "leave"  # already on its way, nothing to change


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_period_s: int | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    is_dry_run: bool = False


def refuse_unmet(kind: Kind, document: Document, options: DeleteOptions) -> Refusal | None:
    """The refusal when the object is not the one the caller meant."""
    metadata = document["metadata"]
    named = Resource(kind.resource.group, kind.resource.version, kind.resource.kind, kind.resource.kind)
    for asked, actual, word, since in (
        (options.uid, metadata.get("uid", ""), "UID", "deleted and then recreated"),
        (options.resource_version, metadata.get("resourceVersion", ""), "ResourceVersion", "modified"),
    ):
        if asked is not None and asked != actual and kind.resource.label == NAMESPACES:  # which have words of their own
            differs = f"{word} in precondition: {asked}, {word} in object meta: {actual}"
            return conflict(kind.resource, metadata["name"], f"Precondition failed: {differs}")
        if asked is not None and asked != actual:
            differs = f"the {word} in the precondition ({asked}) does not match the {word} in record ({actual})"
            return conflict(named, metadata["name"], f"{differs}. The object might have been {since}")
    return None


def decide(kind: Kind, document: Document, options: DeleteOptions, now: datetime) -> Fate:
    """The object's fate; the document is changed to what must be stored when the fate is to mark it."""
    metadata = document["metadata"]
    if kind.resource.label == NAMESPACES:
        return _namespace_fate(document, now)
    if kind.resource.label == CRD_LABEL and metadata.get("deletionTimestamp") is None:
        begin_leaving(document, now)
        return Fate.MARK
    graceful = _grace(kind, document, options, now) if kind.strategy.is_graceful else None
    if graceful is Fate.LEAVE:
        return Fate.LEAVE
    finalizers_change = _set_finalizers(metadata, options)
    if graceful is Fate.MARK:
        waits = bool(metadata.get("finalizers")) or metadata["deletionGracePeriodSeconds"] > 0
        return Fate.MARK if waits else Fate.MARK_THEN_REMOVE
    if not metadata.get("finalizers"):
        return Fate.REMOVE
    return Fate.MARK if mark(metadata, now) or finalizers_change else Fate.LEAVE


def mark(metadata: dict[str, Any], now: datetime) -> bool:
    """Say that the object is being deleted, without grace; whether that changed anything."""
    before = (metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds"))
    if metadata.get("deletionTimestamp") is None:
        metadata["deletionTimestamp"] = stamp(now)
        _count_generation(metadata)
    elif read_stamp(metadata["deletionTimestamp"]) > now:
        metadata["deletionTimestamp"] = stamp(now)
    metadata["deletionGracePeriodSeconds"] = 0
    return before != (metadata["deletionTimestamp"], 0)


def ends_with_update(document: Document, old: Document) -> bool:
    """Whether an update took away the last thing that held a deleted object; a Namespace has finalizers in its spec as well."""
    if document["metadata"].get("finalizers") or old["metadata"].get("deletionTimestamp") is None:
        return False
    if document["kind"] == "Namespace" and document.get("spec", {}).get("finalizers"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds")


def _namespace_fate(document: Document, now: datetime) -> Fate:
    """Its content goes first: it is marked, and stays while anything holds it."""
    metadata = document["metadata"]
    if metadata.get("deletionTimestamp") is None:
        mark(metadata, now)
        metadata.pop("deletionGracePeriodSeconds")
        document.setdefault("status", {})["phase"] = "Terminating"
        return Fate.MARK
    return Fate.LEAVE if document.get("spec", {}).get("finalizers") or metadata.get("finalizers") else Fate.REMOVE


def _grace(kind: Kind, document: Document, options: DeleteOptions, now: datetime) -> Fate:
    """MARK with the new times set, LEAVE, or REMOVE when the grace is over."""
    metadata = document["metadata"]
    asked = options.grace_period_s
    if metadata.get("deletionTimestamp") is not None:
        left = metadata.get("deletionGracePeriodSeconds")
        if not left:
            return Fate.REMOVE
        if asked is None or asked >= left:
            return Fate.LEAVE
        asked = max(asked, 0)
        at = _moved(read_stamp(metadata["deletionTimestamp"]), asked - left)
        metadata["deletionTimestamp"] = stamp(at or now)
        metadata["deletionGracePeriodSeconds"] = asked
        return Fate.MARK
    grace_s = kind.strategy.grace_period_s(document, asked)
    metadata["deletionTimestamp"] = stamp(_moved(now, grace_s) or LAST_INSTANT)
    metadata["deletionGracePeriodSeconds"] = grace_s
    _count_generation(metadata)
    return Fate.MARK


def _moved(at: datetime, by_s: int) -> datetime | None:
    """An instant so many seconds away; None when the calendar does not reach so far, which a grace may ask for."""
    try:
        moved = at + timedelta(seconds=by_s)
    except OverflowError:
        return None
    return moved if EPOCH <= moved <= LAST_INSTANT else None


def _set_finalizers(metadata: dict[str, Any], options: DeleteOptions) -> bool:
    """Put in or take out what tells the garbage collector about dependents; whether that changed anything."""
    before = metadata.get("finalizers") or []
    wanted = [one for one in before if one not in (ORPHAN_DEPENDENTS, FOREGROUND_DELETION)]
    wanted += [one for one in (ORPHAN_DEPENDENTS, FOREGROUND_DELETION) if _propagates(options, one, before)]
    if wanted == before:
        return False
    if wanted:
        metadata["finalizers"] = wanted
    else:
        metadata.pop("finalizers", None)
    return True


def _propagates(options: DeleteOptions, finalizer: str, before: list[str]) -> bool:
    if options.orphan_dependents is not None:
        return finalizer == ORPHAN_DEPENDENTS and options.orphan_dependents
    if options.propagation is not None:
        return options.propagation == ("Orphan" if finalizer == ORPHAN_DEPENDENTS else "Foreground")
    return finalizer in before and not (finalizer == FOREGROUND_DELETION and ORPHAN_DEPENDENTS in before)


def _count_generation(metadata: dict[str, Any]) -> None:
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


# Whose deletion is answered with the object itself; all others answer a Status.
ANSWERS_OBJECT = frozenset({"pods", "services", "serviceaccounts", "namespaces"})
NAMESPACES = "namespaces"


def read_options(request: ApiRequest) -> DeleteOptions:
    """From the body when there is one, else from the query."""
    given: Any = read_body(request) if request.body else {}
    given = {} if given is None else given  # some clients send null for no options
    if not isinstance(given, dict):
        raise bad_request("couldn't get version/kind; json parse error: the options are not an object")
    if given.get("kind") not in (None, "", "DeleteOptions"):
        version = given.get("apiVersion") or "meta.k8s.io/v1"
        raise bad_request(f'no kind "{given["kind"]}" is registered for version "{version}" {SCHEME}')
    query = request.query
    grace_s = _whole(given, "gracePeriodSeconds")
    propagation = _text(given, "propagationPolicy")
    orphan = given.get("orphanDependents")
    if not request.body:
        grace_s = integer(query, "gracePeriodSeconds")
        propagation = query.get("propagationPolicy") or None
        orphan = is_true(query["orphanDependents"]) if "orphanDependents" in query else None
    if orphan is not None and not isinstance(orphan, bool):
        raise _wrong_type("orphanDependents", orphan, "bool")
    stages = given.get("dryRun") if isinstance(given.get("dryRun"), list) else None
    asked = stages or ([query["dryRun"]] if "dryRun" in query else [])
    if errors := [*dry_run_problems(asked), *_policy_problems(propagation, orphan)]:
        raise invalid_options("DeleteOptions", errors)
    wanted = given.get("preconditions") or {}
    if not isinstance(wanted, dict):
        raise _wrong_type("preconditions", wanted, "v1.Preconditions")
    return DeleteOptions(
        grace_period_s=max(grace_s, 1) if grace_s is not None and grace_s < 0 else grace_s,
        propagation=propagation,
        orphan_dependents=orphan,
        uid=_text(wanted, "uid"),
        resource_version=_text(wanted, "resourceVersion"),
        is_dry_run=bool(asked),
    )


def deleted_status(kind: Kind, record: Record) -> Document:
    """The answer when an object is gone and is not shown."""
    details = details_of(kind.resource, record.key.name, uid=record.traits.uid)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _policy_problems(propagation: str | None, orphan: bool | None) -> list[FieldError]:
    field = "propagationPolicy"
    if propagation is None:
        return []
    if orphan is not None:
        return [invalid(field, propagation, "orphanDependents and deletionPropagation cannot be both set")]
    if propagation not in POLICIES:
        return [not_supported(field, propagation, ("Foreground", "Background", "Orphan", "nil"))]
    return []


def _whole(given: Document, name: str) -> int | None:
    value = given.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise _wrong_type(name, value, "int64")
    return value


def _text(given: Document, name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong_type(name, value, "string")
    return value or None


def _wrong_type(name: str, value: Any, wanted: str) -> Refusal:
    return bad_request(f"json: cannot unmarshal {json_type(value)} into Go struct field DeleteOptions.{name} of type {wanted}")
