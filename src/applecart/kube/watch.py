"""One watch: the changes of a kind from a revision on, until the server ends it.

Changes come in batches, as many as one read of the network brought: decoding is the cost, and a batch is decoded in one go.
A watch only ever goes forward. Bytes that are no event, a stream that breaks off inside a line, and a revision that goes back
are refused (`Garbled`); silence beyond `idle_s` means the stream is frozen (`Frozen`). Resuming is the informer's work.
"""

import asyncio
from collections.abc import AsyncGenerator
from functools import cache
from typing import Any, TypeVar

import msgspec

from applecart.api.meta import Object
from applecart.errors import Transient
from applecart.kube.client import Client, selector_query
from applecart.kube.codec import Frame, Garbled
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
        self._decode = frame_decoder(kind).decode
        self._call = call
        self._rest = b""
        self._position = _position(revision)

    def feed(self, chunk: bytes) -> list[Frame[Any]]:
        """The frames that are complete now. After a bad one `error` is set and the rest is not looked at."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        frames: list[Frame[Any]] = []
        for line in lines:
            try:
                frame = self._decode(line)
            except msgspec.MsgspecError as error:
                if not line.strip():
                    continue
                self.error = self._explain(line, error)
                break
            if frame.type == "ERROR":
                self.error = self._explain(line, None)
                break
            position = _position(frame.object.metadata.resource_version)
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

    def _explain(self, line: bytes, error: Exception | None) -> Exception:
        """An ERROR frame holds a Status instead of an object; anything else that does not decode is garbage."""
        try:
            frame = _error_decoder.decode(line)
        except msgspec.MsgspecError as second:
            return Garbled(f"{self._call}: an event cannot be read: {error or second}")
        if frame.type != "ERROR":
            return Garbled(f"{self._call}: an event cannot be read: {error}")
        return error_from_status(frame.object, self._call)


class _ErrorFrame(msgspec.Struct, frozen=True):
    type: str
    object: Status


_error_decoder = msgspec.json.Decoder(_ErrorFrame)


@cache
def frame_decoder(kind: type[Object]) -> msgspec.json.Decoder[Frame[Any]]:
    return msgspec.json.Decoder(Frame[kind])  # type: ignore[valid-type]


def _position(revision: str) -> int:
    """A revision's place in the order of events; 0 (no order) for a server whose revisions are no numbers."""
    return int(revision) if revision.isdigit() else 0
