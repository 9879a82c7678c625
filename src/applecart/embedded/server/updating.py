"""PUT and every PATCH: one object, changed.

Whatever the change is, the same rules hold: the caller's resourceVersion and uid must be the stored ones when they are given,
what the server decides is kept, an update that changes nothing writes nothing, and one that takes the last finalizer from a
deleted object removes it. Nothing waits between reading the tip and the write.
"""

from collections.abc import Callable
from typing import Any

from applecart.api.meta import Key, Resource
from applecart.embedded.field_errors import invalid as invalid_field
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.metadata import validate_metadata_update
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import bad_request, conflict, invalid, was_modified
from applecart.embedded.server.core import Core
from applecart.embedded.server.creation import validate_metadata_of
from applecart.embedded.server.deletion import ends_with_update
from applecart.embedded.server.field_owners import Manager, track, track_definition
from applecart.embedded.server.objects import Submitted, put_view, remove, unchanged, viewed
from applecart.embedded.server.request import ApiRequest
from applecart.embedded.server.request import revision as parse_revision
from applecart.embedded.store.record import Record

Make = Callable[[Document], Document]  # from a fresh copy of the object to what it shall be

_TOLD = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = ("uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


def update(
    core: Core,
    request: ApiRequest,
    kind: Kind,
    key: Key,
    record: Record,
    make: Make,
    manager: Manager,
    *,
    verb: str,
    is_dry_run: bool,
    is_applied: bool = False,
) -> tuple[Document, Submitted | None]:
    """Change a stored object; the document is the object after it, in the form of `kind`."""
    subresource = manager.subresource
    old = viewed(core, kind, record)
    document = make(viewed(core, kind, record))
    metadata = document["metadata"]
    _refuse_other_object(kind, key, metadata, old, verb)
    if not is_applied:  # an apply has settled ownership itself
        track(core, kind, old, document, manager)
    core.access.admit(request.user, verb, kind, subresource, document, old)
    _keep_what_the_server_decides(metadata, old["metadata"])
    if subresource == "status":
        kind.strategy.prepare_status(document, old)
        _settle_status_metadata(kind, document, old)
    elif subresource == "finalize":
        kind.strategy.prepare_finalize(document, old)
    else:
        kind.strategy.prepare_update(document, old)
        track_definition(core, kind, old, document)
    _count_generation(kind, document, old)
    errors = validate_metadata_update(metadata, old["metadata"])
    if subresource == "status":
        errors += kind.strategy.validate_status(document, old)
    elif subresource == "finalize":
        errors += kind.strategy.validate_finalize(document, old)
    else:
        errors = kind.strategy.validate_with([*errors, *validate_metadata_of(kind, document)], document, old)
    request.warnings += [str(error) for error in errors if error.is_forgiven]
    if errors := [error for error in errors if not error.is_forgiven]:
        raise invalid(kind.resource, key.name, errors)
    request.warnings += kind.strategy.warnings(document)
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    if document == old:
        return document, unchanged(core, record)
    ends = ends_with_update(document, old) and not _is_held(document)
    if is_dry_run:
        return document, None
    if ends:
        return document, remove(core, kind, record)
    return document, put_view(core, kind, document, is_new=False)


def _refuse_other_object(kind: Kind, key: Key, metadata: dict[str, Any], old: Document, verb: str) -> None:
    """The caller may say which object and which revision it means; then it must be that."""
    actual = old["metadata"]
    if (uid := metadata.get("uid")) and uid != actual["uid"] and verb == "update" and not kind.is_custom:
        # The words of the real server's storage; its key and code say nothing here, but people grep the rest.
        place = "/".join(filter(None, (kind.resource.plural, key.namespace, key.name)))
        why = (
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, AdditionalErrorMsg: "
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {actual['uid']}"
        )
        raise conflict(kind.resource, key.name, why)
    revision = metadata.get("resourceVersion")
    if not revision:
        if not kind.strategy.updates_unconditionally:
            problem = invalid_field("metadata.resourceVersion", 0, "must be specified for an update")
            named = Resource(kind.resource.group, kind.resource.version, kind.resource.plural, kind.resource.plural)
            raise invalid(named, key.name, [problem])
        metadata["resourceVersion"] = actual["resourceVersion"]
    elif revision != actual["resourceVersion"]:
        try:
            parse_revision(revision)
        except ValueError as error:
            raise bad_request(str(error)) from None
        raise was_modified(kind.resource, key.name)


def _keep_what_the_server_decides(metadata: dict[str, Any], actual: dict[str, Any]) -> None:
    for name in _KEPT:
        if name in _TOLD and metadata.get(name):
            continue  # whoever sends another one is told that it cannot be changed
        if name in actual:
            metadata[name] = actual[name]
        else:
            metadata.pop(name, None)
    metadata["name"] = actual["name"]
    if "namespace" in actual:
        metadata["namespace"] = actual["namespace"]


def _settle_status_metadata(kind: Kind, document: Document, old: Document) -> None:
    """Most kinds take nothing but the status through `/status`; Pods and Nodes take labels and the like as well."""
    if kind.strategy.status_takes_metadata:
        return
    metadata = {**old["metadata"], "resourceVersion": document["metadata"].get("resourceVersion", "")}
    if "managedFields" in document["metadata"]:
        metadata["managedFields"] = document["metadata"]["managedFields"]
    document["metadata"].clear()
    document["metadata"].update(metadata)


def _count_generation(kind: Kind, document: Document, old: Document) -> None:
    if kind.strategy.counts_generations and kind.strategy.wanted(document) != kind.strategy.wanted(old):
        document["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _is_held(document: Document) -> bool:
    """A Namespace has finalizers in its spec as well."""
    return document["kind"] == "Namespace" and bool(document.get("spec", {}).get("finalizers"))
