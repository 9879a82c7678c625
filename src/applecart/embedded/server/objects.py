"""Objects on their way in and out of the store: a checked document becomes a record, a deleted one leaves its last state.

The stored value is the document without apiVersion and kind, encoded once; an answer is the kind's prefix and the same bytes.
Between reading the tip and these calls nothing may wait; they hand the write over and return at once. The caller awaits the
future before it answers, so that nothing is acknowledged that is not durable.
"""

import asyncio
from typing import Any, NamedTuple

import msgspec

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.server.core import Core
from applecart.embedded.server.registry import traits_of
from applecart.embedded.store.record import Op, Record

encode = msgspec.json.encode
_TYPE = ("apiVersion", "kind")


class Written(NamedTuple):
    """What a write left behind: the object's bytes without its type."""

    document: Document
    value: bytes
    is_created: bool = False


def key_of(kind: Kind, document: Document) -> Key:
    metadata = document["metadata"]
    return Key(metadata.get("namespace", "") if kind.resource.namespaced else "", metadata["name"])


def encoded(document: Document) -> bytes:
    """The bytes to store: no type, metadata first so that a person finds it."""
    return encode({"metadata": document["metadata"], **{name: value for name, value in document.items() if name not in _TYPE}})


def typed(kind: Kind, value: bytes) -> bytes:
    """A stored value as a whole document of a kind."""
    return kind.prefix + value[1:]


def document_of(kind: Kind, record: Record) -> Document:
    """A record as a document with its type, fresh and free to change."""
    return {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, **record.document()}


def with_revision(value: bytes, revision: int) -> bytes:
    """The same object, said to be of another revision."""
    document: dict[str, Any] = msgspec.json.decode(value)
    document["metadata"]["resourceVersion"] = str(revision)
    return encode(document)


class Submitted(NamedTuple):
    """A write on its way."""

    record: Record
    durable: "asyncio.Future[None] | None"  # None when there was nothing to write

    async def settle(self) -> Record:
        if self.durable is not None:
            # A caller that goes away must not take the write with it: others may wait for the same one.
            await asyncio.shield(self.durable)
        return self.record


def find(core: Core, kind: Kind, key: Key) -> Record | None:
    """The object as the next write finds it."""
    return core.store.table(kind.storage.label).tip(key)


def unchanged(core: Core, record: Record) -> Submitted:
    """Nothing to write; but what is answered must be durable all the same."""
    return Submitted(record, core.store.settled(record.revision))


def put(core: Core, kind: Kind, document: Document, *, is_new: bool) -> Submitted:
    """Store a document of the stored form."""
    revision = core.store.next_revision()
    document["metadata"]["resourceVersion"] = str(revision)
    record = Record(key_of(kind, document), revision, encoded(document), traits_of(kind, document))
    return Submitted(record, core.store.write(kind.storage.label, Op.ADDED if is_new else Op.MODIFIED, record))


def put_view(core: Core, kind: Kind, document: Document, *, is_new: bool) -> Submitted:
    """Store a document of any served form; it is told its revision."""
    if kind.view is None:
        return put(core, stored_form(core, kind), document, is_new=is_new)
    submitted = put(core, stored_form(core, kind), kind.view.to_stored(document), is_new=is_new)
    document["metadata"]["resourceVersion"] = str(submitted.record.revision)
    return submitted


def viewed(core: Core, kind: Kind, record: Record) -> Document:
    """A record in the form of a served kind, fresh and free to change."""
    if kind.view:
        return kind.view.from_stored(document_of(stored_form(core, kind), record))
    return document_of(kind, record)


def remove(core: Core, kind: Kind, record: Record) -> Submitted:
    """Take an object out; watchers get its last state with the deletion's revision."""
    revision = core.store.next_revision()
    last = Record(record.key, revision, with_revision(record.value, revision), record.traits)
    return Submitted(last, core.store.write(kind.storage.label, Op.DELETED, last))


def stored_form(core: Core, kind: Kind) -> Kind:
    """The kind in whose form objects are kept: another version, or the other view of the same objects."""
    return core.registry.storing(kind.storage.label) or kind
