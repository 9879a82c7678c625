"""Read your writes: a decision is never made on a cache that lacks what the same controller wrote before.

While a reconcile runs, every write of any client is noted here (`applecart.kube.client` finds the record by a context variable,
so no write can forget it). Before the next one begins, the informers that the controller reads must show those writes. How
that is known: an answer that holds an object has its revision, and the informer must reach it; what has none (a deletion, a
binding) and what no event will ever tell (a write outside an informer's selector) is looked up at the API, by name and in the
informer's own scope, and the cache must then say the same. A write whose answer was lost is first sent again until the API
says yes or no: its name or its precondition makes the second one harmless, and a late arrival of the first as well.

Never guesses, never expires: when the informers do not catch up in time the key fails with `Behind` and is tried again later.
docs/designs/0004-runtime.md argues why.
"""

import asyncio
from collections.abc import Hashable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import msgspec

from applecart.api.meta import Key, Object
from applecart.errors import ApplecartError, Transient
from applecart.kube.client import RECORDER, Client, surely_did_nothing
from applecart.kube.informer import Informer, NotInTime
from applecart.kube.transport import Request, Response

WITHIN_S = 10.0  # a watch that works is milliseconds behind; one that does not is the informer's to repair
PATIENCE_S = 1.0  # before the API is asked why an event does not come: usually because it never will
LOOK_UPS = 8  # single ones; above that one list of the whole scope costs less
WHOLE = Key("", "")  # every object of an informer's scope


class Behind(Transient):
    """The informers do not show yet what this controller wrote: nothing is decided on them."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def is_gone(self) -> bool:
        """Or waits for the end of its grace period, which looks the same."""
        return self.deletion_timestamp is not None and not self.finalizers


class _Preconditions(msgspec.Struct, frozen=True):
    uid: str = ""


class _Body(msgspec.Struct, frozen=True):
    """Of a request or an answer only what places it."""

    metadata: _Metadata = _Metadata()
    preconditions: _Preconditions = _Preconditions()


class _Follower:
    """An informer, and what it must show."""

    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.positions: dict[Key, int] = {}  # by object, the place of our last write to it
        self.unsure: set[Key] = set()  # written, at a place that nobody told

    def note(self, key: Key, revision: str) -> None:
        if self.informer.namespace not in ("", key.namespace):
            return
        if revision.isdigit():
            self.positions[key] = max(int(revision), self.positions.get(key, 0))
        else:
            self.unsure.add(key if key.name else WHOLE)

    async def catch_up(self) -> None:
        unsure, self.unsure = self.unsure, set()  # what is written while we wait is for the next one
        try:
            await self._see(dict(self.positions), unsure)
        except BaseException:
            self.unsure |= unsure
            raise

    async def _see(self, positions: Mapping[Key, int], unsure: Set[Key]) -> None:
        goal = max(positions.values(), default=0)
        informer = self.informer
        if informer.position < goal:
            try:
                await informer.wait_until(lambda: informer.position >= goal, PATIENCE_S)
            except NotInTime:
                unsure = unsure | {key for key, position in positions.items() if position > informer.position}
        for key in (WHOLE,) if len(unsure) > LOOK_UPS or WHOLE in unsure else sorted(unsure):
            await self._until_equal(key)
        self.positions = {key: position for key, position in self.positions.items() if positions.get(key) != position}

    async def _until_equal(self, key: Key) -> None:
        """Wait until the cache shows what the API holds now of this object, or of all in the informer's scope."""
        informer = self.informer
        if key == WHOLE:
            found = {obj.key: obj for obj in await informer.look()}
            stale = {known: informer.get(known) for known in list(informer.keys()) if known not in found}
        else:
            found = {obj.key: obj for obj in await informer.look(key)}
            stale = {} if found else {key: informer.get(key)}
        await informer.wait_until(lambda: _shows(informer, found, stale), WITHIN_S)


class OwnWrites:
    """Of one controller, for all of its keys."""

    def __init__(self) -> None:
        self._followers: list[_Follower] = []
        self._lost: dict[Hashable, list[tuple[Client, Request]]] = {}  # by the key that was worked on
        self._turn = asyncio.Lock()

    def read_from(self, informer: Informer[Any]) -> None:
        """The controller decides on this informer."""
        if all(follower.informer is not informer for follower in self._followers):
            self._followers.append(_Follower(informer))

    @contextmanager
    def noted(self, key: Hashable = None) -> Iterator[None]:
        """What is written in the block is a write of ours, made for this key."""
        token = RECORDER.set(_Recorder(self, key))
        try:
            yield
        finally:
            RECORDER.reset(token)

    def is_in_doubt(self, key: Hashable) -> bool:
        """Whether an answer about this key was lost, and nobody knows yet what became of the write."""
        return bool(self._lost.get(key))

    def forget(self, key: Hashable) -> None:
        """What became of it does not matter any more."""
        self._lost.pop(key, None)

    def begin_term(self) -> None:
        """Another process may have decided until now: what it wrote must be seen as well."""
        self._lost.clear()
        for follower in self._followers:
            follower.unsure.add(WHOLE)

    async def seen(self, key: Hashable = None) -> None:
        """Wait until the informers show our writes. Raises `Behind`, or why the API could not be asked."""
        try:
            async with asyncio.timeout(WITHIN_S), self._turn:
                while lost := self._lost.get(key):
                    await self._send_again(*lost[0])
                    del lost[0]
                self._lost.pop(key, None)
                for follower in self._followers:
                    await follower.catch_up()
        except (TimeoutError, NotInTime):
            raise Behind(f"what was written before is not seen after {WITHIN_S:g} s; nothing is decided until it is") from None

    async def _send_again(self, client: Client, request: Request) -> None:
        if _is_harmless_twice(request):
            try:
                await client.call(request, repeatable=False)
            except ApplecartError as error:
                if not surely_did_nothing(error):
                    raise Behind(f"{request}: whether this was done is not known yet ({error})") from error
        self.wrote(request, None)

    def wrote(self, request: Request, response: Response | None) -> None:
        """Carried out; `response` is None when its answer is not known."""
        label, key = target_of(request.path)
        followers = [follower for follower in self._followers if follower.informer.kind.resource.label == label]
        if not followers:
            return
        told = _body(response.body) if response is not None else _Body()
        # What a DELETE answers, or the patch that took the last finalizer off, may be the object as it was before it went.
        revision = "" if request.method == "DELETE" or told.metadata.is_gone else told.metadata.resource_version
        if not key.name:
            key = Key(key.namespace, told.metadata.name or _name_created(request))
        for follower in followers:
            follower.note(key, revision)

    def lost(self, key: Hashable, client: Client, request: Request) -> None:
        self._lost.setdefault(key, []).append((client, request))


class _Recorder:
    """What the client sees of it during one reconcile."""

    def __init__(self, writes: OwnWrites, key: Hashable) -> None:
        self._writes = writes
        self._key = key

    def wrote(self, request: Request, response: Response) -> None:
        self._writes.wrote(request, response)

    def lost(self, client: Client, request: Request) -> None:
        self._writes.lost(self._key, client, request)


def _body(body: bytes | None) -> _Body:
    try:
        return msgspec.json.decode(body, type=_Body) if body else _Body()
    except msgspec.MsgspecError:
        return _Body()  # a JSON patch, or an answer that is none: the look at the API decides


def target_of(path: str) -> tuple[str, Key]:
    """Which resource a request is about, by label, and which object of it; the name is empty for a collection."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    return f"{rest[0]}.{group}" if group else rest[0], Key(unquote(namespace), unquote(name))


def _name_created(request: Request) -> str:
    """The name that a creation asks for; empty when the server chooses it, and for every other request."""
    is_creation = request.method == "POST" and not target_of(request.path)[1].name
    return _body(request.body).metadata.name if is_creation else ""


def _is_harmless_twice(request: Request) -> bool:
    """A second creation of a name, binding or deletion of a uid is refused. Whoever patches decides again instead."""
    body = _body(request.body)
    if request.method == "POST":
        return bool(_name_created(request) or body.metadata.uid)
    return request.method == "DELETE" and bool(body.preconditions.uid)


def _shows(informer: Informer[Any], found: Mapping[Key, Object], stale: Mapping[Key, Object | None]) -> bool:
    """Whether the cache knows all that was found, or newer, and what was not found is gone or another object."""
    is_gone = all(old is None or (now := informer.get(key)) is None or now.uid != old.uid for key, old in stale.items())
    return is_gone and all(_is_shown(informer, obj) for obj in found.values())


def _is_shown(informer: Informer[Any], obj: Object) -> bool:
    if obj.revision.isdigit() and informer.position >= int(obj.revision):
        return True
    known = informer.get(obj.key)
    return known is not None and known.uid == obj.uid and known.revision == obj.revision
