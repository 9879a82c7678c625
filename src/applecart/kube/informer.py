"""A kind of object, kept in memory and up to date.

List once, watch from there, list again only when the server forgot the revision we are at, or when a periodic relist is due.
Whatever happens to the connection, the cache is never emptied and never guessed: it stays as last known (`trouble` says since
when and why) until the API answers again, and then it becomes equal to what the API holds. Deletions that happened unseen are
reported like any other.

Readers get frozen objects and must not wait for the network; handlers are plain functions and must not block. One that fails is
told again later, so it may hear of a change twice.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import pairwise
from typing import Generic, TypeVar

import msgspec

from applecart.api.meta import Key, Object
from applecart.errors import ApplecartError, DeadlineExceeded
from applecart.kube.backoff import Backoff, asked_s
from applecart.kube.cache import Cache, Change, IndexFunction, Replacement
from applecart.kube.client import PAGE_SIZE, Client
from applecart.kube.codec import Frame
from applecart.kube.errors import Expired
from applecart.kube.watch import IDLE_S, WATCH_S, position_of, watch
from applecart.observe.logs import logger

K = TypeVar("K", bound=Object)
Handler = Callable[[Change[K]], None]

TELL_AGAIN = Backoff(first_s=1.0, longest_s=300.0)  # a handler that failed
TELLS_EVERY_S = 300.0  # an API that was started together with us takes a minute; after five somebody must be told

log = logger(__name__)


class Tuning(msgspec.Struct, frozen=True):
    """How patient an informer is. The defaults suit production; tests and simulations shorten them."""

    page_size: int = PAGE_SIZE
    watch_s: int = WATCH_S
    idle_s: float = IDLE_S
    relist_s: float = 3600.0  # belt and braces: a missed event would be repaired within the hour
    pace: Backoff = Backoff(first_s=0.5, longest_s=30.0)


class NotInTime(DeadlineExceeded):
    """A cache does not say what was waited for."""


class Trouble(msgspec.Struct, frozen=True):
    """Why the cache may be behind."""

    since: float  # monotonic seconds
    because: str


class _Untold(msgspec.Struct, Generic[K]):
    """What a handler failed on: the object as the handler knows it."""

    old: K | None
    failures: int = 0


class Informer(Generic[K]):
    def __init__(
        self,
        client: Client,
        kind: type[K],
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        indexes: Mapping[str, IndexFunction[K]] | None = None,
        tuning: Tuning = Tuning(),  # noqa: B008 (frozen)
    ) -> None:
        self.kind = kind
        self.trouble: Trouble | None = None
        self.revision = ""
        self.namespace = namespace
        self.labels = labels
        self.fields = fields
        self._client = client
        self._tuning = tuning
        self._cache: Cache[K] = Cache()
        self._handlers: list[Handler[K]] = []
        self._index_functions: dict[str, object] = {}
        self._list_handlers: list[Callable[[], None]] = []
        self._untold: dict[tuple[Handler[K], Key], _Untold[K]] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._is_synced = False
        self._is_watching = False
        self._until_relist: asyncio.Timeout | None = None
        self._failing_since: float | None = None
        self._heard_count = 0  # how often a watch brought anything
        for name, function in (indexes or {}).items():
            self.add_index(name, function)

    # Reading

    def __len__(self) -> int:
        return len(self._cache)

    def __iter__(self) -> Iterator[K]:
        return iter(self._cache)

    def get(self, key: Key) -> K | None:
        return self._cache.get(key)

    def keys(self) -> Iterable[Key]:
        return self._cache.keys()

    def by_index(self, index: str, value: str) -> list[K]:
        return self._cache.by_index(index, value)

    def add_index(self, name: str, function: IndexFunction[K]) -> None:
        """Find objects by what the function says of them. One that it fails on is found by no value; all else goes on."""
        same = _comparable(function)
        if self._index_functions.setdefault(name, same) != same:
            raise ValueError(f"{self._what}: the index {name!r} finds by another function already; give this one another name")

        def values(obj: K) -> Iterable[str]:
            try:
                return tuple(dict.fromkeys(function(obj)))  # here, so that a value that cannot be hashed fails here
            except (Exception, asyncio.CancelledError):
                log.exception("an index function failed, the object is not found by it", index=name, object=obj)
                return ()

        self._cache.add_index(name, values)

    @property
    def scope(self) -> str:
        """What it follows of its kind, for people; empty when that is all."""
        parts = (("in", self.namespace), ("labels", self.labels), ("fields", self.fields))
        return " ".join(f"{name} {value}" for name, value in parts if value)

    def behind_s(self) -> float:
        """For how long the API could not be followed; 0 while it can."""
        return 0.0 if self._failing_since is None else self._client.clock.monotonic() - self._failing_since

    @property
    def is_synced(self) -> bool:
        """Whether a whole list has arrived at least once."""
        return self._is_synced

    @property
    def position(self) -> int:
        """The revision as a place in the order of changes; 0 for a server whose revisions are no numbers."""
        return position_of(self.revision)

    async def synced(self) -> None:
        """The barrier before which nobody may conclude that an object does not exist."""
        await self._stubbornly(lambda: self._is_synced)

    async def following(self) -> None:
        """Wait until a watch is open as well: changes from now on arrive as they happen."""
        await self._stubbornly(lambda: self._is_watching)

    async def _stubbornly(self, holds: Callable[[], bool]) -> None:
        """Nothing can be done before this is true: it is waited for through any outage, and said every few minutes."""
        while not holds():
            try:
                await self.wait_until(holds, TELLS_EVERY_S)
            except NotInTime as error:
                log.warning("still waiting for the API", kind=self._what, because=str(error))

    async def wait_until(self, holds: Callable[[], bool], within_s: float = TELLS_EVERY_S) -> None:
        """Wait for a sentence about the cache to become true. Raises `NotInTime`, which says what keeps it."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiters.append(waiter)
                    await waiter
        except TimeoutError:
            because = self.trouble.because if self.trouble is not None else "no event told so"
            raise NotInTime(f"{self._what}: what was waited for did not come within {within_s:g} s ({because})") from None

    async def look(self, key: Key | None = None) -> tuple[list[K], str]:
        """What the API itself holds now of what this informer follows, all or the object of that name, and its revision."""
        namespace, fields = self.namespace, self.fields
        if key is not None:
            namespace, fields = key.namespace, ",".join(filter(None, (fields, f"metadata.name={key.name}")))
        return await self._client.list_and_revision(self.kind, namespace, labels=self.labels, fields=fields)

    def on_change(self, handler: Handler[K]) -> None:
        """Call `handler` for every change from now on, beginning with what is already known."""
        self._handlers.append(handler)
        for obj in list(self._cache):
            self._tell(handler, Change(obj.key, None, obj))

    def off_change(self, handler: Handler[K]) -> bool:
        """Call this handler no more; whether others are left."""
        self._handlers.remove(handler)
        return bool(self._handlers)

    def on_list(self, handler: Callable[[], None]) -> None:
        """Call `handler` after every whole list: what came and went before it is told by no change."""
        self._list_handlers.append(handler)

    @property
    def untold_count(self) -> int:
        """Changes that a handler failed on and has not heard again."""
        return len(self._untold)

    # Following

    def list_again(self) -> None:
        """Somebody has proof that the watch kept an event back: do not wait for the next relist."""
        if self._until_relist is not None:
            log.warning("the watch did not tell everything, listing again", kind=self._what)
            self._until_relist.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """Follow the API until cancelled."""
        failures = 0
        was_deaf = False
        while True:
            heard_before, is_listed = self._heard_count, False
            try:
                await self._relist()
                is_listed = True
                if not was_deaf:
                    self._recovered()
                await self._follow()
                failures = 0
            except ApplecartError as error:
                failures = 1 if self._heard_count > heard_before else failures + 1
                await self._rest(failures, error)
            except Exception as error:
                # A bug of ours: the cache may be wrong, so it is built again from the truth.
                log.exception("informer failed, listing again", kind=self._what)
                failures += 1
                await self._rest(failures, error)
            # Whether watches are well again is told by a watch only: not by the next list, nor by one that failed in between.
            was_deaf = (is_listed or was_deaf) and self._heard_count == heard_before

    async def _relist(self) -> None:
        replacement = Replacement(self._cache)

        def begin() -> Callable[[Iterable[K]], None]:
            nonlocal replacement
            replacement = Replacement(self._cache)
            return replacement.offer

        self._is_watching = False
        revision = await self._client.read_list(
            self.kind,
            begin,
            self.namespace,
            labels=self.labels,
            fields=self.fields,
            page_size=self._tuning.page_size,
        )
        with self._telling() as changes:
            changes.extend(replacement.commit())
            self.revision = revision
            self._is_synced = True
        for handler in tuple(self._list_handlers):
            handler()

    async def _follow(self) -> None:
        """Watch, again and again, until the next relist is due."""
        try:
            async with asyncio.timeout(self._tuning.relist_s * (0.9 + self._client.clock.random.random() / 5)) as until_relist:
                self._until_relist = until_relist
                await self._watch(until_relist.when() or 0.0)
        except TimeoutError:
            if not until_relist.expired():
                raise
        finally:
            self._until_relist = None

    async def _watch(self, relist_at: float) -> None:
        now = asyncio.get_running_loop().time
        failures = 0
        while True:
            began, heard_before = now(), self._heard_count
            watch_s = min(self._tuning.watch_s, max(1, int(relist_at - began)))
            try:
                await self._watch_once(watch_s)
            except Expired:
                raise
            except ApplecartError as error:
                failures = 1 if self._heard_count > heard_before else failures + 1
                await self._rest(failures, error)
            else:
                is_silent = self._heard_count == heard_before
                if is_silent and now() - began < watch_s / 2:  # one that is well has brought a bookmark by then
                    self._failed("the API ends watches at once")
                # A server that ends every watch at once must not turn us into a load generator.
                hasty = is_silent and now() - began < 1.0
                failures = failures + 1 if hasty else 0
                if hasty:
                    await asyncio.sleep(self._tuning.pace.wait_s(failures, self._client.clock.random))

    async def _watch_once(self, watch_s: int) -> None:
        """One watch to its end."""
        async with aclosing(
            watch(
                self._client,
                self.kind,
                self.revision,
                self.namespace,
                labels=self.labels,
                fields=self.fields,
                watch_s=watch_s,
                idle_s=self._tuning.idle_s,
            )
        ) as batches:
            async for frames in batches:
                if frames:
                    self._heard_count += 1
                    self._recovered()  # not before: a watch that opens may be as deaf as the one before
                    self._apply(frames)
                else:
                    self._is_watching = True
                    self._wake_waiters()

    def _apply(self, frames: list[Frame[K]]) -> None:
        with self._telling() as changes:
            for frame in frames:
                if frame.type == "ADDED" or frame.type == "MODIFIED":
                    changes += self._cache.put(frame.object)
                elif frame.type == "DELETED":
                    changes += self._cache.remove(frame.object.key, frame.object)
            self.revision = frames[-1].object.metadata.resource_version

    # Telling

    @contextmanager
    def _telling(self) -> Iterator[list[Change[K]]]:
        """Tell what was stored, also before a failure: no list finds it again, because the cache has it."""
        changes: list[Change[K]] = []
        try:
            yield changes
        finally:
            self._publish(changes)

    def _publish(self, changes: list[Change[K]]) -> None:
        for handler in tuple(self._handlers):  # one may leave while it is told
            for change in changes:
                if handler in self._handlers:
                    self._tell(handler, change)
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _tell(self, handler: Handler[K], change: Change[K]) -> None:
        """One that failed on an object hears of all that happened to it at once, when its time comes."""
        if (handler, change.key) in self._untold:
            return
        if not self._hears(handler, change):
            self._untold[handler, change.key] = untold = _Untold(change.old)
            self._tell_later(handler, change.key, untold)

    def _hears(self, handler: Handler[K], change: Change[K]) -> bool:
        try:
            handler(change)
        except (Exception, asyncio.CancelledError):  # the latter is never ours: nothing is awaited here
            log.exception("a change handler failed, telling it again later", kind=self._what, object=change.key)
            return False
        return True

    def _tell_later(self, handler: Handler[K], key: Key, untold: "_Untold[K]") -> None:
        untold.failures += 1
        wait_s = TELL_AGAIN.wait_s(untold.failures, self._client.clock.random)
        asyncio.get_running_loop().call_later(wait_s, self._tell_again, handler, key, untold)

    def _tell_again(self, handler: Handler[K], key: Key, untold: "_Untold[K]") -> None:
        """As it is by now: no list and no event would ever tell a change that only this handler missed."""
        del self._untold[handler, key]
        if handler not in self._handlers:
            return
        old, now = untold.old, self._cache.get(key)
        states = [old, None, now] if old and now and old.uid != now.uid else [old, now] if old or now else []
        for before, after in pairwise(states):
            if not self._hears(handler, Change(key, before, after)):
                untold.old = before
                self._untold[handler, key] = untold
                self._tell_later(handler, key, untold)
                return

    @property
    def _what(self) -> str:
        return self.kind.resource.label

    def _recovered(self) -> None:
        self._failing_since = None
        if self.trouble is not None:
            away_s = asyncio.get_running_loop().time() - self.trouble.since
            log.info("the API answers again", kind=self._what, away_s=round(away_s, 1))
            self.trouble = None

    def _failed(self, because: str) -> None:
        """The second failure in a row is told, once; the first one where nothing is known yet."""
        is_first = self._failing_since is None
        if self._failing_since is None:
            self._failing_since = asyncio.get_running_loop().time()
        if self.trouble is None and not (is_first and self._is_synced):
            self.trouble = Trouble(since=self._failing_since, because=because)
            log.warning("cannot follow the API, keeping what is known", kind=self._what, because=because)

    async def _rest(self, failures: int, error: Exception) -> None:
        """Wait before trying again, also for as long as the server asked."""
        self._is_watching = False
        self._failed(str(error))
        await asyncio.sleep(asked_s(error) + self._tuning.pace.wait_s(failures, self._client.clock.random))


def _comparable(function: IndexFunction[K]) -> object:
    """Equal for functions that find by the same: the same code, made at the same place with the same values."""
    parts = ("__code__", "__self__", "__closure__", "__defaults__", "__kwdefaults__")
    return tuple(getattr(function, part, None) for part in parts) if hasattr(function, "__code__") else function
