"""POST: a new object.

Order matters, because clients see the first refusal: the namespace must match and exist, then the server fills in what it
decides, then everything is validated, and only then is the name looked up. Nothing waits between that look and the write.
"""

import uuid
from typing import Any

from applecart.clock import Clock
from applecart.embedded.field_errors import FieldError
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.metadata import validate_metadata
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import already_exists, bad_request, forbidden, invalid, not_found
from applecart.embedded.server.core import Core
from applecart.embedded.server.field_owners import Manager, track, track_definition
from applecart.embedded.server.objects import Submitted, find, key_of, put_view
from applecart.embedded.server.pod_admission import admit_pod
from applecart.embedded.server.request import ApiRequest
from applecart.embedded.times import stamp

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, no look-alikes: no words, and readable aloud
SUFFIX_LENGTH = 5
LONGEST_BASE = 58  # with the suffix a name is a DNS label of 63
NAME_ATTEMPTS = 8  # of a generated name that is taken

_SET_BY_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
NAMESPACES = "namespaces"


def create(
    core: Core,
    request: ApiRequest,
    kind: Kind,
    document: Document,
    namespace: str,
    manager: Manager,
    *,
    is_dry_run: bool,
    is_applied: bool = False,
) -> tuple[Document, Submitted | None]:
    """Check and store a document; nothing is stored in a dry run."""
    metadata = document["metadata"]
    if core.registry.is_leaving(kind):
        why = "create not allowed while custom resource definition is terminating"
        raise forbidden(kind.resource, metadata.get("name") or "", why)
    settle_namespace(kind, metadata, namespace)
    if not is_applied:  # before admission: what the server adds from other objects is nobody's
        track(core, kind, None, document, manager)
    if kind.resource.namespaced:
        refuse_missing_namespace(core, kind, metadata)
    if kind.resource.label == "pods":
        admit_pod(core, document)
    core.access.admit(request.user, "create", kind, "", document, None)
    revision = metadata.get("resourceVersion") or "0"
    if revision.isdecimal() and int(revision):  # one that is no number counts as none
        # The real server's words; it answers 500, although the mistake is the caller's.
        raise bad_request("resourceVersion should not be set on objects to be created")
    metadata.pop("resourceVersion", None)
    generates = not metadata.get("name") and bool(metadata.get("generateName"))
    _fill_in(core.clock, kind, metadata)
    kind.strategy.prepare_create(document)
    track_definition(core, kind, None, document)
    _count_first_generation(kind, metadata)
    if generates:
        _generate_name(core.clock, kind, document)
    if errors := validate_new(kind, document):
        raise invalid(kind.storage if kind.view and not kind.is_custom else kind.resource, metadata.get("name", ""), errors)
    request.warnings += kind.strategy.warnings(document)
    key = key_of(kind, document)
    taken = find(core, kind, key)
    for _ in range(NAME_ATTEMPTS if generates and taken else 0):
        _generate_name(core.clock, kind, document)
        key = key_of(kind, document)
        if (taken := find(core, kind, key)) is None:
            break
    if taken is not None:
        is_leaving = b'"deletionTimestamp"' in taken.value and "deletionTimestamp" in taken.document()["metadata"]
        raise already_exists(kind.resource, key.name, is_being_deleted=is_leaving)
    if is_dry_run:
        return document, None
    return document, put_view(core, kind, document, is_new=True)


def settle_namespace(kind: Kind, metadata: dict[str, Any], namespace: str) -> None:
    """The namespace of the path and of the body are one; the body may leave it out."""
    given = metadata.get("namespace", "")
    if not kind.resource.namespaced:
        if given:
            metadata.pop("namespace")
        return
    if given and given != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    metadata["namespace"] = namespace


def refuse_missing_namespace(core: Core, kind: Kind, metadata: dict[str, Any]) -> None:
    """Objects are only made in namespaces that exist and stay."""
    namespace = metadata["namespace"]
    home = core.reader.get(NAMESPACES, "", namespace)
    if home is None:
        homes = core.registry.find("", "v1", NAMESPACES)
        assert homes is not None
        raise not_found(homes.resource, namespace)
    if home["metadata"].get("deletionTimestamp") is not None:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        cause = {"reason": "NamespaceTerminating", "message": f"namespace {namespace} is being terminated"}
        cause["field"] = "metadata.namespace"
        raise forbidden(kind.resource, metadata.get("name", ""), why, causes=[cause])


def validate_new(kind: Kind, document: Document) -> list[FieldError]:
    return kind.strategy.validate_with(validate_metadata_of(kind, document), document, None)


def validate_metadata_of(kind: Kind, document: Document) -> list[FieldError]:
    metadata = document["metadata"]
    return validate_metadata(
        metadata,
        namespaced=kind.resource.namespaced,
        name_problems=kind.strategy.validate_name,
        is_custom=kind.is_custom,
    )


def generated_name(clock: Clock, base: str) -> str:
    return base[:LONGEST_BASE] + "".join(clock.random.choices(NAME_ALPHABET, k=SUFFIX_LENGTH))


def _generate_name(clock: Clock, kind: Kind, document: Document) -> None:
    document["metadata"]["name"] = generated_name(clock, document["metadata"]["generateName"])
    kind.strategy.default(document)  # some defaults depend on the name


def new_uid(clock: Clock) -> str:
    return str(uuid.UUID(int=clock.random.getrandbits(128), version=4))


def _fill_in(clock: Clock, kind: Kind, metadata: dict[str, Any]) -> None:
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    metadata["uid"] = new_uid(clock)
    metadata["creationTimestamp"] = stamp(clock.now())


def _count_first_generation(kind: Kind, metadata: dict[str, Any]) -> None:
    if kind.strategy.counts_generations:
        metadata["generation"] = 1
