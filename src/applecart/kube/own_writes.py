"""Read your writes: a decision is never made on a cache that lacks what the same controller wrote before.

While a reconcile runs, every write of any client is noted here (`applecart.kube.client` finds the record by a context variable,
so no write can forget it). Before the next one begins, the informers that the controller reads must show those writes. How
that is known: an answer that holds an object has its revision, and the informer must reach it; what has none (a deletion, a
binding) and what no event may tell (a write at the edge of an informer's selector) is looked up at the API, by name and in the
informer's own scope, and the cache must then say the same. A lost write whose name or uid makes a second one harmless is sent
again, for a minute, until the API says yes or no of its object: that makes a late arrival harmless as well.

A write belongs to the reconcile that began it: one that is still on its way is waited for, and one that begins after its
reconcile has ended is refused. What came and went behind a watch that was away wakes its key again. When the informers do not
catch up in time the key fails with `Behind` and is tried again later. docs/designs/0004-runtime.md argues why.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from applecart.api.meta import Key
from applecart.errors import ApplecartError, NeverSent, Permanent, Transient
from applecart.kube.client import RECORDER, Client
from applecart.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from applecart.kube.informer import Informer, NotInTime
from applecart.kube.label_selector import selects
from applecart.kube.transport import NotLeading, Request, Response
from applecart.kube.watch import position_of

WITHIN_S = 10.0  # a watch that works is milliseconds behind; one that does not is the informer's to repair
PATIENCE_S = 1.0  # before the API is asked why an event does not come: usually because it never will
LOOK_UPS = 8  # single ones; above that one list of the whole scope costs less
LOOK_UPS_AGAIN = 100  # of what went while the whole scope was listed: in a busy one each list would be out of date as well
WHOLE = Key("", "")  # every object of an informer's scope
# A server gives a request up after a minute. One that is older came or never will, and is not what is wanted any more.
SENT_AGAIN_S = 60.0


class Behind(Transient):
    """The informers do not show yet what this controller wrote: nothing is decided on them."""


class TooLate(Permanent):
    """A write that began after its reconcile had ended: the next one may have decided already."""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    finalizers: tuple[str, ...] | None = None

    @property
    def is_gone(self) -> bool:
        """Or waits for the end of its grace period, which looks the same."""
        return self.deletion_timestamp is not None and not self.finalizers


class _Preconditions(msgspec.Struct, frozen=True):
    uid: str = ""


class _Body(msgspec.Struct, frozen=True):
    """Of a request or an answer only what places it."""

    kind: str = ""
    metadata: _Metadata = _Metadata()
    preconditions: _Preconditions = _Preconditions()


class _Written(NamedTuple):
    """What we wrote to one object."""

    position: int  # of the last write
    told_at: int  # of the last one that is sure to be told by an event; 0 if none is
    by: Hashable  # whose reconcile wrote last


class _Answer(NamedTuple):
    """What the API said of one object, or of all in an informer's scope."""

    position: int  # at which it is true; 0 for a server whose revisions are no numbers
    found: Mapping[Key, str]  # their revisions


class _Follower:
    """An informer, and what it must show."""

    def __init__(self, informer: Informer[Any], wake: Callable[[Hashable], None]) -> None:
        self.informer = informer
        self._wake = wake
        self._written: dict[Key, _Written] = {}
        self._unsure: dict[Key, int] = {}  # written at a place that nobody told; numbered, so that a newer one is not lost
        self._numbers = count(1)
        self._answers: dict[Key, _Answer] = {}  # whose place the informer has not reached: older events may still come
        self._shown_at: str | None = None  # the informer's revision at which all of them were shown
        self._list_count = 0
        informer.on_list(self._listed)

    def note(self, key: Key, told: _Body, revision: str, by: Hashable) -> None:
        informer = self.informer
        if informer.namespace not in ("", key.namespace):
            return
        if not revision.isdigit():
            self.doubt(key if key.name else WHOLE)
            return
        before = self._written.get(key, _Written(0, 0, None))
        is_object = told.kind == informer.kind.resource.kind  # a scale has no labels
        is_selected = selects(informer.labels, told.metadata.labels or {})
        if is_object and not is_selected and not before.position and informer.get(key) is None:
            return  # out of sight before and after
        position = max(int(revision), before.position)
        is_told = is_object and is_selected and not informer.fields
        self._written[key] = _Written(position, max(int(revision), before.told_at) if is_told else before.told_at, by)

    def doubt(self, key: Key) -> None:
        self._unsure[key] = next(self._numbers)

    async def catch_up(self) -> None:
        """What is written while we wait is for the next one; what was seen when we fail need not be looked for again."""
        informer, written = self.informer, dict(self._written)
        told_at = max((one.told_at for one in written.values()), default=0)
        if informer.position < told_at:
            await informer.wait_until(lambda: informer.position >= told_at, WITHIN_S)
        last = max((one.position for one in written.values()), default=0)
        if informer.position < last:
            with suppress(NotInTime):
                await informer.wait_until(lambda: informer.position >= last, PATIENCE_S)
        for key, one in written.items():
            if informer.position < one.position or max(self._position_of(key), 0) < one.told_at:
                self.doubt(key)
        await self.settle(before=next(self._numbers))
        self._answers = {key: one for key, one in self._answers.items() if informer.position < one.position}
        self._written = {key: one for key, one in self._written.items() if written.get(key) != one}

    def is_settled(self, before: int = 1) -> bool:
        """Nothing that came into doubt before is in doubt, and what the API said is shown."""
        return all(number >= before for number in self._unsure.values()) and self._shows_answers()

    async def settle(self, before: int = 1) -> None:
        """Look up what is in doubt, and wait for the answers to be shown; again, when a list put one of them in doubt."""
        while not self.is_settled(before):
            await self._look_up({key: number for key, number in self._unsure.items() if number < before})
            try:
                await self.informer.wait_until(lambda: self._shows_answers() or any(self._missing()), WITHIN_S)
                self._recall(self._missing())
            except NotInTime:
                position = self.informer.position
                if any(one.position <= position and not self._shows(key, one) for key, one in self._answers.items()):
                    self.informer.list_again()
                raise

    async def _look_up(self, doubts: Mapping[Key, int]) -> None:
        informer = self.informer
        is_many = sum(number > 0 for number in doubts.values()) > LOOK_UPS or len(doubts) > LOOK_UPS_AGAIN
        for key in (WHOLE,) if is_many or WHOLE in doubts else sorted(doubts):
            lists_before, place = self._list_count, informer.position
            known = {name: self._position_of(name) for name in (list(informer.keys()) if key == WHOLE else (key,))}
            objects, revision = await informer.look(None if key == WHOLE else key)
            answer = _Answer(position_of(revision), {obj.key: obj.revision for obj in objects})
            if self._list_count > lists_before and informer.position < answer.position:
                return  # the store may have been restored behind this answer
            if any(max(known.get(name, 0), 0) < position_of(one) <= place for name, one in answer.found.items()):
                informer.list_again()
                raise NotInTime(f"a watch of {informer.kind.resource.label} kept back what it had to tell")
            self._answers[key], self._shown_at = answer, None
            for settled in doubts if key == WHOLE else (key,):
                found = {settled: answer.found[settled]} if settled in answer.found else {}
                self._answers[settled] = answer if settled == key else _Answer(answer.position, found)
                if self._unsure.get(settled) == doubts[settled]:
                    del self._unsure[settled]
                if settled in self._written and self._written[settled].told_at <= place:
                    self._written[settled] = self._written[settled]._replace(told_at=0)

    def _listed(self) -> None:
        """What came and went before the list began is told by no event: whoever made it must look again.

        What the list has not reached may never be told: the store may have been restored, and its revisions gone back.
        """
        position = self.informer.position
        self._list_count += 1
        self._shown_at = None
        for key, one in self._written.items():
            if one.position <= position and self.informer.get(key) is None:
                self._wake(one.by)
            if one.told_at > position:
                self._written[key] = one._replace(told_at=0)
        self._recall(key for key, one in self._answers.items() if one.position > position)
        self._answers.clear()

    def _recall(self, keys: Iterable[Key]) -> None:
        """What the API said may not hold: no reconcile begins before it was asked again."""
        for key in tuple(keys):
            self._answers.pop(key, None)
            self._unsure[key] = 0  # before any other

    def _shows_answers(self) -> bool:
        """Looked at only when the informer has moved: an answer may be about ten thousand objects."""
        if self._shown_at != self.informer.revision and all(self._shows(*one) for one in self._answers.items()):
            self._shown_at = None if any(self._missing()) else self.informer.revision
        return self._shown_at == self.informer.revision

    def _shows(self, key: Key, answer: _Answer) -> bool:
        """Whether the cache knows all that was found, or newer, and nothing older that was not found."""
        informer = self.informer
        for name, revision in answer.found.items():
            known, position = informer.get(name), position_of(revision)
            is_past = (informer.position if key == WHOLE else self._position_of(name)) >= position > 0
            if not is_past and (known is None or known.revision != revision):
                return False
        names = informer.keys() if key == WHOLE else (key,)
        return all(name in answer.found or not 0 <= self._position_of(name) <= answer.position for name in names)

    def _missing(self) -> Iterator[Key]:
        """What the API has and the informer went past: somebody took it away since, or an event was lost. The API knows."""
        for key, one in self._answers.items():
            for name in one.found.keys() - self._answers.keys() if key == WHOLE else (key,):
                if max(self._position_of(name), 0) < position_of(one.found.get(name, "")) <= self.informer.position:
                    yield name

    def _position_of(self, key: Key) -> int:
        known = self.informer.get(key)
        return position_of(known.revision) if known is not None else -1


class OwnWrites:
    """Of one controller, for all of its keys."""

    def __init__(self) -> None:
        self.wake: Callable[[Any], None] = lambda key: None  # look at this key again
        self._followers: list[_Follower] = []
        self._under_way: defaultdict[Hashable, set[asyncio.Future[None]]] = defaultdict(set)  # by the key that was worked on
        self._lost: dict[Hashable, list[_Lost]] = {}  # by the key that was worked on
        self._turn = asyncio.Lock()

    def read_from(self, informer: Informer[Any]) -> None:
        """The controller decides on this informer."""
        if not self.reads(informer):
            self._followers.append(_Follower(informer, lambda key: self.wake(key)))

    def reads(self, informer: Informer[Any]) -> bool:
        return any(follower.informer is informer for follower in self._followers)

    @contextmanager
    def noted(self, key: Hashable = None) -> Iterator[None]:
        """What is written in the block is a write of ours, made for this key."""
        outer = RECORDER.get()
        if isinstance(outer, _Recorder) and not outer.is_over:
            raise RuntimeError(f"the writes of {key} are not noted within those of {outer.key}, which would not see them")
        recorder = _Recorder(self, key)
        token = RECORDER.set(recorder)
        try:
            yield
        finally:
            recorder.is_over = True
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
            follower.doubt(WHOLE)

    async def seen(self, key: Hashable = None) -> None:
        """Wait until the informers show our writes. Raises `Behind`, or why the API could not be asked."""
        try:
            if strays := self._under_way.get(key):
                async with asyncio.timeout(WITHIN_S):
                    await asyncio.wait(set(strays))
            while lost := self._lost.get(key):
                await self._settle(lost)
            self._lost.pop(key, None)
            async with asyncio.timeout(WITHIN_S):
                await self._turn.acquire()
            try:
                for follower in self._followers:
                    await follower.catch_up()
                # An older event may have reached one while another was waited for. No wait follows the last look.
                while late := next((one for one in self._followers if not one.is_settled()), None):
                    await late.settle()
            finally:
                self._turn.release()
        except (TimeoutError, NotInTime):
            raise Behind(f"what was written before is not seen after {WITHIN_S:g} s; nothing is decided until it is") from None

    async def _settle(self, lost: "list[_Lost]") -> None:
        """Learn what became of the first of them."""
        one = lost[0]
        async with one.turn:
            if one not in lost:
                return  # another who waits for this key has settled it
            if _is_harmless_twice(one.request):
                if not one.is_old(one.first_sent):
                    await self._send_again(one)
                elif not one.is_old(one.last_sent):
                    raise Behind(f"{one.request}: whether this was done is not known yet, it may still arrive")
            self.wrote(one.request, None, None)
            lost.remove(one)

    async def _send_again(self, lost: "_Lost") -> None:
        """Nothing of this is a write of the reconcile around it."""
        token = RECORDER.set(None)
        was_sent = True
        try:
            async with asyncio.timeout(WITHIN_S):
                await lost.client.call(lost.request, repeatable=False)
        except ApplecartError as error:
            was_sent = not isinstance(error, NeverSent | NotLeading)
            if not _tells_of_the_first(lost.request, error):
                raise Behind(f"{lost.request}: whether this was done is not known yet ({error})") from error
        finally:
            RECORDER.reset(token)
            if was_sent:
                lost.last_sent = lost.now()

    def wrote(self, request: Request, response: Response | None, by: Hashable) -> None:
        """Carried out; `response` is None when its answer is not known."""
        label, key = target_of(request.path)
        if label == "bindings":  # the older path of a Pod's binding
            label, key = "pods", Key(key.namespace, _body(request.body).metadata.name)
        followers = [follower for follower in self._followers if follower.informer.kind.resource.label == label]
        if not followers:
            return
        told = _body(response.body) if response is not None else _Body()
        # What a DELETE answers, or the patch that took the last finalizer off, may be the object as it was before it went.
        revision = "" if request.method == "DELETE" or told.metadata.is_gone else told.metadata.resource_version
        if not key.name:
            key = Key(key.namespace, told.metadata.name or _name_created(request))
        for follower in followers:
            follower.note(key, told, revision, by)

    def began(self, key: Hashable) -> "asyncio.Future[None]":
        """A write is on its way, until this is done."""
        under_way = self._under_way[key]
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        under_way.add(ended)

        def forget(_: object) -> None:
            under_way.discard(ended)
            if not under_way and self._under_way.get(key) is under_way:
                del self._under_way[key]

        ended.add_done_callback(forget)
        return ended

    def lost(self, key: Hashable, client: Client, request: Request) -> None:
        self._lost.setdefault(key, []).append(_Lost(client, request))


class _Lost:
    """A write whose answer nobody got."""

    def __init__(self, client: Client, request: Request) -> None:
        self.client = client
        self.request = request
        self.turn = asyncio.Lock()
        self.first_sent = self.last_sent = self.now()

    def now(self) -> tuple[float, datetime]:
        return self.client.clock.monotonic(), self.client.clock.now()

    def is_old(self, sent: tuple[float, datetime]) -> bool:
        """Judged by both clocks: the monotonic one stands still while a machine sleeps, the wall clock can be set back."""
        (sent_s, sent_at), (now_s, now) = sent, self.now()
        return now_s - sent_s >= SENT_AGAIN_S or now - sent_at >= timedelta(seconds=SENT_AGAIN_S)


class _Recorder:
    """What the client sees of it during one reconcile."""

    def __init__(self, writes: OwnWrites, key: Hashable) -> None:
        self.is_over = False
        self.key = key
        self._writes = writes

    @contextmanager
    def writing(self, request: Request) -> Iterator[None]:
        if self.is_over:
            raise TooLate(f"{request}: not sent, the reconcile of {self.key} that began it has ended; it must await its tasks")
        ended = self._writes.began(self.key)
        try:
            yield
        finally:
            ended.set_result(None)

    def wrote(self, request: Request, response: Response) -> None:
        self._writes.wrote(request, response, self.key)

    def lost(self, client: Client, request: Request) -> None:
        self._writes.lost(self.key, client, request)


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


def _tells_of_the_first(request: Request, refusal: ApplecartError) -> bool:
    """A refusal that is about the object: others (who asks, a quota, the server's trouble) hold for this sending only."""
    return isinstance(refusal, AlreadyExists | Invalid if _name_created(request) else NotFound | Conflict)
