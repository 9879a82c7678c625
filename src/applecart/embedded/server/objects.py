"""Objects between their two forms: documents that handlers work on, and records of the store.

The stored value is the document without apiVersion and kind, encoded once; an answer is the kind's prefix and the same bytes.
"""

from typing import Any

import msgspec

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.server.core import Core
from applecart.embedded.store.record import Record

encode = msgspec.json.encode
_TYPE = ("apiVersion", "kind")


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


def find(core: Core, kind: Kind, key: Key) -> Record | None:
    """The object as the next write finds it."""
    return core.store.table(kind.storage.label).tip(key)


def viewed(core: Core, kind: Kind, record: Record) -> Document:
    """A record in the form of a served kind, fresh and free to change."""
    if kind.view:
        return kind.view.from_stored(document_of(stored_form(core, kind), record))
    return document_of(kind, record)


def stored_form(core: Core, kind: Kind) -> Kind:
    """The kind in whose form objects are kept: another version, or the other view of the same objects."""
    return core.registry.storing(kind.storage.label) or kind
