"""The thread beside the loop: in turns, and never for ever."""

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from applecart.embedded.auth.authorize import Authorizer
from applecart.embedded.auth.user import MASTERS, User
from applecart.embedded.refusals import Refusal
from applecart.embedded.server import worker as worker_module
from applecart.embedded.server.worker import MOST_WAITING, Worker, _tell
from tests.embedded.auth.objects_in_memory import ObjectsInMemory

pytestmark = pytest.mark.real_time

ONE, OTHER, ADMIN = User("one"), User("other"), User("admin", (MASTERS,))


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    made = Worker(Authorizer(ObjectsInMemory()))
    yield made
    made.close()


async def test_what_takes_too_long_is_ended_and_the_next_one_runs(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_S", 0.1)

    def endless() -> None:
        while True:
            pass

    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            await worker.run(ONE, endless)
        assert refused.value.code == 413
    monkeypatch.setattr(worker_module, "LONGEST_S", 20.0)
    assert await worker.run(ONE, lambda: 1) == 1


async def test_what_is_raised_there_is_raised_here(worker: Worker) -> None:
    def wrong() -> None:
        raise Refusal(422, "Invalid", "no")

    with pytest.raises(Refusal, match="no"):
        await worker.run(ONE, wrong)


async def test_what_is_not_even_an_error_ends_only_its_own_work(worker: Worker) -> None:
    """A panic in Rust is no Exception: the thread ended, and every large request after it was told that it takes too long."""

    class Panic(BaseException):
        pass

    def panics() -> None:
        raise Panic("called `unwrap()` on a `None` value")

    with pytest.raises(worker_module.Broken, match="Panic"):
        await worker.run(ONE, panics)
    assert await worker.run(ONE, lambda: 1) == 1


async def test_the_thread_goes_on_after_what_no_work_can_be_blamed_for(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No memory to note even what went wrong: the thread ended in silence, and every large request was to be made smaller."""
    monkeypatch.setattr(worker_module, "LONGEST_S", 20.0)

    class Hollow(BaseException):
        def __repr__(self) -> str:
            raise MemoryError

    def fails() -> None:
        raise Hollow

    with pytest.raises(worker_module.Broken):
        await worker.run(ONE, fails)
    assert await worker.run(OTHER, lambda: 1) == 1  # by now the thread has told it
    assert [one.message for one in caplog.records] == ["a large request broke off in a way nobody foresaw"]


async def test_the_thread_keeps_no_work_that_is_done(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With it the request and all it had read, until there was another one."""

    class Jobs:
        def __init__(self) -> None:
            self.left: list[Callable[[], None]] = [lambda: None]
            self.first = weakref.ref(self.left[0])

        def get(self) -> Callable[[], None] | None:
            if self.left:
                return self.left.pop()
            assert self.first() is None
            return None

    monkeypatch.setattr(worker, "_jobs", Jobs())
    worker._work()


async def test_a_thread_that_is_no_more_is_replaced(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.close()
    await asyncio.to_thread(worker._thread.join, 20)
    assert await worker.run(ONE, lambda: 1) == 1
    assert [one.message for one in caplog.records] == ["the thread of large requests was gone; there is a new one"]


async def test_users_take_turns_and_one_has_only_so_many_waiting(worker: Worker) -> None:
    """A tenant that sends one large request after the other holds up nobody for longer than one of them takes."""
    go, order = threading.Event(), []

    def job(name: str) -> None:
        go.wait(20)
        order.append(name)

    running = [asyncio.create_task(worker.run(ONE, lambda: job("one"))) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.append(asyncio.create_task(worker.run(OTHER, lambda: job("other"))))
    await asyncio.sleep(0)
    with pytest.raises(Refusal) as refused:
        await worker.run(ONE, lambda: None)
    assert refused.value.code == 429
    running += [asyncio.create_task(worker.run(ADMIN, lambda: job("admin"))) for _ in range(MOST_WAITING + 1)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*running)
    assert order.index("other") == 1
    assert order.index("admin") == 2
    assert len(order) == 2 * MOST_WAITING + 2


async def test_whoever_acts_as_many_waits_as_one(worker: Worker) -> None:
    many = [User(f"system:serviceaccount:ns:x{number}", caller=ONE) for number in range(MOST_WAITING + 1)]
    answers = await asyncio.gather(*(worker.run(each, lambda: None) for each in many), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * MOST_WAITING + [Refusal]
    as_other = User("other", caller=ADMIN)
    assert await asyncio.gather(*(worker.run(as_other, lambda: 1) for _ in range(MOST_WAITING + 1))) == [1] * (MOST_WAITING + 1)


async def test_what_comes_at_once_is_counted_at_once(worker: Worker) -> None:
    """Requests that arrive together all came before the first of them had begun to wait."""
    answers = await asyncio.gather(*(worker.run(ONE, lambda: None) for _ in range(MOST_WAITING + 1)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None)] * MOST_WAITING + [Refusal]
    admins = await asyncio.gather(*(worker.run(ADMIN, lambda: 1) for _ in range(MOST_WAITING + 1)))
    assert admins == [1] * (MOST_WAITING + 1)
    assert await worker.run(ONE, lambda: 1) == 1
    assert not worker._waiting
    assert not worker._turns_of


async def test_a_refusal_of_whoever_has_gone_away_is_not_told_as_a_defect(worker: Worker) -> None:
    """A scheduler that waited for ten seconds left a trace in the log for each Pod that took longer to bind."""
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    go = threading.Event()

    def job() -> None:
        go.wait(20)
        raise Refusal(413, "RequestEntityTooLarge", "too much")

    waiting = asyncio.create_task(worker.run(ONE, job))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    go.set()
    assert await worker.run(ONE, lambda: 1) == 1
    await asyncio.sleep(0)
    gc.collect()
    assert told == []


async def test_whoever_goes_away_keeps_its_place_until_its_work_is_done(worker: Worker) -> None:
    """Else one that hangs up and sends again has any number of large requests waiting."""
    go, left, loop, all_done = threading.Event(), list(range(MOST_WAITING)), asyncio.get_running_loop(), asyncio.Event()

    def job() -> None:
        go.wait(20)
        left.pop()
        if not left:
            loop.call_soon_threadsafe(all_done.set)

    gone = [asyncio.create_task(worker.run(ONE, job)) for _ in range(MOST_WAITING)]
    await asyncio.sleep(0)  # one turn: they have come
    for task in gone:
        task.cancel()
    await asyncio.wait(gone)
    with pytest.raises(Refusal, match="too many large requests"):
        await worker.run(ONE, lambda: None)
    go.set()
    await all_done.wait()
    assert await worker.run(ONE, lambda: 1) == 1


async def test_a_watch_is_not_refused_and_takes_no_place_of_a_request(worker: Worker) -> None:
    """It ended, as there is no other way to tell it: of 12 agents that watched one large object 4 had to list again."""
    watches = [worker.run(ONE, lambda: 1, is_stream=True) for _ in range(MOST_WAITING + 1)]
    requests = [worker.run(ONE, lambda: 1) for _ in range(MOST_WAITING)]
    assert await asyncio.gather(*watches, *requests) == [1] * (2 * MOST_WAITING + 1)
    assert not worker._waiting


async def test_a_watch_that_ends_leaves_the_queue_unless_its_turn_has_begun(worker: Worker) -> None:
    """Nothing limits how many wait, so one that hangs up and watches again must not leave them all behind."""
    go, order = threading.Event(), []

    def job(number: int) -> None:
        go.wait(20)
        order.append(number)

    watches = [asyncio.create_task(worker.run(ONE, partial(job, number), is_stream=True)) for number in range(3)]
    for _ in range(2):  # turns: they have come, and the first has begun
        await asyncio.sleep(0)
    for watch in watches[:2]:
        watch.cancel()
    await asyncio.wait(watches[:2])
    await asyncio.sleep(0)
    assert list(worker._waiting.values()) == [2]
    go.set()
    await watches[2]
    assert order == [0, 2]


async def test_what_one_made_is_there_before_the_next_one_begins(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large event was encoded twice: the second watch began before the first could share what it had encoded."""
    order, run = [], worker._run

    async def noted(work: Callable[[], Any]) -> Any:
        order.append("begins")
        return await run(work)

    async def waits(user: User) -> None:
        await worker.run(user, lambda: None)
        order.append("made")

    monkeypatch.setattr(worker, "_run", noted)
    await asyncio.gather(waits(ONE), waits(ONE), waits(OTHER))
    assert order == ["begins", "made"] * 3


async def test_garbage_is_collected_again_after_a_large_request(worker: Worker) -> None:
    assert not await worker.run(ONE, gc.isenabled)
    worker.close()
    await asyncio.to_thread(worker._thread.join, 20)
    assert gc.isenabled()


async def test_work_that_ends_as_its_time_is_over_does_not_take_the_next_one_along(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "LONGEST_S", 0.05)
    late = asyncio.create_task(worker.run(ONE, lambda: None))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    time.sleep(0.2)  # noqa: ASYNC251 (the loop is busy, and hears of the end and of the time at once)
    await asyncio.gather(late, return_exceptions=True)
    monkeypatch.setattr(worker_module, "LONGEST_S", 5.0)
    assert await worker.run(ONE, lambda: 1) == 1


async def test_whoever_has_stopped_waiting_is_told_nothing() -> None:
    done = asyncio.get_running_loop().create_future()
    done.cancel()
    _tell(done.set_result, done, 1)
    assert done.cancelled()
