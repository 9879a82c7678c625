"""Whatever a reconcile does, the loop goes on, and every key gets its next look when it should."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from applecart.api.core import ConfigMap
from applecart.api.meta import Key, ObjectMeta, OwnerReference
from applecart.api.pods import Pod, PodStatus
from applecart.clock import Clock, VirtualLoop
from applecart.embedded.server.server import RunningApi
from applecart.errors import BadInput, Transient
from applecart.kube.cache import Change
from applecart.kube.client import Client
from applecart.kube.controller import DONE, REMEMBERED_TEXTS, WAIT, Controller, Outcome, Result, again_in, beyond_status
from applecart.kube.errors import Conflict, Status
from applecart.kube.informer import Informer
from applecart.kube.patch import Merge
from applecart.kube.workqueue import WorkQueue
from tests.kube.objects import pod
from tests.virtual_time import elapse

OLD = ConfigMap(metadata=ObjectMeta(name="a", namespace="test", uid="uid-1", generation=3, resource_version="7"))
OWNER = OwnerReference(api_version="v1", kind="Node", name="n", uid="uid-2")

Script = Callable[[str], Awaitable[Result]]


def with_metadata(**changes: object) -> ConfigMap:
    return msgspec.structs.replace(OLD, metadata=msgspec.structs.replace(OLD.metadata, resource_version="8", **changes))


def change(old: ConfigMap | None, new: ConfigMap | None) -> Change[ConfigMap]:
    return Change(OLD.key, old, new)


@pytest.mark.parametrize(
    "new",
    [
        with_metadata(generation=4),
        with_metadata(labels={"x": "1"}),
        with_metadata(annotations={"x": "1"}),
        with_metadata(finalizers=("example.com/guard",)),
        with_metadata(owner_references=(OWNER,)),
        with_metadata(deletion_timestamp=datetime(2026, 3, 1, tzinfo=UTC)),
    ],
)
def test_whatever_a_decision_may_depend_on_is_beyond_the_status(new: ConfigMap) -> None:
    assert beyond_status(change(OLD, new))


def test_data_of_a_kind_without_a_status_is_beyond_it() -> None:
    assert beyond_status(change(OLD, msgspec.structs.replace(with_metadata(), data={"k": "v"})))


def test_a_status_is_not_beyond_itself() -> None:
    old = Pod(metadata=OLD.metadata)
    new = msgspec.structs.replace(old, status=PodStatus(phase="Running"))
    assert not beyond_status(Change(OLD.key, old, new))


def test_a_new_revision_alone_is_a_status() -> None:
    assert not beyond_status(change(OLD, with_metadata()))


def test_an_object_that_appears_or_goes_is_never_spared() -> None:
    for each in (change(None, OLD), change(OLD, None)):
        assert beyond_status(each)


class Heard:
    """What the controller reported."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[object, Outcome]] = []

    def reconciled(self, key: object, outcome: Outcome, took_s: float) -> None:
        self.outcomes.append((key, outcome))

    def started(self) -> None: ...

    def stopped(self) -> None: ...

    def of(self, key: object) -> list[Outcome]:
        return [outcome for heard, outcome in self.outcomes if heard == key]


class Bench:
    """A controller with a scripted reconcile, and the times at which it was called."""

    def __init__(self, clock: Clock, script: Script, **options: Any) -> None:
        self.clock = clock
        self.script = script
        self.heard = Heard()
        self.queue: WorkQueue[str] = WorkQueue(clock)
        self.calls: list[tuple[str, float]] = []
        workers = int(options.pop("workers", 1))
        self.controller = Controller(
            "test", self._reconcile, self.queue, clock, workers=workers, observer=self.heard, **options
        )

    async def _reconcile(self, key: str) -> Result:
        self.calls.append((key, self.clock.monotonic()))
        return await self.script(key)

    def times_of(self, key: str) -> list[float]:
        return [at_s for called, at_s in self.calls if called == key]

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Bench"]:
        task = asyncio.create_task(self.controller.run())
        try:
            yield self
        finally:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


def always(result: Result) -> Script:
    async def script(_key: str) -> Result:
        return result

    return script


def failing_once(error: Exception) -> Script:
    failed: set[str] = set()

    async def script(key: str) -> Result:
        if key not in failed:
            failed.add(key)
            raise error
        return DONE

    return script


async def test_a_key_that_is_done_is_not_looked_at_again(clock: Clock) -> None:
    async with Bench(clock, always(DONE)).running() as bench:
        bench.queue.add("a")
        await elapse(24 * 3600)
    assert bench.times_of("a") == [0]
    assert bench.heard.of("a") == [Outcome.DONE]


async def test_a_key_that_wants_to_be_looked_at_again_is_when_it_said(clock: Clock) -> None:
    async with Bench(clock, always(again_in(timedelta(minutes=5)))).running() as bench:
        bench.queue.add("a")
        await elapse(16 * 60)
    assert bench.times_of("a") == pytest.approx([0, 300, 600, 900])


async def test_a_wait_for_an_event_that_never_comes_has_an_end(clock: Clock) -> None:
    async with Bench(clock, always(WAIT), longest_wait_s=1800).running() as bench:
        bench.queue.add("a")
        await elapse(1800)
    assert len(bench.times_of("a")) in (2, 3)  # each look is between half and the whole of the longest wait after the last


async def test_keys_that_began_to_wait_together_do_not_all_come_back_together(clock: Clock) -> None:
    keys = [f"key-{number}" for number in range(20)]
    async with Bench(clock, always(WAIT), longest_wait_s=1800).running() as bench:
        for key in keys:
            bench.queue.add(key)
        await elapse(1800)
    back_s = {bench.times_of(key)[1] for key in keys}
    assert len(back_s) == len(keys)
    assert min(back_s) < 1200 < max(back_s)


@pytest.mark.parametrize(
    ("error", "outcome", "earliest_s", "latest_s"),
    [
        (Conflict(Status(), "PATCH"), Outcome.CONFLICT, 0.02, 0.06),
        (Transient("the API is away"), Outcome.TRANSIENT, 0.2, 0.6),
        (BadInput("spec.os names no family"), Outcome.PERMANENT, 14, 31),
        (KeyError("status"), Outcome.UNEXPECTED, 0.4, 1.1),
        (TimeoutError("of its own"), Outcome.UNEXPECTED, 0.4, 1.1),
    ],
)
async def test_an_error_is_retried_at_the_pace_of_its_class(
    clock: Clock, error: Exception, outcome: Outcome, earliest_s: float, latest_s: float
) -> None:
    async with Bench(clock, failing_once(error)).running() as bench:
        bench.queue.add("a")
        await elapse(60)
    first, second = bench.times_of("a")
    assert earliest_s <= second - first <= latest_s
    assert bench.heard.of("a") == [outcome, Outcome.DONE]
    assert bench.queue.failures("a") == 0


async def test_an_unexpected_error_is_logged_with_its_traceback_once_per_text(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(key: str) -> Result:
        raise RuntimeError(f"no such field in {key}")

    async with Bench(clock, script).running() as bench:
        bench.queue.add("a")
        bench.queue.add("b")
        await elapse(3600)
    with_traceback = [record for record in caplog.records if record.exc_info]
    assert len(bench.times_of("a")) > 5
    assert [str(record.exc_info[1]) for record in with_traceback if record.exc_info] == [
        "no such field in a",
        "no such field in b",
    ]


async def fails_with_its_first_word(key: str) -> Result:
    raise RuntimeError(key.split()[0])


async def test_a_text_is_remembered_as_long_as_it_is_among_the_latest(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """Its last time counts, not its first one; and those that are told no more make room."""
    others = [f"other-{number}" for number in range(REMEMBERED_TEXTS - 1)]
    async with Bench(clock, fails_with_its_first_word).running() as bench:
        for key in ("text", *others, "text again", "one-more", "text once more"):
            bench.queue.add(key)
        await elapse(0.1)
        assert tracebacks(caplog).count("text") == 1
        assert tracebacks(caplog).count("other-0") == 1
        bench.queue.add("other-0 which was forgotten")
        await elapse(0.1)
        assert tracebacks(caplog).count("other-0") == 2


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(record.exc_info[1]) for record in caplog.records if record.exc_info]


async def test_an_expected_error_is_logged_as_its_sentence(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    async with Bench(clock, failing_once(Transient("mac-7 does not answer"))).running() as bench:
        bench.queue.add("a")
        await elapse(60)
    record = next(record for record in caplog.records if record.name == "applecart.kube.controller")
    assert record.levelno == logging.WARNING
    assert record.exc_info
    assert str(record.exc_info[1]) == "mac-7 does not answer"


async def test_a_reconcile_that_overruns_is_cancelled_and_only_its_own_key_waits(clock: Clock) -> None:
    cancelled: list[str] = []

    async def script(key: str) -> Result:
        if key == "hung":
            try:
                await asyncio.get_running_loop().create_future()
            except asyncio.CancelledError:
                cancelled.append(key)
                raise
        return again_in(timedelta(seconds=10))

    async with Bench(clock, script, workers=2, deadline_s=60).running() as bench:
        bench.queue.add("hung")
        bench.queue.add("fine")
        await elapse(59)
        assert len(bench.times_of("fine")) == 6
        await elapse(3)
    assert bench.heard.of("hung") == [Outcome.OVERRUN]
    assert cancelled[0] == "hung"
    assert len(bench.times_of("hung")) == 2  # tried again at the transient pace


async def test_a_process_that_stood_still_blames_no_reconcile_for_it(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    """After a pause of the VM both times were over: one that ended at once was said to go on after its deadline."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    async with Bench(clock, lambda _: loop.create_future(), deadline_s=5).running() as bench:
        bench.queue.add("a")
        await elapse(1)
        loop.advance(60)
        await elapse(0.1)
        assert bench.heard.of("a") == [Outcome.OVERRUN]
    assert [record.message for record in caplog.records] == ["reconcile failed"]


async def test_an_overrun_that_hides_behind_another_error_is_still_counted_as_one(clock: Clock) -> None:
    async def script(_key: str) -> Result:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            raise Transient("the connection was closed") from None
        return DONE

    async with Bench(clock, script, deadline_s=5).running() as bench:
        bench.queue.add("a")
        await elapse(5.1)
    assert bench.heard.of("a") == [Outcome.OVERRUN]


async def test_a_reconcile_that_ends_as_cancelled_although_nobody_cancelled_it_does_not_kill_its_worker(clock: Clock) -> None:
    async def script(key: str) -> Result:
        if key == "stray":
            inner = asyncio.ensure_future(elapse(100))
            inner.cancel()
            await inner
        return DONE

    async with Bench(clock, script).running() as bench:
        bench.queue.add("stray")
        bench.queue.add("next")
        await elapse(0.1)
    assert bench.heard.of("stray") == [Outcome.UNEXPECTED]
    assert bench.heard.of("next") == [Outcome.DONE]


async def test_a_group_that_fails_in_a_reconcile_costs_neither_its_worker_nor_the_deadline_of_the_next(clock: Clock) -> None:
    """Before Python 3.13 such a group leaves the task it ran in counted as cancelled."""

    async def script(key: str) -> Result:
        if key == "group":
            async with asyncio.TaskGroup() as group:
                group.create_task(elapse(100))
                group.create_task(always_failing())
        return DONE if key == "next" else await asyncio.get_running_loop().create_future()

    async def always_failing() -> None:
        raise Transient("unreachable")

    async with Bench(clock, script, deadline_s=5).running() as bench:
        for key in ("group", "hung", "next"):
            bench.queue.add(key)
        await elapse(5.5)
    assert bench.heard.of("hung") == [Outcome.OVERRUN]
    assert bench.heard.of("next") == [Outcome.DONE]


async def test_a_reconcile_that_returns_nothing_is_a_failure_not_a_crash(clock: Clock) -> None:
    async def script(key: str) -> Result:
        return DONE if key == "next" else None  # type: ignore[return-value]

    async with Bench(clock, script).running() as bench:
        bench.queue.add("a")
        bench.queue.add("next")
        await elapse(0.1)
    assert bench.heard.of("a") == [Outcome.UNEXPECTED]
    assert bench.heard.of("next") == [Outcome.DONE]


async def test_a_reconcile_that_returns_nothing_backs_off_like_any_other_failure(clock: Clock) -> None:
    """It was well for a moment, so it came back at the shortest distance, 4,800 times an hour."""

    async def script(key: str) -> Result:
        return None  # type: ignore[return-value]

    async with Bench(clock, script).running() as bench:
        bench.queue.add("a")
        await elapse(3600)
    assert len(bench.calls) < 30


async def test_stopping_cancels_running_reconciles_and_waits_for_their_cleanup(clock: Clock) -> None:
    ended_s: list[float] = []

    async def script(_key: str) -> Result:
        try:
            await elapse(1000)
        finally:
            await elapse(3)
            ended_s.append(clock.monotonic())
        return DONE

    async with Bench(clock, script, workers=2).running() as bench:
        bench.queue.add("a")
        bench.queue.add("b")
        await elapse(10)
    assert ended_s == pytest.approx([13, 13])
    assert clock.monotonic() == pytest.approx(13)


async def test_a_controller_that_runs_again_looks_at_what_was_cut_off(clock: Clock) -> None:
    async def script(_key: str) -> Result:
        await elapse(10)
        return DONE

    bench = Bench(clock, script)
    bench.queue.add("a")
    async with bench.running():
        await elapse(5)
    assert bench.heard.of("a") == []
    async with bench.running():
        await elapse(20)
    assert bench.heard.of("a") == [Outcome.DONE]


async def test_a_reconcile_that_swallows_its_cancellation_cannot_keep_the_controller_alive(clock: Clock) -> None:
    async def script(_key: str) -> Result:
        try:
            await elapse(1000)
        except asyncio.CancelledError:
            return DONE
        return DONE

    bench = Bench(clock, script)
    task = asyncio.create_task(bench.controller.run())
    bench.queue.add("a")
    bench.queue.add("b")
    await elapse(1)
    task.cancel()
    await asyncio.wait({task}, timeout=1)
    assert task.done()


async def test_as_many_keys_are_worked_on_at_once_as_there_are_workers(clock: Clock) -> None:
    async def script(_key: str) -> Result:
        await elapse(10)
        return DONE

    async with Bench(clock, script, workers=4).running() as bench:
        for number in range(8):
            bench.queue.add(str(number))
        await elapse(25)
    assert [at_s for _, at_s in bench.calls] == pytest.approx([0, 0, 0, 0, 10, 10, 10, 10])


def test_a_controller_without_workers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        Controller("idle", always(DONE), None, None, workers=0)  # type: ignore[arg-type]


# Fed by informers


def config(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="test", labels=labels))


class Fed:
    """A controller that an informer feeds from an API in memory."""

    def __init__(self, running: RunningApi, clock: Clock) -> None:
        self.client = Client(running.transport(), clock)
        self.informer = Informer(self.client, ConfigMap, "test")
        self.seen: list[Key | str] = []
        self.queue: WorkQueue[Key | str] = WorkQueue(clock)
        self.controller: Controller[Key | str] = Controller("fed", self._reconcile, self.queue, clock)

    async def _reconcile(self, key: Key | str) -> Result:
        self.seen.append(key)
        return DONE

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Fed"]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.informer.run()), group.create_task(self.controller.run())]
            yield self
            for task in tasks:
                task.cancel()

    async def seen_after(self, change: Awaitable[object]) -> list[Key | str]:
        self.seen.clear()
        await change
        await elapse(1)
        return list(self.seen)


async def test_every_change_of_a_watched_object_queues_its_key(running: RunningApi, clock: Clock) -> None:
    fed = Fed(running, clock)
    fed.controller.watch(fed.informer)
    await fed.client.create(config("before"))
    key = Key("test", "a")
    async with fed.running():
        await elapse(1)
        assert fed.seen == [Key("test", "before")]
        assert await fed.seen_after(fed.client.create(config("a"))) == [key]
        assert await fed.seen_after(fed.client.patch(ConfigMap, key, Merge({"data": {"x": "1"}}))) == [key]
        assert await fed.seen_after(fed.client.delete(ConfigMap, key)) == [key]


async def test_nothing_is_reconciled_before_the_cache_is_complete(running: RunningApi, clock: Clock) -> None:
    fed = Fed(running, clock)
    fed.controller.watch(fed.informer)
    fed.queue.add("early")
    task = asyncio.create_task(fed.controller.run())
    await elapse(60)
    assert fed.seen == []
    informing = asyncio.create_task(fed.informer.run())
    await elapse(1)
    assert fed.seen == ["early"]
    for each in (task, informing):
        each.cancel()
    await asyncio.gather(task, informing, return_exceptions=True)


async def test_a_change_that_moves_an_object_to_another_owner_wakes_both(running: RunningApi, clock: Clock) -> None:
    fed = Fed(running, clock)
    fed.controller.watch(fed.informer, key_of=lambda obj: obj.labels.get("owner"))
    async with fed.running():
        assert await fed.seen_after(fed.client.create(config("a", owner="one"))) == ["one"]
        moved = Merge({"metadata": {"labels": {"owner": "two"}}})
        assert await fed.seen_after(fed.client.patch(ConfigMap, Key("test", "a"), moved)) == ["one", "two"]
        orphaned = Merge({"metadata": {"labels": {"owner": None}}})
        assert await fed.seen_after(fed.client.patch(ConfigMap, Key("test", "a"), orphaned)) == ["two"]


async def test_one_object_may_wake_many_keys(running: RunningApi, clock: Clock) -> None:
    fed = Fed(running, clock)
    fed.controller.watch(fed.informer, keys_of=lambda obj: obj.labels)
    async with fed.running():
        assert await fed.seen_after(fed.client.create(config("a", x="1", y="2"))) == ["x", "y"]


async def test_a_predicate_spares_changes(running: RunningApi, clock: Clock) -> None:
    fed = Fed(running, clock)
    fed.controller.watch(fed.informer, when=lambda change: change.old is None or change.new is None)
    key = Key("test", "a")
    async with fed.running():
        assert await fed.seen_after(fed.client.create(config("a"))) == [key]
        assert await fed.seen_after(fed.client.patch(ConfigMap, key, Merge({"data": {"x": "1"}}))) == []
        assert await fed.seen_after(fed.client.delete(ConfigMap, key)) == [key]


async def test_a_failure_that_is_counted_in_the_status_does_not_wake_itself(running: RunningApi, clock: Clock) -> None:
    """A host's eight bootstrap attempts were used up in seconds: each one wrote its count into the status, the write was a
    change, and the change started the next attempt at once. Backoff was fiction."""
    client = Client(running.transport(), clock)
    informer = Informer(client, Pod)
    attempts: list[float] = []

    async def reconcile(key: Key) -> Result:
        attempts.append(clock.monotonic())
        await client.patch_status(Pod, key, Merge({"status": {"message": f"attempt {len(attempts)} failed"}}))
        raise Transient("the host does not answer")

    controller: Controller[Key] = Controller("test", reconcile, WorkQueue(clock), clock)
    controller.watch(informer)
    tasks = [asyncio.create_task(informer.run()), asyncio.create_task(controller.run())]
    created = await client.create(pod("test", "a"))
    await elapse(600)
    assert 8 <= len(attempts) <= 20, "ten minutes hold about a dozen waits that double up to two minutes"
    before = len(attempts)
    await client.patch(Pod, created.key, Merge({"metadata": {"annotations": {"example.com/retry": "now"}}}))
    await elapse(0.1)
    assert len(attempts) > before, "a person's change is looked at without delay"
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
