"""What every object's metadata must look like, and what of it may never change.

The server fills in uid, timestamps and generation before these checks; here nothing is changed. Objects are written far more
often than they are wrong, so each check first asks whether there is anything to check.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from applecart.api.finalizers import FOREGROUND_DELETION, ORPHAN_DEPENDENTS
from applecart.embedded.field_errors import FieldError, forbidden, invalid, quoted, required
from applecart.embedded.kinds.names import (
    NEGATIVE,
    NameProblems,
    annotation_key_problems,
    label_problems,
    qualified_name_problems,
    size_bytes,
    validate_labels,
)

ANNOTATIONS_MAX_BYTES = 256 * 1024
MANAGER_MAX_BYTES = 128
IMMUTABLE = "field is immutable"
UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"
NULL = msgspec.Raw(b"null")  # how a real server shows a pointer to nothing; it shows plain nothing in quotes
STANDARD_FINALIZERS = frozenset({ORPHAN_DEPENDENTS, FOREGROUND_DELETION, "kubernetes"})
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_TEXTS = ("name", "namespace", "uid")


def validate_metadata(meta: dict[str, Any], *, namespaced: bool, name_problems: NameProblems) -> list[FieldError]:
    """What is wrong with the metadata of an object that is being written."""
    errors: list[FieldError] = []
    prefix, name, namespace = meta.get("generateName"), meta.get("name"), meta.get("namespace")
    if prefix:
        errors += [invalid("metadata.generateName", prefix, problem) for problem in name_problems(prefix, is_prefix=True)]
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, problem) for problem in name_problems(name, is_prefix=False)]
    if namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            errors += [invalid("metadata.namespace", namespace, problem) for problem in label_problems(namespace)]
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (meta.get("generation") or 0) < 0:
        errors.append(invalid("metadata.generation", meta["generation"], NEGATIVE))
    _validate_contents(meta, errors)
    if meta.get("finalizers"):
        _validate_finalizers(meta["finalizers"], errors)
    return errors


def unqualified_finalizers(meta: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """Finalizers of older kinds must say whose they are; one that is there already refuses nothing else that is written."""
    known = old.get("finalizers") or ()
    return [
        invalid(f"metadata.finalizers[{index}]", finalizer, UNQUALIFIED)
        for index, finalizer in enumerate(meta.get("finalizers") or ())
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS and finalizer not in known
    ]


def validate_metadata_update(meta: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """What an update may not do to metadata. `meta` already carries the server's own fields."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            text = ", ".join(quoted(name) for name in added)
            why = "no new finalizers can be added if the object is being deleted, found new finalizers"
            errors.append(forbidden("metadata.finalizers", f"{why} []string{{{text}}}"))
    if not meta.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    if (meta.get("generation") or 0) < (old.get("generation") or 0):
        errors.append(invalid("metadata.generation", meta.get("generation") or 0, "must not be decremented"))
    for name in _FIXED:
        new, before = meta.get(name), old.get(name)
        if new != before and (new or before or (new is not None and before is not None)):
            shown = (new or "") if name in _TEXTS else NULL if new is None else new
            errors.append(invalid(f"metadata.{name}", shown, IMMUTABLE))
    _validate_contents(meta, errors)
    return errors


def _validate_contents(meta: dict[str, Any], errors: list[FieldError]) -> None:
    if meta.get("labels"):
        validate_labels(meta["labels"], "metadata.labels", errors)
    if meta.get("annotations"):
        _validate_annotations(meta["annotations"], errors)
    if meta.get("ownerReferences"):
        _validate_owners(meta["ownerReferences"], errors)
    if meta.get("managedFields"):
        _validate_managed_fields(meta["managedFields"], errors)


def _validate_annotations(annotations: dict[str, str], errors: list[FieldError]) -> None:
    total_bytes = 0
    for key, value in annotations.items():
        errors += [invalid("metadata.annotations", key, problem) for problem in annotation_key_problems(key)]
        total_bytes += size_bytes(key) + size_bytes(value)
    if total_bytes > ANNOTATIONS_MAX_BYTES:
        errors.append(FieldError("TooLong", "metadata.annotations", f"may not be more than {ANNOTATIONS_MAX_BYTES} bytes"))


def _validate_owners(owners: Sequence[dict[str, Any]], errors: list[FieldError]) -> None:
    at = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
        group, _slash, rest = version.rpartition("/")
        if not rest or "/" in group:
            errors.append(invalid(f"{at}.apiVersion", version, "version must not be empty"))
        for name, value in (("kind", kind), ("name", owner.get("name")), ("uid", owner.get("uid"))):
            if not value:
                errors.append(invalid(f"{at}.{name}", "", "must not be empty"))
        if version == "v1" and kind == "Event":
            errors.append(invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller") is True:
            who = f"{kind}/{owner.get('name') or ''}"
            if controller:
                text = 'Only one reference can have Controller set to true. Found "true" in references for'
                errors.append(invalid(at, list(owners), f"{text} {controller} and {who}"))
            else:
                controller = who


def _validate_finalizers(finalizers: Sequence[str], errors: list[FieldError]) -> None:
    at = "metadata.finalizers"
    for finalizer in finalizers:
        errors += [invalid(at, finalizer, problem) for problem in qualified_name_problems(finalizer)]
    if ORPHAN_DEPENDENTS in finalizers and FOREGROUND_DELETION in finalizers:
        errors.append(
            invalid(at, list(finalizers), f"finalizer {ORPHAN_DEPENDENTS} and {FOREGROUND_DELETION} cannot be both set")
        )


def _validate_managed_fields(entries: Sequence[dict[str, Any]], errors: list[FieldError]) -> None:
    for index, entry in enumerate(entries):
        at = f"metadata.managedFields[{index}]"
        operation, kind = entry.get("operation") or "", entry.get("fieldsType") or ""
        if operation not in ("Apply", "Update"):
            errors.append(invalid(f"{at}.operation", operation, "must be `Apply` or `Update`"))
        if kind and kind != "FieldsV1":
            errors.append(invalid(f"{at}.fieldsType", kind, "must be `FieldsV1`"))
        if size_bytes(entry.get("manager") or "") > MANAGER_MAX_BYTES:
            errors.append(FieldError("TooLong", f"{at}.manager", f"may not be more than {MANAGER_MAX_BYTES} bytes"))
