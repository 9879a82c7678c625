"""One worker per key, nothing lost, nothing doubled, in the right order, at the right time."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applecart.clock import Clock, VirtualClock, run_virtual
from applecart.errors import BadInput, Transient
from applecart.kube.backoff import Backoff, Failure, FailureBackoffs
from applecart.kube.errors import Conflict, Status
from applecart.kube.workqueue import LONGEST_REST_S, SHORTEST_REST_S, SPARED_GHOSTS, KeyedHeap, WorkQueue, rest_s
from tests.virtual_time import elapse

CONFLICT = Conflict(Status(), "PATCH /pods/a")


def drained(heap: KeyedHeap[str]) -> list[str]:
    return [heap.pop() for _ in range(len(heap))]


def test_the_lowest_order_comes_first_and_equals_in_the_order_they_came() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    for key, order in (("b", 1), ("c", 2), ("a", 1), ("d", 0)):
        heap.put(key, order)
    assert drained(heap) == ["d", "b", "a", "c"]


def test_a_key_put_again_is_moved_not_doubled() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("a", 5)
    heap.put("b", 4)
    heap.put("a", 3)
    assert len(heap) == 2
    assert heap.order_of("a") == 3
    assert drained(heap) == ["a", "b"]


def test_a_discarded_key_never_comes_up() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("a", 1)
    heap.put("b", 2)
    heap.discard("a")
    heap.discard("never there")
    assert heap.first_order() == 2
    assert drained(heap) == ["b"]


def test_a_key_that_is_moved_forever_does_not_grow_memory() -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    heap.put("far", 1e9)
    for number in range(10_000):
        heap.put("restless", 1e6 - number)
        heap.discard("restless")
    assert len(heap._entries) <= 2 * len(heap) + SPARED_GHOSTS + 1


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.one_of(st.none(), st.integers(0, 5)))))
def test_any_program_of_puts_and_discards_leaves_the_order_a_sorted_dictionary_has(
    program: list[tuple[str, int | None]],
) -> None:
    heap: KeyedHeap[str] = KeyedHeap()
    model: dict[str, tuple[int, int]] = {}
    for number, (key, order) in enumerate(program):
        if order is None:
            heap.discard(key)
            model.pop(key, None)
        else:
            heap.put(key, order)
            model[key] = (order, number)
        first = min(model.values(), default=None)
        assert heap.first_order() == (first[0] if first else None)
        assert set(heap) == set(model)
    assert drained(heap) == sorted(model, key=lambda key: model[key])


@pytest.fixture
def queue(clock: Clock) -> WorkQueue[str]:
    return WorkQueue(clock)


async def taken(queue: WorkQueue[str], count: int) -> list[str]:
    keys = []
    for _ in range(count):
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


class Log:
    """What the queue reported."""

    def __init__(self) -> None:
        self.adds = 0
        self.waits_s: list[float] = []
        self.works_s: list[float] = []
        self.retries: list[Failure] = []

    def added(self) -> None:
        self.adds += 1

    def started(self, waited_s: float) -> None:
        self.waits_s.append(waited_s)

    def finished(self, worked_s: float) -> None:
        self.works_s.append(worked_s)

    def retried(self, failure: Failure) -> None:
        self.retries.append(failure)


async def test_keys_come_out_in_the_order_they_went_in(queue: WorkQueue[str]) -> None:
    for key in ("c", "a", "b"):
        queue.add(key)
    assert await taken(queue, 3) == ["c", "a", "b"]


async def test_a_key_added_many_times_while_it_waits_is_worked_once(queue: WorkQueue[str]) -> None:
    for _ in range(5):
        queue.add("a")
    assert await queue.get() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_on_is_worked_again_and_by_nobody_else_meanwhile(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    assert await queue.get() == "b"  # "a" has its worker
    queue.done("a")
    assert await queue.get() == "a"


async def test_getters_wait_and_each_key_wakes_one(queue: WorkQueue[str]) -> None:
    getters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    done, pending = await asyncio.wait(getters, timeout=1)
    assert sorted(task.result() for task in done) == ["a", "b"]
    assert len(pending) == 1
    pending.pop().cancel()


async def test_a_getter_cancelled_after_it_was_woken_leaves_the_key_to_the_next(queue: WorkQueue[str]) -> None:
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 1) == "a"
    assert first.cancelled()


async def test_a_delayed_key_comes_when_it_is_due(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("late", 30)
    queue.add_after("soon", 10)
    assert await queue.get() == "soon"
    assert clock.monotonic() == pytest.approx(10)
    assert await queue.get() == "late"
    assert clock.monotonic() == pytest.approx(30)


async def test_of_two_delays_the_earlier_wins(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    await taken(queue, 1)
    assert clock.monotonic() == pytest.approx(10)
    assert queue.delayed_count == 0


async def test_a_plain_add_pulls_a_delayed_key_forward_and_its_delay_is_over(queue: WorkQueue[str], clock: Clock) -> None:
    queue.add_after("a", 30)
    queue.add("a")
    assert await taken(queue, 1) == ["a"]
    assert clock.monotonic() == 0
    await elapse(60)
    assert len(queue) == 0


async def test_a_delay_that_ends_while_the_key_is_worked_on_brings_it_back_afterwards(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    await elapse(10)
    assert len(queue) == 1
    queue.done("a")
    assert await queue.get() == "a"


async def test_all_delayed_keys_share_one_timer(queue: WorkQueue[str]) -> None:
    loop = asyncio.get_running_loop()
    before = len(loop._scheduled)  # type: ignore[attr-defined]
    for number in range(1000):
        queue.add_after(f"key-{number}", 1000 + number)
    assert len(loop._scheduled) == before + 1  # type: ignore[attr-defined]


async def test_retries_wait_longer_each_time_until_the_key_is_well(clock: Clock) -> None:
    queue: WorkQueue[str] = WorkQueue(clock, backoffs=FailureBackoffs(transient=Backoff(first_s=1, longest_s=8)))
    waits = []
    for _ in range(6):
        queue.add("a")
        await queue.get()
        waits.append(queue.retry("a", Transient("down")))
        queue.done("a")
    assert all(step / 2 <= wait <= step for wait, step in zip(waits, (1, 2, 4, 8, 8, 8), strict=True))
    assert queue.failures("a") == 6
    queue.forget("a")
    assert queue.failures("a") == 0
    assert queue.retry("a", Transient("down")) <= 1


async def test_the_class_of_the_error_sets_the_pace(queue: WorkQueue[str]) -> None:
    assert queue.retry("a", CONFLICT) < queue.retry("b", Transient("down")) < queue.retry("c", BadInput("spec.os"))


async def test_ages_tell_how_long_the_oldest_key_waits_and_the_longest_work_runs(queue: WorkQueue[str]) -> None:
    assert (queue.oldest_waiting_s(), queue.longest_running_s()) == (0, 0)
    queue.add("a")
    await elapse(5)
    queue.add("b")
    assert queue.oldest_waiting_s() == pytest.approx(5)
    await queue.get()
    await elapse(7)
    assert queue.longest_running_s() == pytest.approx(7)
    assert queue.oldest_waiting_s() == pytest.approx(7)
    queue.add("a")
    await elapse(20)
    queue.done("a")
    assert queue.oldest_waiting_s() == pytest.approx(27)  # "b"
    await taken(queue, 1)
    assert queue.oldest_waiting_s() == pytest.approx(20)  # "a" waited while it was worked on


async def test_the_observer_hears_adds_waits_work_and_retries(clock: Clock) -> None:
    heard = Log()
    queue: WorkQueue[str] = WorkQueue(clock, observer=heard)
    queue.add("a")
    queue.add("a")
    await elapse(3)
    await queue.get()
    await elapse(2)
    queue.retry("a", CONFLICT)
    queue.done("a")
    assert heard.adds == 2
    assert heard.waits_s == pytest.approx([3])
    assert heard.works_s == pytest.approx([2])
    assert heard.retries == [Failure.CONFLICT]


KEYS = st.sampled_from("abc")

PROGRAMS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS, st.integers(0, 2)),
        st.tuples(st.just("after"), KEYS, st.integers(0, 20)),
        st.tuples(st.just("pass"), KEYS, st.integers(1, 10)),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(PROGRAMS, st.integers(1, 3), st.integers(0, 5))
def test_every_wish_is_worked_on_after_it_was_made_and_soon_after_it_is_due_and_never_by_two_at_once(
    program: list[tuple[str, str, int]], workers: int, work_s: int
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        queue: WorkQueue[str] = WorkQueue(VirtualClock(loop))
        at_work: set[str] = set()
        starts_s: dict[str, list[float]] = {key: [] for key in "abc"}
        wishes: list[tuple[str, float, float]] = []  # key, made, due

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in at_work
                at_work.add(key)
                starts_s[key].append(loop.time())
                await elapse(work_s)
                at_work.remove(key)
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for verb, key, number in program:
            if verb == "add":
                queue.add(key)
                wishes.append((key, loop.time(), loop.time()))
            elif verb == "after":
                queue.add_after(key, number)
                wishes.append((key, loop.time(), loop.time() + number))
            else:
                await elapse(number)
        await elapse(1000)
        assert (len(queue), queue.delayed_count, at_work) == (0, 0, set())
        busy_s = work_s * (len(program) + 1)  # no key can be kept waiting longer by all the work there is
        for key, made, due in wishes:
            assert any(made <= start <= due + busy_s + 1e-6 for start in starts_s[key])
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results)

    run_virtual(scenario())


async def test_a_change_that_may_be_our_own_does_not_end_a_backoff(clock: Clock, queue: WorkQueue[str]) -> None:
    wait_s = queue.retry("a", Transient("down"))
    queue.add("a", ends_backoff=False)
    assert len(queue) == 0
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(wait_s)


@pytest.mark.parametrize(
    ("backoff_s", "rests_s"),
    [(0.05, 0.05), (1.0, SHORTEST_REST_S), (8.0, SHORTEST_REST_S), (120.0, 12.0), (900.0, LONGEST_REST_S)],
)
def test_no_change_ends_the_first_tenth_of_a_backoff(backoff_s: float, rests_s: float) -> None:
    assert rest_s(backoff_s) == pytest.approx(rests_s)


async def test_a_change_by_somebody_else_does_after_a_moment(clock: Clock, queue: WorkQueue[str]) -> None:
    wait_s = queue.retry("a", BadInput("spec.os"))
    queue.add("a")
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(rest_s(wait_s))


@pytest.mark.parametrize("error", [CONFLICT, Transient("down"), BadInput("spec.os"), RuntimeError("bug")], ids=repr)
async def test_a_change_is_looked_at_within_half_a_minute_after_any_number_of_failures(
    clock: Clock, queue: WorkQueue[str], error: Exception
) -> None:
    for _ in range(100):
        queue.add("a")
        key = await queue.get()
        queue.retry(key, error)
        queue.done(key)
    failed_s = clock.monotonic()
    queue.add("a")
    await queue.get()
    assert clock.monotonic() - failed_s <= 30


async def test_a_key_that_is_changed_whenever_it_fails_is_tried_ever_less_often(clock: Clock, queue: WorkQueue[str]) -> None:
    """By its own work. It was tried every second, so the backoffs of minutes never took effect."""
    tried_s = []
    queue.add("a")
    for _ in range(20):
        key = await queue.get()
        tried_s.append(clock.monotonic())
        queue.add("a")
        queue.retry(key, Transient("down"))
        queue.done(key)
        queue.add("a")
    assert tried_s[5] < 6
    assert all(later - sooner >= 6 for sooner, later in pairwise(tried_s[10:]))


async def test_a_change_by_somebody_else_after_that_moment_does_at_once(clock: Clock, queue: WorkQueue[str]) -> None:
    queue.retry("a", BadInput("spec.os"))
    await elapse(5)
    queue.add("a")
    assert await queue.get() == "a"
    assert clock.monotonic() == 5


async def test_a_moment_of_rest_makes_no_backoff_longer(clock: Clock, queue: WorkQueue[str]) -> None:
    wait_s = queue.retry("a", CONFLICT)
    queue.add("a")
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(wait_s)


async def test_a_change_that_came_while_the_work_failed_waits_for_the_backoff(clock: Clock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a", ends_backoff=False)
    wait_s = queue.retry(key, Transient("down"))
    queue.done(key)
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(wait_s)


async def test_a_change_that_came_while_the_work_went_well_is_worked_on_at_once(clock: Clock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a", ends_backoff=False)
    queue.done(key)
    assert await queue.get() == "a"
    assert clock.monotonic() == 0


async def test_somebody_elses_change_during_failing_work_counts_beside_our_own(clock: Clock, queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a", ends_backoff=False)
    queue.add("a")
    wait_s = queue.retry(key, BadInput("spec.os"))
    queue.done(key)
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(wait_s)
    assert wait_s < 5


async def test_a_plain_delay_is_no_backoff(clock: Clock, queue: WorkQueue[str]) -> None:
    queue.add_after("a", 60)
    queue.add("a", ends_backoff=False)
    assert await queue.get() == "a"
    assert clock.monotonic() == 0


async def test_our_own_change_after_somebody_elses_during_failing_work_takes_nothing_back(
    clock: Clock, queue: WorkQueue[str]
) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a", ends_backoff=False)
    wait_s = queue.retry(key, BadInput("spec.os"))
    queue.done(key)
    assert await queue.get() == "a"
    assert clock.monotonic() == pytest.approx(wait_s)
    assert wait_s < 5


async def test_a_delay_of_a_key_that_is_wanted_again_at_once_is_none(queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add_after("a", 10)
    assert queue.delayed_count == 0
    queue.done(key)
    assert await taken(queue, 1) == ["a"]


async def backed_off_and_ready(queue: WorkQueue[str]) -> None:
    queue.retry("a", Transient("down"))
    await elapse(60)


async def backed_off_and_wanted_by_somebody(queue: WorkQueue[str]) -> None:
    queue.retry("a", Transient("down"))
    queue.add("a")


async def failed_and_wanted_by_somebody_meanwhile(queue: WorkQueue[str]) -> None:
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.retry(key, Transient("down"))
    queue.done(key)


@pytest.mark.parametrize(
    "fails", [backed_off_and_ready, backed_off_and_wanted_by_somebody, failed_and_wanted_by_somebody_meanwhile]
)
async def test_a_backoff_that_is_over_spares_no_later_change(
    clock: Clock, queue: WorkQueue[str], fails: Callable[[WorkQueue[str]], Awaitable[None]]
) -> None:
    """A key that once failed would hear of no status any more."""
    await fails(queue)
    await taken(queue, 1)
    queue.add("a", ends_backoff=False)
    assert len(queue) == 1


async def test_a_key_that_is_wanted_again_waits_since_the_first_wish(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    await elapse(5)
    queue.add("a")
    assert queue.oldest_waiting_s() == pytest.approx(5)


async def test_what_waited_for_nobody_begins_to_wait_when_work_begins(clock: Clock) -> None:
    log = Log()
    queue: WorkQueue[str] = WorkQueue(clock, observer=log)
    queue.end_work()
    queue.add("a")
    await elapse(3600)
    queue.begin_work()
    assert queue.oldest_waiting_s() == 0
    await elapse(2)
    await taken(queue, 1)
    assert log.waits_s == [pytest.approx(2)]


async def test_keys_that_were_wanted_again_leave_nothing_behind(queue: WorkQueue[str]) -> None:
    for number in range(10):
        queue.add(f"key-{number}")
        key = await queue.get()
        queue.add(key, ends_backoff=False)
        queue.done(key)
        await taken(queue, 1)
    assert queue._unless_failed == set()


class BehindItsLoop(VirtualClock):
    """So that every timer fires before its time."""

    def monotonic(self) -> float:
        return super().monotonic() * 0.99


async def test_a_timer_that_fires_early_brings_its_key_all_the_same() -> None:
    queue: WorkQueue[str] = WorkQueue(BehindItsLoop(asyncio.get_running_loop()))
    queue.add_after("a", 10)
    await elapse(10)
    assert len(queue) == 1
