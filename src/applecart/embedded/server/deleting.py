"""DELETE: of one object, and of all that match.

The decision is `deletion`'s; here it is carried out. Namespaces go in two steps, because their content goes first.
"""

from dataclasses import replace
from typing import Any

from applecart.api.meta import Key
from applecart.embedded.field_errors import FieldError, invalid, not_supported
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, not_found
from applecart.embedded.server.bodies import SCHEME, read_body
from applecart.embedded.server.core import Core
from applecart.embedded.server.definition_kind import begin_leaving
from applecart.embedded.server.deletion import POLICIES, DeleteOptions, Fate, decide, mark, refuse_unmet
from applecart.embedded.server.objects import Submitted, document_of, encoded, find, put, remove, stored_form, unchanged
from applecart.embedded.server.registry import CRD_LABEL
from applecart.embedded.server.request import ApiRequest, dry_run_problems, integer, invalid_options, is_true
from applecart.embedded.store.record import Record

# Whose deletion is answered with the object itself; all others answer a Status.
ANSWERS_OBJECT = frozenset({"pods", "services", "serviceaccounts", "namespaces"})
NAMESPACES = "namespaces"


def read_options(request: ApiRequest) -> DeleteOptions:
    """From the body when there is one, else from the query."""
    given: Any = read_body(request) if request.body else {}
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


def delete(
    core: Core, request: ApiRequest, kind: Kind, key: Key, options: DeleteOptions
) -> tuple[Record, Submitted | None, bool]:
    """Delete one object: the object as it is now, the write to wait for, and whether it is gone."""
    record = find(core, kind, key)
    if record is None:
        raise not_found(kind.resource, key.name)
    stored = stored_form(core, kind)
    document = document_of(stored, record)
    if refusal := refuse_unmet(kind, document, options):
        raise refusal
    core.access.admit(request.user, "delete", kind, "", None, document)
    if kind.resource.label == NAMESPACES:
        return _delete_namespace(core, stored, record, document, options)
    now = core.clock.now()
    if kind.resource.label == CRD_LABEL and document["metadata"].get("deletionTimestamp") is None:
        begin_leaving(document, now)
        if options.is_dry_run:
            return record, None, False
        marked = put(core, stored, document, is_new=False)
        return marked.record, marked, False
    fate = decide(kind, document, options, now)
    if options.is_dry_run:
        shown = Record(record.key, record.revision, encoded(document), record.traits)
        return shown, None, fate in (Fate.REMOVE, Fate.MARK_THEN_REMOVE)
    match fate:
        case Fate.LEAVE:
            return record, unchanged(core, record), False
        case Fate.MARK:
            marked = put(core, stored, document, is_new=False)
            return marked.record, marked, False
        case Fate.MARK_THEN_REMOVE:
            marked = put(core, stored, document, is_new=False)
            removed = remove(core, stored, marked.record)
            return removed.record, removed, True
        case Fate.REMOVE:
            removed = remove(core, stored, record)
            return removed.record, removed, True


def _delete_namespace(
    core: Core, kind: Kind, record: Record, document: Document, options: DeleteOptions
) -> tuple[Record, Submitted | None, bool]:
    metadata = document["metadata"]
    if metadata.get("deletionTimestamp") is None:
        mark(metadata, core.clock.now())
        metadata.pop("deletionGracePeriodSeconds")
        document.setdefault("status", {})["phase"] = "Terminating"
        if options.is_dry_run:
            return record, None, False
        marked = put(core, kind, document, is_new=False)
        return marked.record, marked, False
    if document.get("spec", {}).get("finalizers"):
        return record, unchanged(core, record), False
    if metadata.get("finalizers"):
        return record, unchanged(core, record), False
    return record, None if options.is_dry_run else remove(core, kind, record), True


def without_revision(options: DeleteOptions) -> DeleteOptions:
    """The same options for an object that we have changed ourselves in between."""
    return replace(options, resource_version=None)


def deleted_status(kind: Kind, record: Record) -> Document:
    """The answer when an object is gone and is not shown."""
    details: Document = {"name": record.key.name}
    if kind.resource.group:
        details["group"] = kind.resource.group
    details |= {"kind": kind.resource.plural, "uid": record.traits.uid}
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
    found = {str: "string", bool: "bool", list: "array", dict: "object"}.get(type(value), "number")
    return bad_request(f"json: cannot unmarshal {found} into Go struct field DeleteOptions.{name} of type {wanted}")
