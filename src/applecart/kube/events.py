"""Events about objects, for the person who runs `kubectl describe`.

`event` only notes what happened: it never waits, never fails, and drops (and counts) what does not fit, because an Event must
not hold up or break the work it tells about. One task writes them; `Folding` decides which. A text leaves redacted
and is reported before it does (I9).
"""

import asyncio
import re
from collections import OrderedDict, deque
from contextlib import suppress
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from applecart.api.events import Event, EventSource
from applecart.api.meta import Key, Object, ObjectMeta
from applecart.api.pods import ObjectReference
from applecart.clock import Clock
from applecart.errors import ApplecartError, Permanent
from applecart.kube.background import uncancelled
from applecart.kube.backoff import Backoff
from applecart.kube.client import Client
from applecart.kube.errors import AlreadyExists, NotFound
from applecart.kube.patch import Merge
from applecart.observe import published
from applecart.observe.logs import logger
from applecart.secrets import redact

SIMILAR_ALLOWED = 10  # different messages of one object and reason within SIMILAR_WITHIN_S; more are combined
SIMILAR_WITHIN_S = 600.0
COMBINED = "(combined from similar events): "
OBJECT_BURST = 25
OBJECT_REFILL_S = 300.0  # one more Event per object every five minutes
GLOBAL_BURST = 200  # a fleet of 500 hosts that all have something to say at once
GLOBAL_REFILL_S = 0.1  # then ten a second, far below what an API server notices
REMEMBERED = 4096  # about 5 MB of a controller that looks after a fleet

T = TypeVar("T")

LONGEST_MESSAGE_CHARS = 1024  # the API's limit for an Event
LONGEST_NAME_CHARS = 253
QUEUE_LENGTH = 1000  # about 1 MB of texts while the API is away; older ones say more about the cause than newer ones
ATTEMPTS = 4  # each is itself retried for its deadline, so an Event is given up after about two minutes
PACE = Backoff(first_s=1.0, longest_s=10.0)
NAMESPACE_OF_CLUSTER_SCOPED = "default"
_NAME_OF_AN_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


log = logger(__name__)


class Subject(NamedTuple):
    """What an Event is about, and with which word."""

    uid: str
    kind: str
    namespace: str
    name: str
    type: str
    reason: str


class Series(msgspec.Struct):
    """One Event that is counted up. `name` is empty until it is first sent, and stays: two sendings must not make two."""

    message: str
    count: int = 0
    name: str = ""
    first_at: datetime | None = None


class Bucket(msgspec.Struct):
    """Tokens that come back with time."""

    tokens: float
    at_s: float


class _Similar(msgspec.Struct):
    """The different messages heard lately with one reason."""

    at_s: float
    messages: set[str]


class Remembered(OrderedDict[str | tuple[object, ...], T], Generic[T]):
    """A dictionary that forgets what was not looked at for longest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def recall(self, key: str | tuple[object, ...], otherwise: T) -> T:
        value = self.setdefault(key, otherwise)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)
        return value


class Folding:
    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._series: Remembered[Series] = Remembered(remembered)
        self._similar: Remembered[_Similar] = Remembered(remembered)
        self._buckets: Remembered[Bucket] = Remembered(remembered)
        self._all = Bucket(GLOBAL_BURST, 0.0)

    def fold(self, subject: Subject, message: str, now_s: float) -> Series | None:
        """The series to write after this message, counted up, or None when a limit says that nothing is written."""
        combined = self._is_one_of_many(subject, message, now_s)
        key = (subject, combined, "" if combined else message)
        series = self._series.recall(key, Series(message))
        series.count += 1
        series.message = f"{COMBINED}{message}" if combined else message
        return series if self._may_write(subject, now_s) else None

    def _is_one_of_many(self, subject: Subject, message: str, now_s: float) -> bool:
        similar = self._similar.recall(subject, _Similar(now_s, set()))
        if now_s - similar.at_s > SIMILAR_WITHIN_S:
            similar.messages.clear()
        similar.at_s = now_s
        if message in similar.messages:
            return False
        if len(similar.messages) >= SIMILAR_ALLOWED:
            return True
        similar.messages.add(message)
        return False

    def _may_write(self, subject: Subject, now_s: float) -> bool:
        of_object = self._buckets.recall(subject[:4], Bucket(OBJECT_BURST, now_s))
        refill(of_object, OBJECT_BURST, OBJECT_REFILL_S, now_s)
        refill(self._all, GLOBAL_BURST, GLOBAL_REFILL_S, now_s)
        if of_object.tokens < 1 or self._all.tokens < 1:
            return False
        of_object.tokens -= 1
        self._all.tokens -= 1
        return True


def refill(bucket: Bucket, burst: int, refill_s: float, now_s: float) -> None:
    """What came back since the last look, never more than the burst."""
    bucket.tokens = min(burst, bucket.tokens + max(0.0, now_s - bucket.at_s) / refill_s)
    bucket.at_s = now_s


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
        self._notes: deque[Note] = deque()  # the first one may be on its way
        self._folded: Series | None = None  # what it became: one that was cut off must not be counted again
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_worked = False

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

    @property
    def waiting_count(self) -> int:
        """In a standby nothing waits."""
        return len(self._notes) if self._is_worked else 0

    async def run(self) -> None:
        """Write until cancelled."""
        self._is_worked = True
        try:
            while True:
                while self._notes:  # also those that were left when it was stopped before
                    await self._record(self._notes[0])
                    self._notes.popleft()
                    self._folded = None
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
        finally:
            self._is_worked = False

    async def flushed(self) -> None:
        """Wait until everything said so far is written or dropped."""
        await self._idle.wait()

    async def _record(self, note: Note) -> None:
        about = note.about
        subject = Subject(about.uid, about.kind, about.namespace, about.name, note.type, note.reason)
        self._folded = series = self._folded or self._folding.fold(subject, note.message, note.at_s)
        if series is None:
            self._count("limited")
            return
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await uncancelled(self._write(note, series))  # or one that ends as cancelled would be the first for ever
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
        may_exist = bool(series.name)
        series.name = series.name or event_name(note.about.name, self._clock.random.getrandbits(64))
        key = Key(note.about.namespace or NAMESPACE_OF_CLUSTER_SCOPED, series.name)
        if may_exist:
            change = {
                "count": series.count,
                "lastTimestamp": note.at.replace(microsecond=0),
                "message": shortened(series.message),
            }
            with suppress(NotFound):  # it never arrived, or is older than the hour for which the API keeps it
                await self._client.patch(Event, key, Merge(change))
                return
        with suppress(AlreadyExists):  # it arrived late
            await self._client.create(self._new_event(note, series, key))

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
