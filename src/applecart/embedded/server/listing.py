"""GET of a collection: which objects match, which revision it is read at, and in which pieces it is answered.

All pages of a list come from one revision: the token carries it, and the past is read from the ring of recent changes or from
the log. A list is taken from the store at once and encoded in slices, so that a large one never holds up the event loop.
`Selection` is shared by lists, watches and deletecollection.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from applecart.api.meta import Key
from applecart.embedded.field_errors import FieldError, forbidden, not_supported
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import Refusal, bad_request
from applecart.embedded.selectors import FieldSelector, everything, label_selector, parse_field_selector, refuse_unknown_fields
from applecart.embedded.server import syntax
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import integer, invalid_options, is_true, revision
from applecart.embedded.store.log import Compacted
from applecart.embedded.store.record import Change, Record
from applecart.embedded.store.table import NODE_FIELD, Scope

NAME, NAMESPACE = "metadata.name", "metadata.namespace"
SLICE = 500  # objects encoded before others get a turn: about 2 ms
SELECTED_AT_ONCE = 1000  # objects held against a selector, likewise; its most terms take 10 µs
SLICE_BYTES = 1 << 20  # likewise; large objects reach it first
Make = Callable[[Sequence[Record], Callable[[], bytes]], Awaitable[bytes]]
Sliced = TypeVar("Sliced", Record, Change)
NOT_OLDER, EXACT = "NotOlderThan", "Exact"
_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
    "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
    "time the first chunk was returned and now may show up in the list."
)


class _Token(msgspec.Struct, omit_defaults=True):
    """Where a list goes on. `revision` is -1 when its first pages are too old to be consistent with."""

    v: str
    rv: int
    start: str


@dataclass(frozen=True, slots=True)
class ListOptions:
    revision: int | None = None  # None: the newest
    is_exact: bool = False
    limit: int = 0
    after: Key | None = None
    is_continued: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    revision: int
    records: Sequence[Record]
    token: str = ""
    remaining: int | None = None

    def metadata(self, *, is_custom: bool = False) -> dict[str, object]:
        found: dict[str, object] = {"resourceVersion": str(self.revision)}
        if self.token or is_custom:  # lists of custom objects say that they are complete
            found["continue"] = self.token
        if self.token and self.remaining:
            found["remainingItemCount"] = self.remaining
        return found


class Selection:
    """The selectors of one request, and the namespace of its path."""

    def __init__(self, kind: Kind, namespace: str | None, query: Mapping[str, str]) -> None:
        self._labels = label_selector(query.get("labelSelector", ""))
        fields = parse_field_selector(query.get("fieldSelector", ""))
        known = {NAME, *([NAMESPACE] if kind.resource.namespaced or not kind.is_custom else []), *kind.strategy.field_names}
        refuse_unknown_fields(fields, lambda name: unsupported(kind, name), known)
        wanted_namespace = fields.wanted(NAMESPACE)
        self.namespace = namespace if namespace is not None else wanted_namespace
        self.name = fields.wanted(NAME)
        self.node = fields.wanted(NODE_FIELD)
        self._fields = fields
        self._asks_metadata = any(name in (NAME, NAMESPACE) for name, _, _ in fields.terms)
        self.takes_all = self._labels is everything and not fields.terms

    @property
    def scope(self) -> Scope:
        """What an index of watchers can tell of it."""
        return Scope(self.namespace, self.name, self.node)

    def matches(self, record: Record) -> bool:
        traits = record.traits
        if not self._labels(traits.labels):
            return False
        fields: FieldSelector = self._fields
        if not fields.terms:
            return True
        if self._asks_metadata:
            return fields({**traits.fields, NAME: record.key.name, NAMESPACE: record.key.namespace})
        return fields(traits.fields)


def read_options(query: Mapping[str, str]) -> ListOptions:
    """What a list was asked for. Raises Refusal."""
    limit = max(integer(query, "limit") or 0, 0)
    integer(query, "timeoutSeconds")
    text, match, token = query.get("resourceVersion", ""), query.get("resourceVersionMatch", ""), query.get("continue", "")
    if errors := _problems(query, text, match, token):
        raise invalid_options("ListOptions", errors)
    if token:
        decoded = _read_token(token)
        if text and text != "0":
            raise bad_request("specifying resource version is not allowed when using continue")
        at = decoded.rv if decoded.rv > 0 else None
        namespace, _, name = decoded.start.rpartition("/")
        return ListOptions(at, at is not None, limit, Key(namespace, name), is_continued=True)
    try:
        at = revision(text) if text else None
    except ValueError as error:
        raise bad_request(f'invalid resource version: resourceVersion: Invalid value: "{text}": {error}') from None
    if at == 0:
        return ListOptions(limit=0)  # any revision will do, and the real server's cache then ignores the limit
    is_exact = match == EXACT or (bool(limit) and at is not None and not match)
    return ListOptions(at, is_exact, limit)


async def page(core: Core, kind: Kind, namespace: str | None, options: ListOptions, selection: Selection) -> Page:
    """The objects of one page, with where to go on."""
    store = core.store
    label = kind.storage.label
    now = store.revision
    if options.revision is not None and options.revision > now:
        raise too_large(options.revision, now)
    if options.is_exact and options.revision is not None:
        at = options.revision
        try:
            records = await store.records_at(label, at, namespace, options.after)
        except Compacted:
            if not options.is_continued or options.after is None:
                raise Refusal(410, "Expired", "The resourceVersion for the provided list is too old.") from None
            raise Refusal(410, "Expired", _EXPIRED, metadata={"continue": _token(-1, options.after)}) from None
    else:
        at = now
        records = store.table(label).records(namespace, options.after)
    return await _cut(records, at, options, selection)


async def _cut(records: Sequence[Record], at: int, options: ListOptions, selection: Selection) -> Page:
    if selection.takes_all and not options.limit:
        return Page(at, records)
    if selection.takes_all:
        chosen = records[: options.limit]
        left = len(records) - len(chosen)
        return Page(at, chosen, _token(at, chosen[-1].key) if left else "", left)
    found: list[Record] = []
    for position, record in enumerate(records, 1):
        if selection.matches(record):
            if options.limit and len(found) == options.limit:
                # As the real server does: how many remain is not known when a selector decides.
                return Page(at, found, _token(at, found[-1].key))
            found.append(record)
        if not position % SELECTED_AT_ONCE:
            await asyncio.sleep(0)
    return Page(at, found)


async def in_slices(
    records: Sequence[Record], encode: Callable[[Record], bytes], before: bytes, after: bytes, size: int, make: Make
) -> AsyncIterator[bytes]:
    """A list's bytes, with a turn for everybody else between two slices."""
    yield before
    separator = b""
    for part in sliced(records, size):
        yield separator + await make(part, lambda part=part: b",".join(map(encode, part)))  # type: ignore[misc]
        separator = b","
        await asyncio.sleep(0)
    yield after


def sliced(parts: Sequence[Sliced], most: int, most_bytes: int | None = None) -> Iterator[Sequence[Sliced]]:
    """At most so many at a time, and so many bytes, but always one."""
    most_bytes = most_bytes or SLICE_BYTES
    first, size_bytes = 0, 0
    for position, part in enumerate(parts):
        more_bytes = part.size_bytes
        if position > first and (position - first == most or size_bytes + more_bytes > most_bytes):
            yield parts[first:position]
            first, size_bytes = position, 0
        size_bytes += more_bytes
    if parts:
        yield parts[first:]


def too_large(asked: int, current: int) -> Refusal:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    return Refusal(504, "Timeout", text, {"causes": [cause], "retryAfterSeconds": 1}, headers={"Retry-After": "1"})


def _problems(query: Mapping[str, str], text: str, match: str, token: str) -> list[FieldError]:
    field = "resourceVersionMatch"
    if "sendInitialEvents" in query and not is_true(query.get("watch")):
        return [forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")]
    if not match:
        return []
    if token:
        return [forbidden(field, "resourceVersionMatch is forbidden when continue is provided")]
    if not text:
        return [forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided")]
    if match not in (EXACT, NOT_OLDER):
        return [not_supported(field, match, (EXACT, NOT_OLDER, ""))]
    if match == EXACT and text == "0":
        return [forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')]
    return []


def _token(at: int, key: Key) -> str:
    raw = msgspec.json.encode(_Token("meta.k8s.io/v1", at, f"{key.namespace}/{key.name}"))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(text: str) -> _Token:
    try:
        raw = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        syntax.parse_json(raw)
        token = msgspec.json.decode(raw, type=_Token)
    except (ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if token.v != "meta.k8s.io/v1" or token.rv == 0 or "/" not in token.start:
        raise bad_request("invalid continue token: continue key is not valid: incorrect encoded start key")
    return token


def unsupported(kind: Kind, name: str) -> Refusal:
    if kind.is_custom or kind.strategy.field_names:
        return bad_request(f"field label not supported: {name}")
    return bad_request(f'"{name}" is not a known field selector: only "{NAME}", "{NAMESPACE}"')
