"""Events about objects, for the person who runs `kubectl describe`.

`event` only notes what happened: it never waits, never fails, and drops (and counts) what does not fit, because an Event must
not hold up or break the work it tells about. One task writes them; `event_folding.py` decides which. A text leaves redacted
and is reported before it does (I9).
"""

import asyncio
import re
from collections import deque
from datetime import datetime
from typing import Protocol

import msgspec

from applecart.api.events import Event, EventSource
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.api.pods import ObjectReference
from applecart.clock import Clock
from applecart.errors import ApplecartError, Permanent
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import NotFound
from applecart.kube.event_folding import REMEMBERED, Folding, Series, Subject
from applecart.kube.patch import Merge
from applecart.observe import published
from applecart.observe.logs import logger
from applecart.secrets import redact

LONGEST_MESSAGE_CHARS = 1024  # the API's limit for an Event
LONGEST_NAME_CHARS = 253
QUEUE_LENGTH = 1000  # about 1 MB of texts while the API is away; older ones say more about the cause than newer ones
ATTEMPTS = 4  # each is itself retried for its deadline, so an Event is given up after about two minutes
PACE = Backoff(first_s=1.0, longest_s=10.0)
NAMESPACE_OF_CLUSTER_SCOPED = "default"
_NAME_OF_AN_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")

log = logger(__name__)


class Note(msgspec.Struct, frozen=True):
    """What a caller said, when."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    at: datetime
    at_s: float


class RecorderObserver(Protocol):
    """Hears what became of each Event, for metrics: written, folded away, or dropped."""

    def recorded(self, outcome: str) -> None: ...


class Recorder:
    def __init__(
        self,
        client: Client,
        component: str,
        clock: Clock,
        *,
        host: str = "",
        remembered: int = REMEMBERED,
        observer: RecorderObserver | None = None,
    ) -> None:
        self.dropped = 0  # did not fit, or could not be written
        self._client = client
        self._component = component
        self._host = host
        self._clock = clock
        self._observer = observer
        self._folding = Folding(remembered)
        self._notes: deque[Note] = deque()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:
        """Say what happened to an object. `type` is Normal or Warning, `reason` a word of `applecart.api.reasons`."""
        text = shortened(redact(message))
        published("event", f"{reason}: {text}")
        if len(self._notes) >= QUEUE_LENGTH:
            self._count("dropped")
            return
        self._notes.append(Note(reference_to(obj), type, reason, text, self._clock.now(), self._clock.monotonic()))
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._notes:
                await self._record(self._notes.popleft())
            self._idle.set()

    async def flushed(self) -> None:
        """Wait until everything said so far is written or dropped."""
        await self._idle.wait()

    async def _record(self, note: Note) -> None:
        about = note.about
        subject = Subject(about.uid, about.kind, about.namespace, about.name, note.type, note.reason)
        series = self._folding.fold(subject, note.message, note.at_s)
        if series is None:
            self._count("limited")
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._write(note, series)
            except Permanent as error:
                # The namespace is going, or may not be written to: the next Event about the object may do better.
                self._give_up(note, error)
                return
            except ApplecartError as error:
                if attempt == ATTEMPTS:
                    self._give_up(note, error)
                    return
                await asyncio.sleep(PACE.wait_s(attempt, self._clock.random))
            except Exception as error:
                self._give_up(note, error)
                return
            else:
                self._count("written")
                return

    async def _write(self, note: Note, series: Series) -> None:
        namespace = note.about.namespace or NAMESPACE_OF_CLUSTER_SCOPED
        if series.name:
            change = {
                "count": series.count,
                "lastTimestamp": note.at.replace(microsecond=0),
                "message": shortened(series.message),
            }
            try:
                await self._client.patch(Event, Key(namespace, series.name), Merge(change))
                return
            except NotFound:
                series.name = ""  # the API keeps Events for an hour: begin a new one that goes on counting
        name = event_name(note.about.name, self._clock.random.getrandbits(64))
        await self._client.create(self._new_event(note, series, Key(namespace, name)))
        series.name = name

    def _new_event(self, note: Note, series: Series, key: Key) -> Event:
        at = note.at.replace(microsecond=0)
        series.first_at = series.first_at or at
        return Event(
            metadata=ObjectMeta(name=key.name, namespace=key.namespace),
            involved_object=note.about,
            type=note.type,
            reason=note.reason,
            message=shortened(series.message),
            count=series.count,
            first_timestamp=series.first_at,
            last_timestamp=at,
            source=EventSource(component=self._component, host=self._host),
            reporting_component=self._component,
            reporting_instance=self._host,
        )

    def _give_up(self, note: Note, error: Exception) -> None:
        self._count("dropped")
        log.warning("an Event could not be written", object=_key_of(note), reason=note.reason, exc_info=error)

    def _count(self, outcome: str) -> None:
        self.dropped += outcome == "dropped"
        if self._observer:
            self._observer.recorded(outcome)


def reference_to(obj: Object) -> ObjectReference:
    return ObjectReference(
        api_version=obj.resource.api_version,
        kind=obj.resource.kind,
        namespace=obj.namespace,
        name=obj.name,
        uid=obj.uid,
        resource_version=obj.revision,
    )


def event_name(object_name: str, number: int) -> str:
    """`<object>.<hex>`, as kubectl users know it; an object whose name is none for an Event lends it none."""
    suffix = f".{number:016x}"
    stem = object_name[: LONGEST_NAME_CHARS - len(suffix)].rstrip("-.")
    return f"{stem if _NAME_OF_AN_OBJECT.fullmatch(stem) else 'object'}{suffix}"


def shortened(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE_CHARS else f"{message[: LONGEST_MESSAGE_CHARS - 3]}..."


def _key_of(note: Note) -> Key:
    return Key(note.about.namespace, note.about.name)
