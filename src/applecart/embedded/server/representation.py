"""Reading: which objects, and in which form they leave the server: themselves, their metadata, or rows of a Table.

GET of one object, of a collection, and watches. The plain form is bytes the store already holds; the others are made from the
document when they are asked for.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial

import msgspec
import yaml

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.kinds.strategy import Document
from applecart.embedded.refusals import Refusal, bad_request, not_found
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop, spend
from applecart.embedded.server import listing, watching
from applecart.embedded.server.core import Core
from applecart.embedded.server.listing import SLICE, Page, Selection, in_slices
from applecart.embedded.server.objects import encode, encoded, typed, viewed
from applecart.embedded.server.request import END, JSON, Answer, ApiRequest, StreamAnswer, revision
from applecart.embedded.server.watching import Form
from applecart.embedded.server.worker import LARGE_BYTES
from applecart.embedded.store.record import Record
from applecart.embedded.surface import negotiation
from applecart.embedded.surface.negotiation import choose_answer, refuse_wrong_number
from applecart.embedded.tables.render import META_GROUP, TableWriter, partial_metadata, read_include_object, table_document

ROWS_PER_SLICE = 250  # of a Table: a row costs about ten times a plain object
MOST_YAML_BYTES = 1 << 20  # of a list and of discovery: YAML takes a second for each 100 kB
STEPS_OF_YAML = 8  # of a byte of JSON: `[],` takes 20 µs


class Forms:
    """The form that one request takes."""

    def __init__(self, core: Core, request: ApiRequest, kind: Kind, *, is_list: bool = False, is_watch: bool = False) -> None:
        self._core = core
        self._kind = kind
        self._user = request.user
        self._chosen: negotiation.Negotiated = choose_answer(
            request.accept,
            version=kind.resource.version,
            is_custom=kind.is_custom,
            is_list=is_list,
            is_watch=is_watch,
        )
        if not is_watch:
            refuse_wrong_number(self._chosen, kind, is_list=is_list)
        self._include = read_include_object(request.query.get("includeObject")) if self._chosen.shape == "table" else "None"

    # One object

    def one(self, record: Record, status: int = 200) -> Answer:
        if self._chosen.shape == "object":
            return self._sent(self._plain(record), status)
        return self.document(self._document(record), status)

    def document(self, document: Document, status: int = 200) -> Answer:
        """An object that was not stored as it is answered."""
        match self._chosen.shape:
            case "object":
                body = typed(self._kind, encoded(document))
            case "table":
                body = self._table_of(document, document["metadata"].get("resourceVersion", ""))
            case _:
                body = encode(partial_metadata(document, self._chosen.meta_version))
        return self._sent(body, status)

    def status(self, status: Document) -> Answer:
        """What was done, where the object is not shown: it has one shape, whichever was asked for."""
        return self._sent(encode(status), 200)

    # Many

    def list(self, page: Page) -> Answer | StreamAnswer:
        before, convert, after, slice_size = self._list_parts(page)
        pieces = in_slices(page.records, convert, before, after + END, slice_size, self._make)
        if self._chosen.is_yaml:
            if sum(record.size_bytes for record in page.records) > MOST_YAML_BYTES:
                raise _too_long_for_yaml("list")
            return StreamAnswer(self._as_yaml(pieces), content_type=self._chosen.media_type)
        if len(page.records) <= slice_size and all(record.size_bytes <= LARGE_BYTES for record in page.records):
            with suppress(TooMuchForTheLoop), on_the_loop():
                return self._sent(b"".join((before, b",".join(map(convert, page.records)), after)), 200)
        return StreamAnswer(pieces)

    async def _make(self, records: Sequence[Record], encode: Callable[[], bytes]) -> bytes:
        """What is not sent as it is stored is made into its form beside the loop, where that is much work."""
        is_plain = self._chosen.shape == "object" and not self._kind.view
        if self._core.worker is None or is_plain:
            return encode()
        if not any(record.size_bytes > LARGE_BYTES for record in records):
            with suppress(TooMuchForTheLoop), on_the_loop():
                return encode()
        return await self._core.worker.run(self._user, encode, is_stream=True)

    async def _as_yaml(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        body = b"".join([piece async for piece in pieces])
        worker = self._core.worker
        yield to_yaml(body) if worker is None else await worker.run(self._user, partial(to_yaml, body), is_stream=True)

    def _list_parts(self, page: Page) -> tuple[bytes, Callable[[Record], bytes], bytes, int]:
        match self._chosen.shape:
            case "table":
                writer = TableWriter(self._kind.table, self._core.clock.now(), self._include, self._chosen.meta_version)
                head = writer.head(page.metadata())
                return head, lambda record: writer.row(self._document(record)), writer.TAIL, ROWS_PER_SLICE
            case "object":
                api_version, name = self._kind.resource.api_version, self._kind.list_kind
                convert = self._plain if self._kind.is_custom or self._kind.view else _untyped
            case _:
                api_version, name = f"{META_GROUP}/{self._chosen.meta_version}", "PartialObjectMetadataList"
                convert = self._partial
        head = b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
            name.encode(),
            api_version.encode(),
            encode(page.metadata(is_custom=self._kind.is_custom and self._chosen.shape == "object")),
        )
        return head, convert, b"]}", SLICE

    # A watch

    def watch(self) -> Form:
        resource = self._kind.resource
        match self._chosen.shape:
            case "object":
                name, convert, first = f"object {resource.api_version}", self._plain, None
                of = (resource.api_version, resource.kind)
            case "table":
                name = f"table {resource.api_version} {self._include}"
                convert, first = self._row, partial(self._row, with_columns=True)
                of = (resource.api_version, resource.kind)
            case _:
                name, convert, first = f"metadata {self._chosen.meta_version}", self._partial, None
                of = (f"{META_GROUP}/{self._chosen.meta_version}", "PartialObjectMetadata")

        def bookmark(revision: int, annotations: dict[str, str]) -> dict[str, object]:
            metadata: dict[str, object] = {"resourceVersion": str(revision)}
            if annotations:
                metadata["annotations"] = annotations
            return {"kind": of[1], "apiVersion": of[0], "metadata": metadata}

        return Form(name, convert, bookmark, self._make, first)

    # Encoding

    def _plain(self, record: Record) -> bytes:
        if self._kind.view:
            return typed(self._kind, encoded(self._document(record)))
        return typed(self._kind, record.value)

    def _partial(self, record: Record) -> bytes:
        return encode(partial_metadata(self._document(record), self._chosen.meta_version))

    def _row(self, record: Record, *, with_columns: bool = False) -> bytes:
        return self._table_of(self._document(record), str(record.revision), with_columns=with_columns)

    def _table_of(self, document: Document, revision: str, *, with_columns: bool = True) -> bytes:
        return table_document(
            self._kind.table,
            [document],
            self._core.clock.now(),  # a watch lasts, and ages are as old as its events
            {"resourceVersion": revision},
            include_object=self._include,
            with_columns=with_columns,
            version=self._chosen.meta_version,
        )

    def _document(self, record: Record) -> Document:
        return viewed(self._core, self._kind, record)

    def _sent(self, body: bytes, status: int) -> Answer:
        if self._chosen.is_yaml:
            return Answer(status, to_yaml(body), self._chosen.media_type)
        return Answer(status, body + END)


def to_yaml(body: bytes) -> bytes:
    spend(len(body) * STEPS_OF_YAML)
    text: str = yaml.dump(msgspec.json.decode(body), Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    return text.encode()


def sent(document: object, accept: str, status: int = 200) -> Answer:
    """A document that has one form only."""
    media_type = negotiation.choose_plain(accept)
    return Answer(status, in_encoding(encode(document), media_type), media_type)


def in_encoding(body: bytes, media_type: str) -> bytes:
    """A document that is not stored, from JSON."""
    if media_type == JSON:
        return body + END
    if len(body) > MOST_YAML_BYTES:
        raise _too_long_for_yaml("document")
    return to_yaml(body)


def _too_long_for_yaml(what: str) -> Refusal:
    return Refusal(406, "NotAcceptable", f"the {what} is too long for YAML: limit is {MOST_YAML_BYTES}; ask for JSON")


def _untyped(record: Record) -> bytes:
    return record.value  # items of built-in lists do not repeat their type


async def get(core: Core, request: ApiRequest, kind: Kind, key: Key) -> Answer:
    forms = Forms(core, request, kind)
    _refuse_future(core, request)
    record = core.store.table(kind.storage.label).get(key)
    if record is None:
        raise not_found(kind.resource, key.name)
    return forms.one(record)


async def list_(core: Core, request: ApiRequest, kind: Kind, namespace: str | None) -> Answer | StreamAnswer:
    forms = Forms(core, request, kind, is_list=True)
    options = listing.read_options(request.query)
    selection = Selection(kind, namespace, request.query)
    return forms.list(await listing.page(core, kind, selection.namespace, options, selection))


async def watch(core: Core, request: ApiRequest, kind: Kind, namespace: str | None) -> StreamAnswer:
    forms = Forms(core, request, kind, is_watch=True)
    options = watching.read_options(request.query)
    return StreamAnswer(watching.stream(core, kind, Selection(kind, namespace, request.query), options, forms.watch()))


def _refuse_future(core: Core, request: ApiRequest) -> None:
    """Who asks for a state at least as new as some revision must not get an older one."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return
    try:
        asked = revision(text)
    except ValueError as error:
        raise bad_request(f'resourceVersion: Invalid value: "{text}": {error}') from None
    if asked > core.store.revision:
        raise listing.too_large(asked, core.store.revision)
