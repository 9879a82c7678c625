"""WATCH: everything after a revision, in the order in which it was committed, until somebody stops.

Starting, the state and the place in the stream of changes are taken in one step, so nothing falls between them. A selector
turns changes into what its reader sees: entering is ADDED, leaving is DELETED with the state before. Each form of an event is
encoded once for all watchers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from applecart.embedded.field_errors import FieldError, forbidden, not_supported
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import Refusal, expired
from applecart.embedded.server.core import Core
from applecart.embedded.server.listing import NOT_OLDER, Make, Selection, sliced
from applecart.embedded.server.objects import encode
from applecart.embedded.server.request import integer, invalid_options, is_true, revision
from applecart.embedded.store.log import Compacted
from applecart.embedded.store.record import Change, Op, Record
from applecart.embedded.store.table import Watcher

SHORTEST_S, LONGEST_S = 1800.0, 3600.0  # of a watch that names no timeout: spread, so that not all come back at once
BOOKMARK_EVERY_S = 60.0
BOOKMARK_BEFORE_END_S = 2.0
INITIAL_SLICE = 500  # objects sent before others get a turn
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

ADDED, MODIFIED, DELETED = b"ADDED", b"MODIFIED", b"DELETED"
_Event = tuple[bytes, Record, Change]  # its kind, the state it shows, what it tells of
_Frame = tuple[Change, tuple[str, bytes], bytes]  # a line that others may send as well: of what, in which form


@dataclass(frozen=True, slots=True)
class WatchOptions:
    revision: int | None  # None: begin with the state of now
    sends_initial_events: bool
    wants_bookmarks: bool
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are shown: plain, as metadata only, as rows of a table."""

    name: str  # equal for equal forms, so that encoded events are shared
    encode: Callable[[Record], bytes]
    bookmark: Callable[[int, dict[str, str]], dict[str, object]]
    make: Make
    first_encode: Callable[[Record], bytes] | None = None  # of a stream's first event, where it differs (a Table's headers)


def read_options(query: Mapping[str, str]) -> WatchOptions:
    match, text = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    sends = is_true(query.get("sendInitialEvents")) if "sendInitialEvents" in query else None
    if errors := _problems(query, match, sends):
        raise invalid_options("ListOptions", errors)
    timeout_s = integer(query, "timeoutSeconds")
    integer(query, "limit")
    try:
        at = revision(text) if text else None
    except ValueError as error:
        # The real server answers 500 here; a bad request is what it is.
        raise Refusal(400, "BadRequest", f'resourceVersion: Invalid value: "{text}": {error}') from None
    begins_now, wants = bool(sends), is_true(query.get("allowWatchBookmarks"))
    return WatchOptions(None if begins_now else at or None, begins_now and wants, wants, timeout_s)


async def stream(core: Core, kind: Kind, selection: Selection, options: WatchOptions, form: Form) -> AsyncIterator[bytes]:
    """The lines of a watch."""
    table = core.store.table(kind.storage.label)
    # No wait between these: whatever is committed later is offered to the watcher.
    watcher = table.watch(selection.scope)
    at = core.store.revision
    try:
        if options.revision is None:
            changes: list[Change] = []
            records = table.records(selection.namespace)
        else:
            records = []
            try:
                changes = table.since(options.revision)
            except Compacted:
                refusal = expired(f"too old resource version: {options.revision} ({table.floor})")
                yield event_line(b"ERROR", encode(refusal.document()))
                return
        shows = _Shows(form, selection, after=options.revision or 0)
        for part in sliced(records, INITIAL_SLICE):
            yield await shows.records([one for one in part if selection.matches(one)])
            await asyncio.sleep(0)
        if options.sends_initial_events:
            yield event_line(b"BOOKMARK", encode(form.bookmark(at, {INITIAL_EVENTS_END: "true"})))
        following = _follow(core, watcher, changes, shows, options, form)
        records, changes, part = [], [], []  # a watch lasts, and what it began with may be long no more
        async for lines in following:
            yield lines
            del lines
    finally:
        watcher.stop_alarm()
        table.unwatch(watcher)


async def _follow(
    core: Core, watcher: Watcher, changes: Sequence[Change], shows: "_Shows", options: WatchOptions, form: Form
) -> AsyncIterator[bytes]:
    """The lines of these changes, and of those that the watcher hears of."""
    clock = core.clock
    lasts_s = options.timeout_s if options.timeout_s else clock.random.uniform(SHORTEST_S, LONGEST_S)
    end = clock.monotonic() + lasts_s
    bookmark_at = _next_bookmark(clock.monotonic(), end)
    while True:
        for number, some in enumerate(sliced(changes, INITIAL_SLICE)):
            if number:
                await asyncio.sleep(0)
            yield await shows.changes(some)
        changes = some = ()
        if watcher.is_closed:
            return
        until = min(end, bookmark_at) if options.wants_bookmarks else end
        if await watcher.wait(until):
            changes = watcher.take()
        elif clock.monotonic() >= end:
            return
        elif options.wants_bookmarks:
            yield event_line(b"BOOKMARK", encode(form.bookmark(core.store.revision, {})))
            bookmark_at = _next_bookmark(clock.monotonic(), end)


def _next_bookmark(now: float, end: float) -> float:
    """Once a minute, and shortly before the end, so that the reader resumes from there."""
    before_end = end - BOOKMARK_BEFORE_END_S
    at = now + BOOKMARK_EVERY_S
    return before_end if now < before_end < at else at


class _Shows:
    """What one reader sees of the changes."""

    def __init__(self, form: Form, selection: Selection, after: int) -> None:
        self._after = after  # a reader may be ahead of a store that was restored; what it has seen is not told again
        self._form = form
        self._matches = selection.matches
        self._namespace = selection.namespace
        self._takes_all = selection.takes_all
        self._is_first = form.first_encode is not None

    async def changes(self, changes: Sequence[Change]) -> bytes:
        events = [event for change in changes if (event := self._event(change)) is not None]
        if not events:
            return b""
        made: list[_Frame] = []
        lines = await self._made(
            [record for _, record, _ in events], lambda: b"".join([self._line(*event, made) for event in events])
        )
        for change, form, line in made:
            change.share(form, line)
        return lines

    async def records(self, records: Sequence[Record]) -> bytes:
        return await self._made(records, lambda: b"".join(event_line(ADDED, self._encoded(record)) for record in records))

    async def _made(self, records: Sequence[Record], encode: Callable[[], bytes]) -> bytes:
        is_first = self._is_first

        def encoded() -> bytes:
            self._is_first = is_first  # it may be begun on the loop and done beside it
            return encode()

        return await self._form.make(records, encoded)

    def _event(self, change: Change) -> _Event | None:
        """What the reader hears of a change, and of which state."""
        record, previous = change.record, change.previous
        if change.revision <= self._after:
            return None
        if self._namespace is not None and record.key.namespace != self._namespace:
            return None
        was = previous is not None and (self._takes_all or self._matches(previous))
        if change.op is Op.DELETED:
            return (DELETED, record, change) if was else None
        if self._takes_all or self._matches(record):
            return (MODIFIED if was else ADDED, record, change)
        return (DELETED, previous, change) if was and previous is not None else None

    def _line(self, kind_of_event: bytes, record: Record, change: Change, made: list[_Frame]) -> bytes:
        form = (self._form.name, kind_of_event)
        if not self._is_first and (line := change.frames.get(form)) is not None:
            return line
        shown = record if record is change.record else record.said_at(change.revision)
        if self._is_first:
            return event_line(kind_of_event, self._encoded(shown))
        line = event_line(kind_of_event, self._form.encode(shown))
        made.append((change, form, line))
        return line

    def _encoded(self, record: Record) -> bytes:
        if self._is_first and self._form.first_encode:
            self._is_first = False
            return self._form.first_encode(record)
        return self._form.encode(record)


def event_line(kind_of_event: bytes, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind_of_event, body)


def _problems(query: Mapping[str, str], match: str, sends: bool | None) -> list[FieldError]:
    field = "resourceVersionMatch"
    if query.get("continue"):
        return [forbidden(field, "resourceVersionMatch is forbidden when continue is provided")]
    problems: list[FieldError] = []
    if sends is None and match:
        problems.append(forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    elif sends is not None and match != NOT_OLDER:
        problems.append(forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match not in ("", NOT_OLDER):
        problems.append(not_supported(field, match, (NOT_OLDER,)))
    return problems
