"""Large requests are worked out beside the event loop, and stored on it.

A handler runs on the worker's thread against a `Trial`: a store that notes what was read of it and keeps what is written to it.
Back on the loop the writes are stored if everything that was read is still so, else the handler runs again. So handlers need
not know where they run, and nothing is stored that was decided on an older state.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from applecart.api.meta import Key
from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.rbac import KINDS as RBAC_KINDS
from applecart.embedded.auth.user import User
from applecart.embedded.refusals import too_many_requests
from applecart.embedded.schema.budget import TooMuchForTheLoop, on_the_loop
from applecart.embedded.server.core import Core
from applecart.embedded.server.request import Answer, ApiRequest
from applecart.embedded.server.worker import LARGE_BYTES
from applecart.embedded.store.record import Op, Record
from applecart.embedded.store.store import Store, StoreReader
from applecart.embedded.store.table import Table

TRIES = 5  # as often as the real server tries to patch an object that others write to
STAND_IN = 10**17  # no revision is so high: numbers above it stand for those that the loop gives out
YAML_WEIGHT = 16  # a byte of YAML takes so many times as long as one of JSON

Result = TypeVar("Result")
Handler = Callable[[Core], Coroutine[Any, Any, Result]]


def is_large(request: ApiRequest, record: Record | None) -> bool:
    """Whether a request about this object would keep the loop too long."""
    body = request.body
    is_yaml = "yaml" in request.content_type and body.lstrip()[:1] != b"{"
    is_shown_as_yaml = "yaml" in request.accept
    touches = request.method not in ("GET", "HEAD") or is_shown_as_yaml or "as=" in request.accept
    size = len(body) * (YAML_WEIGHT if is_yaml else 1) + (record.size_bytes if record is not None and touches else 0)
    return size * (YAML_WEIGHT if is_shown_as_yaml else 1) > LARGE_BYTES


async def worked_out(core: Core, request: ApiRequest, work: Callable[[], Result]) -> Result:
    """What some work of a request comes to that neither waits nor reads objects, wherever it is done."""
    if core.worker is None:
        return work()
    if not is_large(request, None):
        with suppress(TooMuchForTheLoop), on_the_loop():
            return work()
    return await core.worker.run(request.user, work)


async def beside_the_loop(core: Core, user: User, handler: Handler[Result]) -> Result:
    """What comes of a handler that waits for nothing but its writes."""
    worker = core.worker
    assert worker is not None
    for _ in range(TRIES):
        trial = Trial(core)
        answer = await worker.run(user, lambda trial=trial: _finished(handler(trial.core(core))))  # type: ignore[misc]
        if trial.is_up_to_date():
            revisions = await trial.store()
            if isinstance(answer, Answer):
                answer.body = _with_revisions(answer.body, revisions)
            return answer
    raise too_many_requests("the object changes faster than the request can be worked out, please try again later", 1)


class Trial:
    """One run of a handler: what it read, and what it would write.

    It holds nothing that holds it: two records of a large object would stay until the garbage collector comes, which is rare.
    """

    def __init__(self, core: Core) -> None:
        self._real = core.store
        self._registry = core.registry
        self._edition = core.registry.edition
        self._first = self._next = STAND_IN + secrets.randbelow(8 * STAND_IN)  # nobody can have written it into an object
        self._seen: list[tuple[Callable[[], object], object]] = []
        self._writes: list[tuple[str, Op, Record]] = []
        self._settling: list[int] = []

    # On the thread: the store that the handler sees

    def core(self, real: Core) -> Core:
        assert real.worker is not None
        store = cast(Store, self)  # as much of one as handlers use
        authorizer = cast(Authorizer, _TrialAuthorizer(real.worker.authorizer, self, self._real.table))
        return replace(real, store=store, reader=StoreReader(store), authorizer=authorizer)

    @property
    def revision(self) -> int:
        return self._real.revision

    def table(self, label: str) -> Table:
        return cast(Table, _TrialTable(label, self._real.table(label), self))

    def next_revision(self) -> int:
        return self._next

    def write(self, label: str, op: Op, record: Record) -> None:
        self._next += 1
        self._writes.append((label, op, record))

    def settled(self, revision: int) -> None:
        self._settling.append(revision)

    def look(self, at: Callable[[], Result]) -> Result:
        seen = at()
        self._seen.append((at, seen))
        return seen

    def written(self, label: str, key: Key) -> tuple[Record | None] | None:
        for of, op, record in reversed(self._writes):
            if (of, record.key) == (label, key):
                return (None if op is Op.DELETED else record,)
        return None

    # On the loop

    def is_up_to_date(self) -> bool:
        return self._registry.edition == self._edition and all(at() == seen for at, seen in self._seen)

    async def store(self) -> dict[int, int]:
        """Store what was written, without waiting in between; the revisions that were given out for the stand-ins."""
        revisions: dict[int, int] = {}
        waiting = [self._real.settled(revision) for revision in self._settling]
        for label, op, record in self._writes:
            revision = revisions[record.revision] = self._real.next_revision()
            value = _with_revisions(record.value, revisions)
            waiting.append(self._real.write(label, op, Record(record.key, revision, value, record.traits)))
        for durable in waiting:
            if durable is not None:
                await asyncio.shield(durable)
        return revisions


class _TrialTable:
    def __init__(self, label: str, real: Table, trial: Trial) -> None:
        self._label, self._real, self._trial = label, real, trial

    def tip(self, key: Key) -> Record | None:
        if written := self._trial.written(self._label, key):
            return written[0]
        return self._trial.look(partial(self._real.tip, key))

    def get(self, key: Key) -> Record | None:
        return self._trial.look(partial(self._real.get, key))

    def records(self, namespace: str | None = None) -> list[Record]:
        return self._trial.look(partial(self._real.records, namespace))


class _TrialAuthorizer:
    """The worker's: whatever it is asked, the answer is good until a role or binding changes."""

    def __init__(self, real: Authorizer, trial: Trial, tables: Callable[[str], Table]) -> None:
        self._real, self._trial, self._tables = real, trial, tables

    def __getattr__(self, question: str) -> Any:
        tables = self._tables
        self._trial.look(lambda: [tables(kind).changed_at for kind in RBAC_KINDS])
        return getattr(self._real, question)


def _finished(run: Coroutine[Any, Any, Result]) -> Result:
    try:
        run.send(None)
    except StopIteration as end:
        return cast(Result, end.value)
    run.close()
    raise RuntimeError("a handler that waits cannot run beside the loop")


def _with_revisions(text: bytes, revisions: dict[int, int]) -> bytes:
    for stand_in, revision in revisions.items():
        text = text.replace(b"%d" % stand_in, b"%d" % revision)
    return text
