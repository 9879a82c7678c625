"""The one gate in front of the store: every write passes it, and no handler writes by itself.

The order is the real server's, because clients see the first refusal: who owns what, admission of the object as it would be,
what the server decides itself, validation, the right to create where an update creates, and only then the store. Nothing waits
between reading the tip and the write; the caller awaits what it gets before it answers, so that nothing is acknowledged that is
not durable. What the server writes of its own accord comes through `write_own`.
"""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from applecart.api.meta import Resource, stamp
from applecart.clock import Clock
from applecart.embedded.auth.user import MASTERS, Attributes, User
from applecart.embedded.field_errors import FieldError
from applecart.embedded.field_errors import invalid as invalid_field
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.metadata import unqualified_finalizers, validate_metadata, validate_metadata_update
from applecart.embedded.kinds.strategy import Document, keep
from applecart.embedded.patching.managed_fields import same_but_times
from applecart.embedded.patching.values import unchanged
from applecart.embedded.refusals import Refusal, already_exists, bad_request, invalid, not_found, unmet_in_storage, was_modified
from applecart.embedded.schema.budget import nothing_is_done_again
from applecart.embedded.server.admission import NAMESPACES, Write, admit, admit_new
from applecart.embedded.server.core import Core
from applecart.embedded.server.deletion import DeleteOptions, Fate, decide, ends_with_update, refuse_unmet
from applecart.embedded.server.field_owners import track, track_definition, track_own
from applecart.embedded.server.listing import sliced
from applecart.embedded.server.objects import document_of, encoded, find, key_of, stored_form, viewed, with_revision
from applecart.embedded.server.registry import traits_of
from applecart.embedded.server.request import revision as parse_revision
from applecart.embedded.server.syntax import refuse_many_values
from applecart.embedded.server.trial import beside_the_loop
from applecart.embedded.server.worker import LARGE_BYTES
from applecart.embedded.store.record import Op, Record

SYSTEM = User("system:apiserver", (MASTERS,))  # the server itself
NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels, no look-alikes: no words, and readable aloud
SUFFIX_LENGTH = 5
LONGEST_BASE = 58  # with the suffix a name is a DNS label of 63
OBJECT_LIMIT_BYTES = 3 << 19  # as etcd: 1.5 MiB
NAME_ATTEMPTS = 8  # of a generated name that is taken
DELETED_AT_ONCE = 100  # objects of a collection between two turns of others; some milliseconds
DELETED_BYTES_AT_ONCE = 64 << 10  # likewise; the worst of these take some 30 ms

Change = Callable[[Document], Document]  # from a fresh copy of the object to what it shall be

_SET_BY_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
_TOLD = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds")
_KEPT = ("uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


class Submitted(NamedTuple):
    """A write on its way."""

    record: Record
    durable: "asyncio.Future[None] | None"  # None when there was nothing to write

    async def settle(self) -> Record:
        if self.durable is not None:
            # A caller that goes away must not take the write with it: others may wait for the same one.
            await asyncio.shield(self.durable)
        return self.record


class Admitted(NamedTuple):
    """What was posted below an object, after admission; only such a write may `amend` the object."""

    write: Write


# Writes of requests


def create(core: Core, write: Write, document: Document, *, is_applied: bool = False) -> tuple[Document, Submitted | None]:
    """Check and store a new object; nothing is stored in a dry run. An apply has settled ownership itself."""
    kind, metadata = write.kind, document["metadata"]
    settle_namespace(kind, metadata, write.key.namespace)
    if not is_applied:  # before admission: what the server adds from other objects is nobody's
        track(core, kind, None, document, write.manager)
    admit_new(core, write, document)
    revision = metadata.get("resourceVersion") or "0"
    if revision.isdecimal() and int(revision):  # one that is no number counts as none
        # The real server's words; it answers 500, although the mistake is the caller's.
        raise bad_request("resourceVersion should not be set on objects to be created")
    generates = not metadata.get("name") and bool(metadata.get("generateName"))
    for name in _SET_BY_SERVER:
        metadata.pop(name, None)
    _give_identity(core.clock, metadata)
    kind.strategy.prepare_create(document)
    track_definition(core, kind, None, document)
    if kind.strategy.counts_generations:
        metadata["generation"] = 1
    if generates:
        _generate_name(core.clock, kind, document)
    problems = [*_metadata_problems(kind, document), *_finalizer_problems(kind, metadata, {})]
    if errors := kind.strategy.validate_with(problems, document, None):
        raise invalid(kind.storage if kind.view and not kind.is_custom else kind.resource, metadata.get("name", ""), errors)
    if write.verb != "create":
        core.authorizer.check(write.user, _creation(write))
    write.warnings.extend(kind.strategy.warnings(document))
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
    return document, None if write.is_dry_run else _put_view(core, kind, document, is_new=True)


def update(
    core: Core, write: Write, record: Record, make: Change, *, is_applied: bool = False
) -> tuple[Document, Submitted | None]:
    """Change a stored object; the document is the object after it, in the form of the kind.

    The caller's resourceVersion and uid must be the stored ones when they are given, what the server decides is kept, an update
    that changes nothing writes nothing, and one that takes the last finalizer from a deleted object removes it.
    """
    kind, subresource = write.kind, write.subresource
    old = viewed(core, kind, record)
    document = make(viewed(core, kind, record))
    metadata = document["metadata"]
    refuse_other_object(write, metadata, old["metadata"])
    if not is_applied:
        track(core, kind, old, document, write.manager)
    admit(core, write, document, old)
    _refuse_other_revision(write, metadata, old["metadata"])
    _keep_what_the_server_decides(metadata, old["metadata"])
    if subresource == "status":
        kind.strategy.prepare_status(document, old)
        _settle_status_metadata(kind, document, old)
    elif subresource == "finalize":
        kind.strategy.prepare_finalize(document, old)
    else:
        kind.strategy.prepare_update(document, old)
        track_definition(core, kind, old, document)
    if kind.strategy.counts_generations and not unchanged(kind.strategy.wanted(document), kind.strategy.wanted(old)):
        metadata["generation"] = old["metadata"].get("generation", 0) + 1
    errors = [*validate_metadata_update(metadata, old["metadata"]), *_finalizer_problems(kind, metadata, old["metadata"])]
    if subresource == "status":
        errors += kind.strategy.validate_status(document, old)
    elif subresource == "finalize":
        errors += kind.strategy.validate_finalize(document, old)
    else:
        errors = kind.strategy.validate_with([*errors, *_metadata_problems(kind, document)], document, old)
    write.warnings.extend(str(error) for error in errors if error.is_forgiven)
    if errors := [error for error in errors if not error.is_forgiven]:
        raise invalid(kind.resource, write.key.name, errors)
    write.warnings.extend(kind.strategy.warnings(document))
    metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
    if _says_nothing_new(document, old):
        return document, _unchanged(core, record)
    if write.is_dry_run:
        return document, None
    if ends_with_update(document, old):
        return document, remove(core, kind, record)
    return document, _put_view(core, kind, document, is_new=False)


def delete(core: Core, write: Write, options: DeleteOptions) -> tuple[Record, Submitted | None, bool]:
    """Delete one object: the object as it is now, the write to wait for, and whether it is gone."""
    kind = write.kind
    record = find(core, kind, write.key)
    if record is None:
        raise not_found(kind.resource, write.key.name)
    stored = stored_form(core, kind)
    document = document_of(stored, record)
    if refusal := refuse_unmet(kind, document, options):
        raise refusal
    admit(core, write, None, document)
    fate = decide(kind, document, options, core.clock.now())
    is_gone = fate in (Fate.REMOVE, Fate.MARK_THEN_REMOVE)
    if options.is_dry_run:
        return Record(record.key, record.revision, encoded(document), record.traits), None, is_gone
    if fate is Fate.LEAVE:
        return record, _unchanged(core, record), False
    submitted = Submitted(record, None) if fate is Fate.REMOVE else _put(core, stored, document, is_new=False)
    if is_gone:
        submitted = remove(core, stored, submitted.record)
    return submitted.record, submitted, is_gone


async def delete_each(
    core: Core,
    user: User,
    kind: Kind,
    records: Sequence[Record],
    options: DeleteOptions,
    chosen: Callable[[Record], bool],
    refused: dict[int, Refusal] | None = None,
) -> None:
    """Delete these objects, and give others a turn after every few. What is another object by then, or not chosen, stays.

    The first that is refused ends it, unless the caller takes the first refusal of each code in `refused`.
    """

    def delete_still(core: Core, record: Record) -> Submitted | None:
        now = find(core, kind, record.key)
        if now is None or now.traits.uid != record.traits.uid or not chosen(now):
            return None
        return delete(core, Write(user, "delete", kind, record.key), options)[1]

    async def delete_large(core: Core, record: Record) -> None:
        delete_still(core, record)

    for part in sliced(records, DELETED_AT_ONCE, DELETED_BYTES_AT_ONCE):
        last: Submitted | None = None
        for record in part:
            now = find(core, kind, record.key)
            try:
                if core.worker is not None and now is not None and now.size_bytes > LARGE_BYTES:
                    await beside_the_loop(core, user, partial(delete_large, record=record))
                else:
                    last = delete_still(core, record) or last
            except Refusal as refusal:
                if refused is None:
                    raise
                refused.setdefault(refusal.code, refusal)
        if last is not None:
            await last.settle()
        await asyncio.sleep(0)


def admit_below(core: Core, write: Write, asked: Document) -> Admitted:
    """POST below an object (a binding, an eviction, a token): what was sent is admitted, before it is looked at closer."""
    admit(core, write, asked, None)
    return Admitted(write)


def amend(core: Core, admitted: Admitted, document: Document, kind: Kind | None = None) -> Submitted:
    """Store what an admitted POST made of the object below which it came, or of one of another kind that counts it."""
    return _put_view(core, kind or admitted.write.kind, document, is_new=False)


# Writes of the server itself


def write_own(core: Core, kind: Kind, document: Document, *, is_applied: bool = False) -> Submitted:
    """Store what the server itself has made, new or changed: nobody to authorize, nothing to admit."""
    is_new = "uid" not in document["metadata"]
    tip = None if is_new else find(core, kind, key_of(kind, document))
    if not is_applied:
        track_own(core, kind, viewed(core, kind, tip) if tip else None, document)
    if is_new:
        kind.strategy.prepare_create(document)
        _give_identity(core.clock, document["metadata"])
    return _put(core, kind, document, is_new=is_new)


# The store


def _unchanged(core: Core, record: Record) -> Submitted:
    """Nothing to write; but what is answered must be durable all the same."""
    return Submitted(record, core.store.settled(record.revision))


def _put(core: Core, kind: Kind, document: Document, *, is_new: bool, most_bytes: int | None = None) -> Submitted:
    """Store a document of the stored form."""
    revision = core.store.next_revision()
    document["metadata"]["resourceVersion"] = str(revision)
    record = Record(key_of(kind, document), revision, encoded(document), traits_of(kind, document))
    if most_bytes is not None and record.size_bytes > most_bytes:
        if document["metadata"].pop("managedFields", None):  # rather no owners than no object
            return _put(core, kind, document, is_new=is_new, most_bytes=most_bytes)
        # The words of the real server's storage; it answers 500, although the mistake is the caller's.
        raise Refusal(413, "RequestEntityTooLarge", f"etcdserver: request is too large: limit is {most_bytes}")
    if most_bytes is not None:
        refuse_many_values(record.value)  # patch by patch it may have become
    nothing_is_done_again()
    return Submitted(record, core.store.write(kind.storage.label, Op.ADDED if is_new else Op.MODIFIED, record))


def _put_view(core: Core, kind: Kind, document: Document, *, is_new: bool) -> Submitted:
    """Store a document of any served form; it is told its revision."""
    if kind.view is None:
        return _put(core, stored_form(core, kind), document, is_new=is_new, most_bytes=OBJECT_LIMIT_BYTES)
    submitted = _put(core, stored_form(core, kind), kind.view.to_stored(document), is_new=is_new, most_bytes=OBJECT_LIMIT_BYTES)
    document["metadata"]["resourceVersion"] = str(submitted.record.revision)
    return submitted


def remove(core: Core, kind: Kind, record: Record) -> Submitted:
    """Take an object out; watchers get its last state with the deletion's revision."""
    revision = core.store.next_revision()
    last = Record(record.key, revision, with_revision(record.value, revision), record.traits)
    nothing_is_done_again()
    return Submitted(last, core.store.write(kind.storage.label, Op.DELETED, last))


# What is decided about metadata


def _says_nothing_new(document: Document, old: Document) -> bool:
    """Whether an update left everything as it was; who took over nothing by it keeps its time, or that would be a change."""
    metadata, before = document["metadata"], old["metadata"].get("managedFields")
    owners = metadata.get("managedFields")
    if owners and before:
        metadata["managedFields"] = before
    if unchanged(document, old) and (owners is before or same_but_times(owners, before)):
        return True
    if owners:
        metadata["managedFields"] = owners
    return False


def settle_namespace(kind: Kind, metadata: dict[str, Any], namespace: str) -> None:
    """The namespace of the path and of the body are one; the body may leave it out."""
    given = metadata.get("namespace", "")
    if not kind.resource.namespaced:
        if given:
            metadata.pop("namespace")
        return
    refuse_other_namespace(metadata, namespace)
    metadata["namespace"] = namespace


def refuse_other_namespace(metadata: dict[str, Any], namespace: str) -> None:
    if metadata.get("namespace", "") not in ("", namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _creation(write: Write) -> Attributes:
    """What is asked for when an update creates."""
    resource, key = write.kind.resource, write.key
    group, version, plural = resource.group, resource.version, resource.plural
    home = key.name if resource.label == NAMESPACES else key.namespace  # a namespace lies in itself
    return Attributes("create", is_resource=True, group=group, version=version, resource=plural, namespace=home, name=key.name)


def _metadata_problems(kind: Kind, document: Document) -> list[FieldError]:
    return validate_metadata(
        document["metadata"], namespaced=kind.resource.namespaced, name_problems=kind.strategy.name_problems
    )


def _finalizer_problems(kind: Kind, metadata: Document, old: Document) -> list[FieldError]:
    return [] if kind.strategy.names_finalizers_freely else unqualified_finalizers(metadata, old)


def _give_identity(clock: Clock, metadata: dict[str, Any]) -> None:
    metadata["uid"] = str(uuid.UUID(int=clock.random.getrandbits(128), version=4))
    metadata["creationTimestamp"] = stamp(clock.now())


def _generate_name(clock: Clock, kind: Kind, document: Document) -> None:
    base = document["metadata"]["generateName"]
    document["metadata"]["name"] = base[:LONGEST_BASE] + "".join(clock.random.choices(NAME_ALPHABET, k=SUFFIX_LENGTH))
    kind.strategy.default(document)  # some defaults depend on the name


def refuse_other_object(write: Write, metadata: dict[str, Any], actual: dict[str, Any]) -> None:
    kind, key = write.kind, write.key
    if (uid := metadata.get("uid")) and uid != actual["uid"] and write.verb == "update":
        group = kind.resource.group if kind.is_custom else ""
        place = "/".join(filter(None, (group, kind.resource.plural, key.namespace, key.name)))
        raise unmet_in_storage(kind.resource, place, key.name, "UID", uid, actual["uid"])


def _refuse_other_revision(write: Write, metadata: dict[str, Any], actual: dict[str, Any]) -> None:
    """The caller may say which revision it means; then it must be that."""
    kind, key = write.kind, write.key
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
        keep(metadata, actual, name)
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
