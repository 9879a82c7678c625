"""Answers that are not the objects themselves: Tables, and objects reduced to their metadata.

A large Table is written piece by piece (`TableWriter`), so that whoever sends it can let other requests run between two rows.
Nothing is decided here about which objects a caller may see, and no cell is made up: the kind's table says what a row holds.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

import msgspec

from applecart.embedded.field_errors import invalid
from applecart.embedded.kinds.kind import Table
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import bad_request

META_GROUP = "meta.k8s.io"
META_VERSION = "v1"  # `v1beta1` is the same document under its older name

Include = Literal["Metadata", "Object", "None"]

_encode = msgspec.json.Encoder().encode


def read_include_object(text: str | None) -> Include:
    """The query parameter `includeObject`: what a row carries beside its cells."""
    match text:
        case None | "" | "Metadata":
            return "Metadata"
        case "Object" | "None":
            return text
    problem = invalid("includeObject", text, "must be 'Metadata', 'Object', 'None', or empty")
    raise bad_request(f"Unable to convert to Table as requested: {problem}")


class TableWriter:
    """One Table in pieces: `head`, then rows with `SEPARATOR` between them, then `TAIL`."""

    SEPARATOR = b","
    TAIL = b"]}"

    def __init__(self, table: Table, now: datetime, include_object: Include = "Metadata", version: str = META_VERSION) -> None:
        self._table = table
        self._cells = table.cells
        self._conditions = getattr(table, "conditions", None)
        self._now = now
        self._include: Include = include_object
        self._api_version = f"{META_GROUP}/{version}"
        self._partial = f'{{"kind":"PartialObjectMetadata","apiVersion":"{self._api_version}","metadata":'.encode()

    def head(self, list_metadata: dict[str, Any], *, with_columns: bool = True) -> bytes:
        """Everything before the rows. A watch sends the columns with its first event only."""
        return b'{"kind":"Table","apiVersion":"%b","metadata":%b,"columnDefinitions":%b,"rows":[' % (
            self._api_version.encode(),
            _encode(list_metadata),
            _encode(self._table.columns) if with_columns else b"null",
        )

    def row(self, obj: Document) -> bytes:
        cells = _encode(self._cells(obj, self._now))
        conditions = self._conditions(obj) if self._conditions else None
        if conditions:
            return b'{"cells":%b,"conditions":%b,"object":%b}' % (cells, _encode(conditions), self._object(obj))
        return b'{"cells":%b,"object":%b}' % (cells, self._object(obj))

    def _object(self, obj: Document) -> bytes:
        if self._include == "Metadata":
            return b"%b%b}" % (self._partial, _encode(obj.get("metadata") or {}))
        return _encode(obj) if self._include == "Object" else b"null"


def table_document(
    table: Table,
    objects: Iterable[Document],
    now: datetime,
    list_metadata: dict[str, Any],
    *,
    include_object: Include = "Metadata",
    with_columns: bool = True,
    version: str = META_VERSION,
) -> bytes:
    """A whole Table as JSON: for one object, a watch event, a list that is short."""
    writer = TableWriter(table, now, include_object, version)
    rows = writer.SEPARATOR.join([writer.row(obj) for obj in objects])
    return writer.head(list_metadata, with_columns=with_columns) + rows + writer.TAIL


def partial_metadata(obj: Document, version: str = META_VERSION) -> Document:
    """An object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"{META_GROUP}/{version}",
        "metadata": obj.get("metadata") or {},
    }
