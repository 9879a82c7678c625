"""One watch: the changes of a kind from a revision on, until the server ends it.

Changes come in batches, as many as one read of the network brought: decoding is the cost, and a batch is decoded in one go.
A watch only ever goes forward. Bytes that are no event, a stream that breaks off inside a line, and a revision that goes back
are refused (`Garbled`); silence beyond `idle_s` means the stream is frozen (`Frozen`). Resuming is the informer's work.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

import msgspec

from applecart.api.meta import Object
from applecart.errors import ApplecartError, Transient
from applecart.kube.client import Client, selector_query
from applecart.kube.codec import Decoder, Frame, Garbled, frame_decoder
from applecart.kube.errors import Status, error_from_status
from applecart.kube.paths import collection_path
from applecart.kube.transport import Request

K = TypeVar("K", bound=Object)

# The server sends a bookmark about once a minute; two and a half missed ones are not a slow server any more.
IDLE_S = 150.0
WATCH_S = 300  # how long the server is asked to keep a watch open


class Frozen(Transient):
    """The connection is open and nothing comes through it, not even bookmarks."""


async def watch(
    client: Client,
    kind: type[K],
    revision: str,
    namespace: str = "",
    *,
    labels: str = "",
    fields: str = "",
    watch_s: int = WATCH_S,
    idle_s: float = IDLE_S,
) -> AsyncGenerator[list[Frame[K]], None]:
    """Batches of ADDED, MODIFIED, DELETED and BOOKMARK frames; the first, empty one says that the watch is open.

    Raises `Expired` when the revision is too old.
    """
    query = (
        *selector_query(labels, fields),
        ("watch", "true"),
        ("resourceVersion", revision),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(watch_s)),
    )
    request = Request("GET", collection_path(kind.resource, namespace), query)
    lines = FrameReader(kind, revision, str(request))
    stream = await client.open(request)
    try:
        yield []
        while True:
            try:
                async with asyncio.timeout(idle_s):
                    chunk = await stream.read()
            except TimeoutError:
                raise Frozen(f"watch {request.path}: nothing came for {idle_s:g} s, not even a bookmark") from None
            if not chunk:
                lines.end()
                return
            frames = lines.feed(chunk)
            if frames:
                yield frames
            if lines.error is not None:
                raise lines.error
    finally:
        await stream.aclose()


class FrameReader:
    """Splits bytes into lines and decodes them, without losing what came before a bad one."""

    def __init__(self, kind: type[Object], revision: str, call: str) -> None:
        self.error: Exception | None = None
        self._decoder = frame_decoder(kind)
        self._is_namespaced = kind.resource.namespaced
        self._call = call
        self._rest = b""
        self._position = position_of(revision)

    def feed(self, chunk: bytes) -> list[Frame[Any]]:
        """The frames that are complete now. After a bad one `error` is set and the rest is not looked at."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        strict = self._decoder.strict
        frames: list[Frame[Any]] = []
        for line in lines:
            try:
                frame = strict(line)
                if frame.type == "ERROR":
                    raise self._refusal(line)
            except msgspec.MsgspecError:
                if not line.strip():
                    continue
                try:
                    frame = self._read_again(line)
                except ApplecartError as error:
                    self.error = error
                    break
            except ApplecartError as error:
                self.error = error
                break
            metadata = frame.object.metadata
            if frame.type != "BOOKMARK" and (not metadata.name or bool(metadata.namespace) is not self._is_namespaced):
                self.error = Garbled(f"{self._call}: an event is about an object without a name or in no namespace")
                break
            position = position_of(metadata.resource_version)
            if position < self._position:
                self.error = Garbled(f"{self._call}: revision {position} came after {self._position}")
                break
            self._position = position
            frames.append(frame)
        return frames

    def end(self) -> None:
        """The server ended the stream: half a line means that it did not mean to."""
        if self._rest.strip():
            raise Garbled(f"{self._call}: the stream ended inside an event")

    def _read_again(self, line: bytes) -> Frame[Any]:
        """A line that is no plain event: an ERROR frame, a bookmark, which lacks what its kind requires, nulls, or garbage."""
        try:
            type_ = _type_decoder.decode(line).type
        except msgspec.MsgspecError as error:
            raise Garbled(f"{self._call}: an event cannot be read: {error}") from None
        if type_ == "ERROR":
            raise self._refusal(line)
        return (_bookmark_decoder if type_ == "BOOKMARK" else self._decoder).decode(line)

    def _refusal(self, line: bytes) -> ApplecartError:
        """An ERROR frame holds a Status instead of an object."""
        try:
            return error_from_status(_error_decoder.decode(line).object, self._call)
        except msgspec.MsgspecError as error:
            return Garbled(f"{self._call}: an error event cannot be read: {error}")


class _TypeFrame(msgspec.Struct, frozen=True):
    type: str


class _ErrorFrame(msgspec.Struct, frozen=True):
    object: Status


_type_decoder = msgspec.json.Decoder(_TypeFrame)
_error_decoder = msgspec.json.Decoder(_ErrorFrame)
_bookmark_decoder: Decoder[Frame[Any]] = Decoder(Frame[Object], "bookmark")


def position_of(revision: str) -> int:
    """A revision's place in the order of events; 0 (no order) for a server whose revisions are no numbers."""
    return int(revision) if revision.isdigit() else 0
